// What is done with a whole list: clear it in two steps, save it as a file, bring one in (SM-76, SM-77, SM-91).

import { ApiError } from "./api.js";
import { field, segmented, select } from "./controls.js";
import { openDialog } from "./dialog.js";
import { h, replace } from "./dom.js";
import { number, t, tn } from "./i18n.js";
import { guessLang } from "./lang.js";
import { listKey } from "./memory-saved-api.js";
import { listName } from "./memory-saved-names.js";
import { toast } from "./toast.js";

const PINS_SHOWN = 20;

/** Two separate questions: everything that is not pinned, then the pins, which one set apart from the AI oneself. */
export async function askClear(pane) {
  const question = await pane.api.askClear(pane.list);
  const done = await openDialog({
    title: tn("saved.clearTitle", question.count, { list: listName(pane.list) }),
    content: [h("p", { class: "dialog-text" }, t("saved.clearText"))],
    action: t("saved.clearAction"),
    danger: true,
    submit: () => pane.api.clear(pane.list, question, true),
  });
  if (!done) return;
  toast(tn("saved.cleared", done.deleted));
  await pane.load();
  pane.onChanged();
  if (done.next) await askPins(pane, done.next);
}

async function askPins(pane, question) {
  const rest = question.pins.length - PINS_SHOWN;
  const done = await openDialog({
    title: tn("saved.clearPinsTitle", question.pins.length),
    content: [
      h("p", { class: "dialog-text" }, t("saved.clearPinsText")),
      h(
        "ul",
        { class: "quote-list" },
        question.pins.slice(0, PINS_SHOWN).map(({ content }) => h("li", { class: "memory-quote", lang: guessLang(content) }, content)),
      ),
      rest > 0 && h("p", { class: "hint" }, tn("saved.andMore", rest)),
    ],
    action: t("saved.clearPinsAction"),
    danger: true,
    cancel: t("saved.keepPins"),
    submit: () => pane.api.clear(pane.list, question, true),
  });
  if (!done) {
    await pane.api.clear(pane.list, question, false); // the question is closed: its answer cannot be used later
    return;
  }
  toast(tn("saved.cleared", done.deleted));
  await pane.load();
  pane.onChanged();
  if (done.next) await askPins(pane, done.next);
}

/** Saves the list, or all lists, as a file. */
export async function saveExport(pane) {
  let all = false;
  await openDialog({
    title: t("saved.export"),
    content: [
      h("p", { class: "dialog-text" }, t("saved.exportText")),
      segmented({
        legend: t("saved.list"),
        options: [
          ["one", listName(pane.list)],
          ["all", t("saved.exportAll")],
        ],
        value: "one",
        onchange: (value) => {
          all = value === "all";
        },
      }),
    ],
    action: t("saved.exportAction"),
    submit: async () => {
      const link = h("a", { href: pane.api.exportPath(all ? null : pane.list), download: "" });
      document.body.append(link);
      link.click();
      link.remove();
      return true;
    },
  });
}

/** A file, then what it would do, then the yes. */
export async function askImport(pane) {
  const file = h("input", { class: "input", type: "file", accept: ".json,application/json", required: true, autofocus: true });
  const read = await openDialog({
    title: t("saved.import"),
    content: [h("p", { class: "dialog-text" }, t("saved.importText")), field({ label: t("saved.importFile"), control: file })],
    action: t("saved.importLook"),
    submit: async () => {
      const document = await file.files[0].text();
      return { document, preview: await pane.api.preview({ document }) };
    },
  });
  if (read) await confirmImport(pane, read);
}

async function confirmImport(pane, { document, preview: first }) {
  const lists = pane.data.lists.filter(({ manages }) => manages);
  const choices = [["", t("saved.importNowhere")], ...lists.map((each, at) => [String(at), listName(each)])];
  const wish = { document, mode: "merge", keep_pins: false, cross: false };
  const counts = h("div", { class: "import-counts", role: "status" });
  const cross = h("input", {
    type: "checkbox",
    onchange: () => {
      wish.cross = cross.checked;
    },
  });
  const crossing = h("label", { class: "check-line", hidden: true }, cross, h("span", {}, t("saved.importCross")));
  const targets = first.lists.map((each) => {
    const at = each.target ? lists.findIndex((list) => listKey(list) === listKey(each.target)) : -1;
    return { at: each.at, choice: select(choices, at < 0 ? "" : String(at), { onchange: () => look() }), each };
  });

  function chosen() {
    return targets
      .filter(({ choice }) => choice.value)
      .map(({ at, choice }) => {
        const { list, character, space } = lists[Number(choice.value)];
        return { at, list, ...(character && { character }), ...(space && { space }) };
      });
  }

  async function look() {
    try {
      show(await pane.api.preview({ ...wish, targets: chosen() }));
    } catch (error) {
      if (error instanceof ApiError) replace(counts, h("p", { class: "problem" }, error.message));
    }
  }

  function show(preview) {
    crossing.hidden = !preview.crosses;
    replace(
      counts,
      h(
        "p",
        {},
        tn("saved.importNew", preview.new),
        preview.standing > 0 && ` · ${tn("saved.importStanding", preview.standing)}`,
        preview.replaced > 0 && ` · ${tn("saved.importReplaced", preview.replaced)}`,
      ),
      preview.faults.length > 0 && [
        h("p", { class: "problem" }, t("saved.importFaults")),
        h(
          "ul",
          { class: "quote-list" },
          preview.faults.slice(0, PINS_SHOWN).map(({ row, reason, content }) =>
            h("li", {}, h("span", { class: "hint" }, t("saved.importRow", { n: number(row + 1) }), " · ", t(`saved.importFault.${reason}`)), h("span", { class: "memory-quote", lang: guessLang(content) }, content.slice(0, 200))),
          ),
        ),
      ],
    );
  }

  const keep = h("input", {
    type: "checkbox",
    onchange: () => {
      wish.keep_pins = keep.checked;
      look();
    },
  });
  show(first);
  const done = await openDialog({
    title: t("saved.import"),
    content: [
      h(
        "ul",
        { class: "import-lists" },
        targets.map(({ each, choice }) =>
          h("li", {}, field({ label: `${importedName(each)} · ${tn("saved.importRows", each.rows)}`, control: choice })),
        ),
      ),
      segmented({
        legend: t("saved.importMode"),
        options: [
          ["merge", t("saved.importMode.merge")],
          ["replace", t("saved.importMode.replace")],
        ],
        value: "merge",
        onchange: (mode) => {
          wish.mode = mode;
          look();
        },
      }),
      first.lists.some(({ pins }) => pins > 0) && h("label", { class: "check-line" }, keep, h("span", {}, t("saved.importPins"))),
      crossing,
      counts,
    ],
    action: t("saved.importAction"),
    submit: async () => {
      try {
        return await pane.api.bringIn({ ...wish, targets: chosen() });
      } catch (error) {
        if (error instanceof ApiError && error.details.faults) show(error.details);
        throw error;
      }
    },
  });
  if (!done) return;
  toast(tn("saved.imported", done.new));
  await pane.load();
  pane.onChanged();
}

function importedName({ list, character_name: name, character }) {
  return list === "global" ? t("saved.everywhere") : list === "character" ? t("saved.with", { name: name || character }) : t("saved.inSomeSpace", { name: name || character });
}
