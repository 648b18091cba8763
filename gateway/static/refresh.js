// Views that stay true by asking again: what is shown stays until the new answer is there, and a failed refresh says so without taking it away.

import { request } from "./api.js";
import { replace } from "./dom.js";
import { errorState, skeleton } from "./states.js";

/** Fills `place` from a GET now and every `everyMs` while the tab is seen. Returns a function that asks at once. */
export function keepFresh(place, { path, show, signal, everyMs = 15_000 }) {
  let shown = "";
  let filled = false;
  let newest = 0;
  let underWay = 0;

  async function ask() {
    const mine = ++newest;
    underWay += 1;
    try {
      const answer = await request("GET", typeof path === "function" ? path() : path, undefined, { signal });
      if (mine !== newest) return; // asked again meanwhile, perhaps for something else: an older answer must not come after the newer one
      const key = JSON.stringify(answer);
      if (key === shown || (filled && isBusy(place))) return;
      shown = key;
      filled = true;
      replace(place, show(answer));
    } catch (error) {
      if (error.name === "AbortError" || signal.aborted || filled || mine !== newest) return;
      replace(
        place,
        errorState(error, () => {
          replace(place, skeleton(5));
          ask();
        }),
      );
    } finally {
      underWay -= 1;
    }
  }

  replace(place, skeleton(5));
  ask();
  const timer = setInterval(() => document.hidden || underWay || ask(), everyMs);
  signal.addEventListener("abort", () => clearInterval(timer));
  return () => {
    shown = "";
    return ask();
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
