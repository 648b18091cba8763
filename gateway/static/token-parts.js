// The parts of a prompt with their estimated tokens: one bar, and a list that says the same in words (RS-63).

import { colour, stackedBar } from "./bars.js";
import { h } from "./dom.js";
import { number, percent, term } from "./i18n.js";

/** `sections` is `[{name, tokens}]`; the elements are empty when there is nothing to show. */
export function tokenParts(sections) {
  const parts = sections.filter(({ tokens }) => tokens > 0);
  const sum = parts.reduce((total, { tokens }) => total + tokens, 0);
  const rows = parts.map(({ name, tokens }, at) =>
    h(
      "li",
      { class: "token-row" },
      h("span", { class: `swatch ${colour(at)}`, "aria-hidden": "true" }),
      h("span", { class: "token-name" }, term("section", name)),
      h("span", { class: "num" }, number(tokens)),
      h("span", { class: "num dim" }, percent(tokens / sum)),
    ),
  );
  const bar = () => stackedBar(parts.map(({ name, tokens }) => ({ label: term("section", name), value: tokens })), sum);
  return { sum, elements: parts.length ? [bar(), h("ul", { class: "token-list" }, rows)] : [] };
}
