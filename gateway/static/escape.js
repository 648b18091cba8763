// Esc closes what was opened last: sheets, lists, edits. Dialogs and menus of the browser close themselves and come first.

import { isComposing } from "./ime.js";

const open = [];

/** Registers something that Esc closes; returns a function that takes it off again. */
export function onEscape(close) {
  const entry = { close };
  open.push(entry);
  return () => {
    const at = open.indexOf(entry);
    if (at >= 0) open.splice(at, 1);
  };
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || isComposing(event)) return;
  if (document.querySelector("dialog[open], [popover]:popover-open")) return;
  const last = open.at(-1);
  if (!last) return;
  event.preventDefault();
  last.close();
});
