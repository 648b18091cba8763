// What is done with the passages of a chat: forget one, clear all in two steps, make them anew, bring a file in (RS-39 to RS-42).

import { field } from "./controls.js";
import { confirmDialog, openDialog } from "./dialog.js";
import { h } from "./dom.js";
import { t, tn } from "./i18n.js";
import { guessLang } from "./lang.js";
import { explain } from "./states.js";
import { toast } from "./toast.js";

/** The code of the first step; null when it could not be asked for. */
async function code(pane, values) {
  try {
    return (await pane.api.send("POST", "chunks/confirm", values)).code;
  } catch (error) {
    toast(explain(error), { tone: "warn" });
    return null;
  }
}

export async function askForget(pane, item, when) {
  const yes = await code(pane, { what: "forget", chunk: item.id });
  if (yes === null) return;
  let gone = false;
  await openDialog({
    title: t("recall.forgetTitle", { when }),
    content: [h("p", { class: "dialog-text" }, t("recall.forgetText")), h("p", { class: "memory-quote", lang: guessLang(item.text) }, item.text.slice(0, 300))],
    action: t("recall.forget"),
    danger: true,
    submit: async () => {
      await pane.api.send("DELETE", `chunks/${item.id}?code=${yes}`);
      gone = true;
    },
  });
  if (!gone) return;
  toast(t("recall.forgotten"));
  await pane.load();
}

/** Two steps: what it means, then a word to be typed. */
export async function askClearChunks(pane) {
  const yes = await code(pane, { what: "clear" });
  if (yes === null) return;
  const first = await confirmDialog({
    title: tn("recall.clearTitle", pane.totals.chunks),
    body: t("recall.clearText"),
    action: t("recall.clearNext"),
    danger: true,
    submit: async () => true,
  });
  if (!first) return;
  const done = await confirmDialog({
    title: t("recall.clearAgainTitle"),
    body: tn("recall.clearAgainText", pane.totals.chunks),
    action: tn("recall.clearAction", pane.totals.chunks),
    danger: true,
    submit: () => pane.api.send("POST", "chunks/clear", { code: yes }),
  });
  if (!done) return;
  toast(tn("recall.cleared", done.cleared));
  await pane.load();
}

export async function askRebuild(pane) {
  const done = await confirmDialog({
    title: t("recall.rebuildTitle"),
    body: tn("recall.rebuildText", pane.totals.tokens),
    action: t("recall.rebuild"),
    submit: () => pane.api.send("POST", "chunks/rebuild", {}),
  });
  if (!done) return;
  toast(tn("recall.rebuilt", done.chunks));
  await pane.load();
}

/** A file, then what it would do, then the yes. */
export async function askImportChunks(pane) {
  const file = h("input", { class: "input", type: "file", accept: ".json,.marinara,application/json", required: true, autofocus: true });
  const read = await openDialog({
    title: t("recall.import"),
    content: [h("p", { class: "dialog-text" }, t("recall.importText")), field({ label: t("saved.importFile"), control: file })],
    action: t("saved.importLook"),
    submit: async () => {
      const document = await file.files[0].text();
      return { document, plan: await pane.api.send("POST", "chunks/import/preview", { document }) };
    },
  });
  if (!read) return;
  const { plan } = read;
  const done = await openDialog({
    title: t("recall.import"),
    content: [
      h("p", {}, tn("recall.importNew", plan.new)),
      plan.standing > 0 && h("p", {}, tn("recall.importStanding", plan.standing)),
      plan.off > 0 && h("p", {}, tn("recall.importOff", plan.off)),
      pane.chat.shared && h("p", { class: "hint" }, t("recall.importAlone")),
    ],
    action: t("saved.importAction"),
    submit: () => pane.api.send("POST", "chunks/import", { document: read.document }),
  });
  if (!done) return;
  toast(tn("recall.imported", done.new));
  await pane.load();
}
