// The days of a month as a grid: one stop for Tab; arrows, Home, End, Page Up and Page Down move, Enter opens (the pattern of date grids).

import { h } from "./dom.js";
import { iconButton } from "./controls.js";
import { lang, t } from "./i18n.js";
import { day as dayText } from "./when.js";

const iso = (date) => date.toISOString().slice(0, 10);
const at = (isoDate) => new Date(`${isoDate}T00:00:00Z`);
const plus = (isoDate, days) => iso(new Date(at(isoDate).getTime() + days * 86_400_000));

/** The month before or after, as YYYY-MM. */
export function shiftMonth(month, by) {
  const date = at(`${month}-01`);
  date.setUTCMonth(date.getUTCMonth() + by);
  return iso(date).slice(0, 7);
}

/** The first day of the week where the reader lives: 1 is Monday, 7 Sunday. */
function firstDay() {
  const locale = new Intl.Locale(navigator.language.startsWith(lang()) ? navigator.language : lang());
  return (locale.getWeekInfo?.() ?? locale.weekInfo ?? { firstDay: 1 }).firstDay;
}

/**
 * `month` is YYYY-MM; `known` a map from date to `{label, kind}` of the days that have something; `open` the open day; `focus` the day that Tab
 * reaches. `onOpen(date)` opens one, `onMonth(month, focus)` turns the page; with a focus, that day shall have it then.
 */
export function monthGrid({ month, known, open, focus, today, onOpen, onMonth }) {
  const first = `${month}-01`;
  const offset = ((at(first).getUTCDay() || 7) - firstDay() + 7) % 7;
  const start = plus(first, -offset);
  const length = Number(plus(`${shiftMonth(month, 1)}-01`, -1).slice(8));
  const weeks = Math.ceil((offset + length) / 7);
  const stop = focus?.startsWith(month) ? focus : open?.startsWith(month) ? open : ([...known.keys()].at(-1) ?? first);
  const cells = new Map();

  function cell(date) {
    const inside = date.startsWith(month);
    if (!inside) return h("td", { role: "gridcell", "aria-hidden": "true" });
    const what = known.get(date);
    const button = h(
      "button",
      {
        type: "button",
        class: `day${what ? ` has-${what.kind}` : ""}`,
        tabindex: date === stop ? 0 : -1,
        "aria-label": [dayText(date, { dateStyle: "full" }), what?.label ?? t("days.nothing")].join(", "),
        "aria-pressed": String(date === open),
        "aria-current": date === today ? "date" : null,
        "aria-disabled": what ? null : "true",
        onclick: () => what && onOpen(date),
      },
      h("span", {}, String(Number(date.slice(8)))),
      h("span", { class: "day-mark", "aria-hidden": "true" }),
    );
    cells.set(date, button);
    return h("td", { role: "gridcell" }, button);
  }

  function move(event) {
    const here = [...cells].find(([, button]) => button === document.activeElement)?.[0];
    if (!here) return;
    const column = cells.get(here).closest("td").cellIndex;
    const target = {
      ArrowLeft: () => plus(here, -1),
      ArrowRight: () => plus(here, 1),
      ArrowUp: () => plus(here, -7),
      ArrowDown: () => plus(here, 7),
      Home: () => plus(here, -column),
      End: () => plus(here, 6 - column),
      PageUp: () => sameDay(here, -1),
      PageDown: () => sameDay(here, 1),
    }[event.key]?.();
    if (!target || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (!target.startsWith(month)) {
      onMonth(target.slice(0, 7), target);
      return;
    }
    for (const [date, button] of cells) button.tabIndex = date === target ? 0 : -1;
    cells.get(target).focus();
  }

  const title = dayText(first, { month: "long", year: "numeric" });
  const table = h(
    "table",
    { class: "month", role: "grid", "aria-label": title, onkeydown: move },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        Array.from({ length: 7 }, (_, n) => {
          const date = plus(start, n);
          return h("th", { scope: "col", "aria-label": dayText(date, { weekday: "long" }) }, dayText(date, { weekday: "narrow" }));
        }),
      ),
    ),
    h(
      "tbody",
      {},
      Array.from({ length: weeks }, (_, week) => h("tr", {}, Array.from({ length: 7 }, (_, n) => cell(plus(start, week * 7 + n))))),
    ),
  );
  const element = h(
    "div",
    { class: "month-frame" },
    h(
      "div",
      { class: "month-head" },
      iconButton("left", t("days.before"), () => onMonth(shiftMonth(month, -1))),
      h("h2", { "aria-live": "polite" }, title),
      iconButton("right", t("days.after"), () => onMonth(shiftMonth(month, 1))),
    ),
    table,
  );
  return { element, focus: () => cells.get(stop)?.focus() };
}

/** The same day of another month, or its last one. */
function sameDay(date, by) {
  const month = shiftMonth(date.slice(0, 7), by);
  const last = plus(`${shiftMonth(month, 1)}-01`, -1);
  const wanted = `${month}${date.slice(7)}`;
  return wanted > last ? last : wanted;
}
