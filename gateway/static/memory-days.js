// Daily notes: a month to move in, and the open day with its sections and where each line is from.

import { h, replace } from "./dom.js";
import { t, term, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { guessLang } from "./lang.js";
import { lineView } from "./memory-view.js";
import { monthGrid } from "./month-grid.js";
import { originLegend } from "./origin.js";
import { readings } from "./refresh.js";
import { emptyState, errorState, fillWhenLoaded, skeleton } from "./states.js";
import { day as dayText, zone } from "./when.js";

const DATE = /^\d{4}-\d{2}-\d{2}$/;

/** Whether there is such a date: none is 2026-02-30. */
function isDate(text) {
  const at = new Date(`${text}T00:00:00Z`);
  return DATE.test(text) && !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text);
}

export function daysTab(place, { api, signal, parts }) {
  const open = isDate(parts[0] ?? "") ? parts[0] : "";
  const today = new Intl.DateTimeFormat("en-CA", { timeZone: zone(), dateStyle: "short" }).format(new Date()).slice(0, 10);
  const calendar = h("nav", { class: "calendar", "aria-label": t("days.calendar") }, skeleton(6));
  const content = h("section", { class: "day-pane", "aria-label": open ? dayText(open, { dateStyle: "full" }) : t("days.none") });
  replace(place, calendar, content);
  let grid = null;
  const begin = readings();

  async function turn(month, focus) {
    const isNewest = begin();
    try {
      const data = await api.get("days", { month });
      if (signal.aborted || !isNewest()) return; // turned on meanwhile
      grid = monthGrid({
        month,
        today,
        open,
        focus,
        known: new Map(data.days.map((each) => [each.date, { kind: kind(each), label: label(each) }])),
        onOpen: (date) => {
          location.hash = api.hash("days", date);
        },
        onMonth: turn,
      });
      replace(calendar, grid.element, legend(data, month, turn));
      if (focus) grid.focus();
      if (!open) showChoice(content, data);
    } catch (error) {
      if (error.name === "AbortError" || signal.aborted || !isNewest()) return;
      replace(calendar, errorState(error, () => turn(month, focus)));
    }
  }

  turn((open || today).slice(0, 7));
  if (open) showDay(content, open, api, signal);
  return { find: () => grid?.focus() };
}

const kind = ({ lines, diary }) => (lines ? (diary ? "both" : "lines") : diary ? "diary" : "none");

function label({ lines, daily, diary }) {
  const said = lines === null ? t("days.unreadable") : daily ? tn("days.lines", lines) : "";
  return [said, diary && t("days.diary")].filter(Boolean).join(", ");
}

/** What the marks mean, and a way to the newest month that has any notes. */
function legend({ months }, month, turn) {
  const last = months.at(-1);
  return [
    h(
      "ul",
      { class: "day-legend hint" },
      h("li", {}, h("span", { class: "day-key has-lines", "aria-hidden": "true" }), t("days.keyNotes")),
      h("li", {}, h("span", { class: "day-key has-both", "aria-hidden": "true" }), t("days.keyDiary")),
    ),
    last &&
      !months.includes(month) &&
      h(
        "button",
        { type: "button", class: "text-button", onclick: () => turn(last) },
        t("days.newest", { month: dayText(`${last}-01`, { month: "long", year: "numeric" }) }),
      ),
  ];
}

function showChoice(place, { days, months }) {
  if (days.length) replace(place, emptyState("calendar", t("days.choose"), t("days.chooseText")));
  else if (months.length) replace(place, emptyState("calendar", t("days.noneHere"), ""));
  else replace(place, emptyState("calendar", t("days.noneYet"), t("days.noneYetText")));
}

function showDay(place, date, api, signal) {
  fillWhenLoaded(place, {
    signal,
    lines: 8,
    load: () => api.get(`days/${date}`),
    show: (data) => dayView(data, api),
  });
}

function dayView({ date, path, hash, diary, sections }, api) {
  const links = h(
    "p",
    { class: "day-links" },
    hash && h("a", { class: "text-button", href: api.hash("files", path) }, icon("file"), t("days.openFile")),
    diary && h("a", { class: "text-button", href: api.hash("files", `memory/dreams/${date}.md`) }, icon("moon"), t("days.openDiary")),
  );
  const marked = sections.some(({ groups }) => groups.some(({ lines }) => lines.some(({ origin }) => origin !== "human")));
  return [
    h("header", { class: "day-head" }, h("h2", {}, dayText(date, { dateStyle: "full" })), links),
    ...(sections.length ? sections.map(sectionView) : [emptyState("calendar", t("days.noLines"), "")]),
    ...(marked ? [originLegend()] : []),
  ];
}

function sectionView({ title, groups }) {
  return h(
    "section",
    { class: "day-section" },
    title && h("h3", { lang: guessLang(term("daySection", title)) }, term("daySection", title)),
    groups.map((group) => [
      group.title && h("h4", { lang: guessLang(group.title) }, group.title),
      group.lines.map((line) => h("div", { title: line.used ? t("days.used") : null }, lineView(line.html, [line]))),
    ]),
  );
}
