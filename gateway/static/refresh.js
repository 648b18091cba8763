// Views that stay true by asking again: what is shown stays until the new answer is there, and a failed refresh says so without taking it away.

import { request } from "./api.js";
import { replace } from "./dom.js";
import { errorState, skeleton } from "./states.js";

const HIDDEN_MS = 5_000;

/**
 * Fills `place` from a GET now and again while the tab is seen. `everyMs`: how long an answer stays, a number or a function of it (of undefined when
 * there was none). Returns a function that asks at once.
 */
export function keepFresh(place, { path, show, signal, everyMs = 15_000 }) {
  let shown = "";
  let filled = false;
  let timer = 0;
  const begin = readings();

  async function ask() {
    const isNewest = begin();
    clearTimeout(timer);
    let answer;
    try {
      answer = await request("GET", typeof path === "function" ? path() : path, undefined, { signal });
      if (!isNewest()) return; // asked again meanwhile, perhaps for something else
      const key = JSON.stringify(answer);
      if (key === shown || (filled && isBusy(place))) return;
      shown = key;
      filled = true;
      replace(place, show(answer));
    } catch (error) {
      if (error.name === "AbortError" || signal.aborted || filled || !isNewest()) return;
      replace(
        place,
        errorState(error, () => {
          replace(place, skeleton(5));
          ask();
        }),
      );
    } finally {
      if (isNewest() && !signal.aborted) timer = setTimeout(again, typeof everyMs === "function" ? everyMs(answer) : everyMs);
    }
  }

  function again() {
    if (document.hidden) timer = setTimeout(again, HIDDEN_MS);
    else ask();
  }

  replace(place, skeleton(5));
  ask();
  signal.addEventListener("abort", () => clearTimeout(timer));
  return () => {
    shown = "";
    return ask();
  };
}

/**
 * For a view that may be read again while an earlier reading is under way: call it at the beginning of each, and what it gives tells whether that reading
 * is still the newest. An older answer must not come after the newer one.
 */
export function readings() {
  let newest = 0;
  return () => {
    const mine = ++newest;
    return () => mine === newest;
  };
}

/** Somebody has the focus inside, or a menu or dialog is open: replacing now would pull the ground away. */
function isBusy(place) {
  return (
    place.contains(document.activeElement) &&
    document.activeElement !== document.body &&
    document.querySelector("dialog[open], [popover]:popover-open") !== null
  );
}
