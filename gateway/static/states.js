// The states that every page has besides "here it is": empty, loading, and something went wrong.

import { h } from "./dom.js";
import { ApiError, NetworkError } from "./api.js";
import { t } from "./i18n.js";
import { icon } from "./icons.js";

/** What went wrong, as a sentence for the person. The server's own sentence is used where there is one. */
export function explain(error) {
  if (error instanceof NetworkError) return navigator.onLine ? t("error.network") : t("error.offline");
  if (error instanceof ApiError) return error.code ? error.message : t("error.status", { status: error.status });
  console.error(error);
  return t("error.page");
}

/** Says what will appear here and how to make it appear. */
export function emptyState(iconName, title, text, ...more) {
  return h(
    "div",
    { class: "state" },
    h("div", { class: "state-icon" }, icon(iconName)),
    h("p", { class: "state-title" }, title),
    text && h("p", { class: "state-text" }, text),
    more,
  );
}

/** What happened, what to do, and a way to try again. */
export function errorState(error, retry) {
  return h(
    "div",
    { class: "state", role: "alert" },
    h("div", { class: "state-icon tone-warn" }, icon("warn")),
    h("p", { class: "state-title" }, t("error.title")),
    h("p", { class: "state-text" }, explain(error)),
    retry && h("button", { type: "button", class: "button", onclick: retry }, icon("again"), t("action.retry")),
  );
}

/** Grey lines where text will be; they show only after 300 ms (in the stylesheet), so that quick answers never flash. */
export function skeleton(lines = 4) {
  return h(
    "div",
    { class: "skeleton", role: "status" },
    h("span", { class: "sr-only" }, t("state.loading")),
    Array.from({ length: lines }, () => h("span", { class: "skeleton-line", "aria-hidden": "true" })),
  );
}

const newest = new WeakMap(); // place → what it is to be filled with last

/**
 * Fills `place` with what `load` gives, through `show`: skeleton first, then the content or an error with retry. The signal ends it quietly when the
 * page has been left, and so does another filling of the same place: an older answer must not come after the newer one.
 */
export async function fillWhenLoaded(place, { load, show, signal, lines }) {
  const mine = {};
  const over = () => signal?.aborted || newest.get(place) !== mine;
  newest.set(place, mine);
  place.replaceChildren(skeleton(lines));
  place.setAttribute("aria-busy", "true");
  try {
    const answer = await load();
    if (!over()) place.replaceChildren(...[show(answer)].flat());
  } catch (error) {
    if (error.name === "AbortError" || over()) return;
    place.replaceChildren(errorState(error, () => fillWhenLoaded(place, { load, show, signal, lines })));
  } finally {
    if (newest.get(place) === mine) place.removeAttribute("aria-busy");
  }
}
