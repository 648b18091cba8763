// Tokens and cost: one column per day, and the same sums by person, channel, purpose or model as a table with thin bars.

import { request } from "./api.js";
import { columnChart, shareBar } from "./bars.js";
import { segmented } from "./controls.js";
import { h, replace } from "./dom.js";
import { number, percent, t, term, tn } from "./i18n.js";
import { section } from "./page.js";
import { emptyState, fillWhenLoaded } from "./states.js";
import { day } from "./when.js";

const SPANS = [7, 30, 90];
const GROUPS = ["person", "channel", "purpose", "model"];
const STEMS = { channel: "channel", purpose: "purpose" };

export function usageView(place, { signal }) {
  const content = h("div", { class: "cards" });
  const load = (days) =>
    fillWhenLoaded(content, {
      signal,
      lines: 6,
      load: () => request("GET", `/api/operator/usage?days=${days}`, undefined, { signal }),
      show: ({ rows }) =>
        rows.length ? [totals(rows), daily(rows, days), grouped(rows)] : emptyState("chart", t("usage.none"), t("usage.noneText")),
    });
  place.append(
    segmented({
      legend: t("usage.span"),
      options: SPANS.map((days) => [String(days), tn("usage.days", days)]),
      value: "30",
      onchange: (days) => load(Number(days)),
    }),
    content,
  );
  load(30);
}

const spent = (row) => row.input_tokens + row.output_tokens;

function sum(rows) {
  const total = { calls: 0, failed: 0, input: 0, output: 0, cached: 0, cost: null };
  for (const row of rows) {
    total.calls += row.calls;
    total.failed += row.failed;
    total.input += row.input_tokens;
    total.output += row.output_tokens;
    total.cached += row.cached_tokens ?? 0;
    if (row.cost !== null && row.cost !== undefined) total.cost = (total.cost ?? 0) + row.cost;
  }
  return total;
}

const money = (cost) => (cost === null ? "–" : number(cost, { minimumFractionDigits: 2, maximumFractionDigits: cost < 1 ? 4 : 2 }));
const short = (value) => number(value, { notation: value >= 100_000 ? "compact" : "standard", maximumFractionDigits: 1 });

function totals(rows) {
  const all = sum(rows);
  const figure = (label, value, about) =>
    h(
      "div",
      { class: "figure" },
      h("dt", {}, label),
      h("dd", {}, h("span", { class: "figure-value" }, value), about && h("span", { class: "hint" }, about)),
    );
  return h(
    "dl",
    { class: "card figures" },
    figure(t("usage.calls"), short(all.calls), all.failed ? tn("usage.failed", all.failed) : ""),
    figure(
      t("usage.input"),
      short(all.input),
      all.cached ? t("usage.cached", { share: percent(all.cached / Math.max(all.input, 1)) }) : "",
    ),
    figure(t("usage.output"), short(all.output)),
    figure(t("usage.cost"), money(all.cost)),
  );
}

/** Every day of the span, also those without a call. */
function daily(rows, days) {
  const last = rows
    .map((row) => row.day)
    .sort()
    .at(-1);
  const end = new Date(`${last.slice(0, 10)}T12:00:00Z`).getTime();
  const columns = Array.from({ length: days }, (_, at) => {
    const key = new Date(end - (days - 1 - at) * 86_400_000).toISOString().slice(0, 10);
    const value = rows.filter((row) => row.day.slice(0, 10) === key).reduce((total, row) => total + spent(row), 0);
    return { key, value, title: `${day(key)}: ${tn("usage.tokens", value)}` };
  });
  const peak = columns.reduce((best, column) => (column.value > best.value ? column : best));
  return section(
    t("usage.byDay"),
    t("usage.peak", { day: day(peak.key), tokens: short(peak.value) }),
    h(
      "figure",
      { class: "chart" },
      columnChart(columns),
      h("figcaption", { class: "chart-ends hint" }, h("span", {}, day(columns[0].key)), h("span", {}, day(columns.at(-1).key))),
    ),
  );
}

function grouped(rows) {
  const place = h("div", {});
  const show = (group) => replace(place, table(rows, group));
  show("person");
  return section(
    t("usage.by"),
    "",
    segmented({
      legend: t("usage.by"),
      options: GROUPS.map((group) => [group, t(`usage.group.${group}`)]),
      value: "person",
      onchange: show,
    }),
    place,
  );
}

function table(rows, group) {
  const groups = new Map();
  for (const row of rows) groups.set(row[group], [...(groups.get(row[group]) ?? []), row]);
  const lines = [...groups].map(([name, part]) => ({ name, ...sum(part) })).sort((a, b) => b.input + b.output - a.input - a.output);
  const all = lines.reduce((total, line) => total + line.input + line.output, 0);
  const heads = ["calls", "input", "output", "cost"];
  return h(
    "table",
    { class: "table" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, t(`usage.group.${group}`)),
        heads.map((head) => h("th", { scope: "col", class: "num" }, t(`usage.${head}`))),
      ),
    ),
    h(
      "tbody",
      {},
      lines.map((line) => {
        const share = all ? (line.input + line.output) / all : 0;
        const name = !line.name ? t("usage.noName") : STEMS[group] ? term(STEMS[group], line.name) : line.name;
        const cells = { calls: number(line.calls), input: short(line.input), output: short(line.output), cost: money(line.cost) };
        return h(
          "tr",
          {},
          h("th", { scope: "row" }, h("bdi", {}, name), h("span", { class: "share", title: percent(share) }, shareBar(share))),
          heads.map((head) => h("td", { class: "num", "data-head": t(`usage.${head}`) }, cells[head])),
        );
      }),
    ),
  );
}
