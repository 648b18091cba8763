// The two ways to a new entry: the model writes it, or the person. Both name their messages: the last ones, or a range of numbers (RS-82).

import { field, segmented } from "./controls.js";
import { openDialog } from "./dialog.js";
import { h } from "./dom.js";
import { number, t } from "./i18n.js";
import { toast } from "./toast.js";

const LEAST = 5;
const MOST = 500;

/** The fields that name messages, and what they say. */
function scope({ messages, settings }) {
  const last = h("input", { class: "input", type: "number", min: LEAST, max: MOST, step: 1, required: true, value: settings.last_n, inputmode: "numeric" });
  const first = h("input", { class: "input", type: "number", min: 1, max: messages || null, step: 1, value: 1, inputmode: "numeric" });
  const to = h("input", { class: "input", type: "number", min: 1, max: messages || null, step: 1, value: Math.min(messages, settings.last_n) || 1, inputmode: "numeric" });
  const lastPart = h("div", {}, field({ label: t("entries.lastN"), control: last, hint: t("entries.lastNHint", { least: LEAST, most: MOST }) }));
  const rangePart = h(
    "div",
    { class: "entry-range", hidden: true },
    field({ label: t("entries.from"), control: first }),
    field({ label: t("entries.to"), control: to }),
    h("p", { class: "hint" }, t("entries.rangeHint", { most: MOST, messages: number(messages) })),
  );
  let ranged = false;
  const choice = segmented({
    legend: t("entries.scope"),
    options: [
      ["last", t("entries.scope.last")],
      ["range", t("entries.scope.range")],
    ],
    value: "last",
    onchange: (value) => {
      ranged = value === "range";
      lastPart.hidden = ranged;
      rangePart.hidden = !ranged;
      last.required = !ranged;
      for (const each of [first, to]) each.required = ranged;
      for (const each of [last, first, to]) each.disabled = each === last ? ranged : !ranged;
    },
  });
  for (const each of [first, to]) each.disabled = true;
  return {
    element: h("div", { class: "entry-scope" }, choice, lastPart, rangePart),
    values: () => (ranged ? { first: Number(first.value), to: Number(to.value) } : { last: Number(last.value) }),
  };
}

export async function askGenerate(pane) {
  const chosen = scope(pane.data);
  const done = await openDialog({
    title: t("entries.generateTitle"),
    content: [h("p", { class: "dialog-text" }, t(pane.data.settings.review ? "entries.generateReview" : "entries.generateText")), chosen.element],
    action: t("entries.generate"),
    submit: async () => {
      await pane.api.send("POST", "", { action: "generate", ...chosen.values() });
      return true;
    },
  });
  if (!done) return;
  toast(t("recall.begun"));
  await pane.tell();
}

export async function askWrite(pane) {
  const chosen = scope(pane.data);
  const title = h("input", { class: "input", maxlength: 200, autocomplete: "off", autofocus: true });
  const text = h("textarea", { class: "input", rows: 6, maxlength: 40_000 });
  const done = await openDialog({
    title: t("entries.writeTitle"),
    content: [
      h("p", { class: "dialog-text" }, t("entries.writeText")),
      field({ label: t("entries.title"), control: title, hint: t("entries.titleHint") }),
      field({ label: t("entries.text"), control: text }),
      chosen.element,
    ],
    action: t("action.save"),
    submit: () => pane.api.send("POST", "", { action: "write", title: title.value.trim(), text: text.value.trim(), ...chosen.values() }),
  });
  if (!done) return;
  toast(t("saved.saved"));
  await pane.tell();
}
