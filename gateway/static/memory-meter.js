// How much of the room that every prompt has for memory `MEMORY.md` takes, and what does not fit (WD-7).

import { shareBar } from "./bars.js";
import { h } from "./dom.js";
import { number, t, tn } from "./i18n.js";

/** How much of the prompt's room for memory is taken. */
export function meterView({ tokens, max_tokens: most, left_out: leftOut }) {
  if (!most) return h("p", { class: "hint" }, t("files.meterOff"));
  const label = t("files.meter", { tokens: number(tokens), most: number(most) });
  return [
    h("p", { class: leftOut ? "hint tone-warn" : "hint" }, label, leftOut > 0 && [" · ", tn("files.leftOut", leftOut)]),
    h(
      "div",
      {
        role: "meter",
        "aria-label": t("files.meterName"),
        "aria-valuemin": 0,
        "aria-valuemax": most,
        "aria-valuenow": Math.min(tokens, most),
        "aria-valuetext": label,
      },
      shareBar(Math.min(1, tokens / most)),
    ),
  ];
}
