// A side panel that becomes a sheet where there is no room for it: over the page, with a veil behind, the rest out of reach, closed by Esc.

import { h } from "./dom.js";
import { onEscape } from "./escape.js";

/**
 * `panel` is the element, `rest` tells which elements are out of reach while it is a sheet, `narrow` is a media query list saying when it is one.
 * `panel` has a name; as a sheet it is a dialog. `onChange(open)` is told about every change.
 */
export function makeSheet({ panel, rest, narrow, open = false, onChange = () => {} }) {
  const veil = h("div", { class: "veil", onclick: () => hide() });
  let release = () => {};
  let returnTo = null;

  function apply() {
    const over = open && narrow.matches;
    panel.dataset.open = String(open);
    panel.dataset.sheet = String(narrow.matches);
    panel.inert = !open && narrow.matches;
    panel.role = over ? "dialog" : null;
    panel.ariaModal = over ? "true" : null;
    for (const element of rest()) element.inert = over;
    if (over && !veil.isConnected) panel.before(veil);
    if (!over) veil.remove();
    release();
    release = open ? onEscape(hide) : () => {};
    onChange(open);
  }

  function show() {
    if (open) return;
    open = true;
    returnTo = document.activeElement;
    apply();
    if (narrow.matches) (panel.querySelector("[data-first-focus]") ?? panel).focus({ preventScroll: true });
  }

  function hide() {
    if (!open) return;
    open = false;
    apply();
    if (narrow.matches && returnTo?.isConnected) returnTo.focus({ preventScroll: true });
  }

  panel.tabIndex = -1;
  narrow.addEventListener("change", apply);
  apply();
  return {
    show,
    hide,
    toggle: () => (open ? hide() : show()),
    get open() {
      return open;
    },
    destroy() {
      narrow.removeEventListener("change", apply);
      release();
      veil.remove();
      for (const element of rest()) element.inert = false;
    },
  };
}
