// Somebody changed the file meanwhile: what they changed, what yours would change, and three ways on (WD-17).

import { diffLines } from "./difflines.js";
import { h } from "./dom.js";
import { t } from "./i18n.js";
import { icon } from "./icons.js";
import { explain } from "./states.js";
import { toast } from "./toast.js";

/** `mine` and `theirs` are differences; `gone`: the file is not there any more. Nothing is written until a way is chosen. */
export function conflictView({ path, mine, theirs, gone, takeTheirs, keepMine, merge }) {
  const ways = [
    ["theirs", "check", takeTheirs],
    ["mine", "send", keepMine],
    ["merge", "edit", merge],
  ];
  return h(
    "div",
    { class: "conflict" },
    h("h3", { tabindex: -1 }, icon("warn"), t("conflict.title", { path })),
    h("p", { class: "dialog-text" }, t(gone ? "conflict.gone" : "conflict.text")),
    h(
      "div",
      { class: "conflict-sides" },
      side(t("conflict.theirs"), theirs),
      side(t("conflict.mine"), mine),
    ),
    h(
      "ul",
      { class: "conflict-ways" },
      ways.map(([name, sign, act]) =>
        h(
          "li",
          {},
          h("button", { type: "button", class: "button", onclick: () => run(act) }, icon(sign), t(`conflict.way.${name}`)),
          h("p", { class: "hint" }, t(`conflict.about.${name}`)),
        ),
      ),
    ),
  );
}

/** What somebody changed, beside the field in which it is being merged. */
export function meanwhile(theirs) {
  return h("details", { class: "meanwhile", open: true }, h("summary", {}, t("conflict.theirs")), diffLines(theirs, t("conflict.theirs")));
}

function side(label, lines) {
  return h("section", { "aria-label": label }, h("h4", {}, label), diffLines(lines, label));
}

async function run(act) {
  try {
    await act();
  } catch (error) {
    toast(explain(error), { tone: "warn" });
  }
}
