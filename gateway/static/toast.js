// One quiet line at the bottom that goes away by itself; with an action it stays longer, and while somebody is at it, it stays.

import { h } from "./dom.js";
import { iconButton } from "./controls.js";
import { t } from "./i18n.js";

let region;

/** Shows a line; `action` is `{label, run}`. Screen readers hear it without losing their place. */
export function toast(text, { action, tone = "calm" } = {}) {
  region ??= document.body.appendChild(h("div", { class: "toasts", role: "status", "aria-live": "polite" }));
  const line = h(
    "div",
    { class: `toast tone-${tone}` },
    h("span", { class: "toast-text" }, text),
    action &&
      h(
        "button",
        {
          type: "button",
          class: "text-button",
          onclick: () => {
            line.remove();
            action.run();
          },
        },
        action.label,
      ),
    iconButton("close", t("action.close"), () => line.remove()),
  );
  let timer = 0;
  const goLater = () => {
    clearTimeout(timer);
    if (!line.matches(":hover, :focus-within")) timer = setTimeout(() => line.remove(), action ? 10_000 : 5_000);
  };
  for (const name of ["pointerenter", "focusin"]) line.addEventListener(name, () => clearTimeout(timer));
  for (const name of ["pointerleave", "focusout"]) line.addEventListener(name, () => queueMicrotask(goLater)); // once the focus is where it goes
  region.append(line);
  goLater();
}
