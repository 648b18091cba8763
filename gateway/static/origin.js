// Where a line of memory is from, as a quiet caption beside it. A person's own line has none: it needs no explanation.

import { h } from "./dom.js";
import { t, term } from "./i18n.js";
import { absolute } from "./when.js";

const TONES = { mixed: "warn", unsourced: "warn", imported: "calm", assistant: "calm", person: "good" };

/** The caption of one line `{origin, author, created_at}`; nothing for a person's own. */
export function originMark({ origin, author, created_at: at }) {
  if (origin === "human") return null;
  return h(
    "span",
    { class: `origin tone-${TONES[origin] ?? "calm"}`, title: [t(`originHint.${origin}`), at && absolute(at)].filter(Boolean).join(" · ") },
    h("span", { class: "dot", "aria-hidden": "true" }),
    [term("origin", origin), author && term("author", author)].filter(Boolean).join(" · "),
  );
}

/** What the captions mean, in one line under the text. */
export function originLegend() {
  return h("p", { class: "hint" }, t("origin.legend"));
}
