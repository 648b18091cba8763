// The difference between two texts, line by line. Signs say what colours repeat, and screen readers hear words.

import { h } from "./dom.js";
import { t } from "./i18n.js";
import { guessLang } from "./lang.js";

const SIGNS = { added: "+", removed: "−", same: "" };

/** `lines` are `{kind, text, before, after}` of the server; gaps between them are marked. */
export function diffLines(lines, label) {
  if (!lines.length) return h("p", { class: "hint" }, t("diff.none"));
  const rows = [];
  let last = null;
  for (const line of lines) {
    if (last && gap(last, line)) rows.push(h("li", { class: "diffline is-gap", "aria-hidden": "true" }, "⋯"));
    rows.push(diffLine(line));
    last = line;
  }
  return h("ol", { class: "difflines", "aria-label": label }, rows);
}

function diffLine({ kind, text }) {
  return h(
    "li",
    { class: `diffline is-${kind}` },
    h("span", { class: "diff-sign", "aria-hidden": "true" }, SIGNS[kind]),
    kind !== "same" && h("span", { class: "sr-only" }, t(`diff.${kind}`)),
    h(kind === "removed" ? "del" : kind === "added" ? "ins" : "span", { class: "diff-text", lang: guessLang(text) }, text || " "),
  );
}

/** Whether lines were left out between two that follow each other. */
function gap(one, other) {
  const jump = (key) => one[key] !== null && other[key] !== null && other[key] - one[key] > 1;
  return jump("before") || jump("after");
}
