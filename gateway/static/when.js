// Times in the reader's language and zone: relative on the page, absolute on hover. One ticker keeps all of them true.

import { h } from "./dom.js";
import { lang, t } from "./i18n.js";
import { session } from "./session.js";

const UNITS = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

/** The reader's time zone: the account's, else the browser's. */
export function zone() {
  return session.me?.person?.timezone || Intl.DateTimeFormat().resolvedOptions().timeZone;
}

const FULL = { dateStyle: "medium", timeStyle: "short" };

function formatter(options, timeZone = zone()) {
  try {
    return new Intl.DateTimeFormat(lang(), { ...options, timeZone });
  } catch {
    return new Intl.DateTimeFormat(lang(), options); // a zone this browser does not know
  }
}

function format(date, options, timeZone = zone()) {
  return formatter(options, timeZone).format(date);
}

/** Date and time in full. */
export function absolute(iso, timeZone = zone()) {
  return format(new Date(iso), FULL, timeZone);
}

/** From one time to another, what both have in common once: "Nov 30, 2026, 12:08 – 12:17 PM". */
export function between(from, to) {
  return formatter(FULL).formatRange(new Date(from), new Date(to));
}

/** Only the day, from an ISO date such as 2026-04-01, whatever the zone. */
export function day(isoDate, options = { day: "numeric", month: "short" }) {
  return format(new Date(`${isoDate.slice(0, 10)}T12:00:00Z`), options, "UTC");
}

function relative(iso) {
  const seconds = (new Date(iso) - Date.now()) / 1000;
  const [unit, size] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? ["now", 1];
  if (unit === "now") return t(seconds > 1 ? "time.soon" : "time.now");
  return new Intl.RelativeTimeFormat(lang(), { numeric: "auto", style: "short" }).format(Math.round(seconds / size), unit);
}

/** A `<time>` that reads "5 min. ago" and shows the full time on hover; a dash for nothing. */
export function ago(iso) {
  if (!iso) return h("span", { class: "dim" }, "–");
  return h("time", { datetime: iso, title: absolute(iso), dataset: { ago: "1" } }, relative(iso));
}

/** Which shelf of the chat list a time belongs to, in the reader's zone. */
export function shelf(iso) {
  const key = (date) => format(date, { year: "numeric", month: "2-digit", day: "2-digit" });
  const then = new Date(iso);
  const now = Date.now();
  if (key(then) === key(new Date(now))) return "today";
  if (key(then) === key(new Date(now - 86_400_000))) return "yesterday";
  return now - then < 7 * 86_400_000 ? "week" : "older";
}

setInterval(() => {
  for (const element of document.querySelectorAll("time[data-ago]")) element.textContent = relative(element.getAttribute("datetime"));
}, 30_000);
