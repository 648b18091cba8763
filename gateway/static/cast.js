// Who answers in a talk: one character or several. A set of chips for choosing, and the dialog that changes a talk's cast.

import { openDialog } from "./dialog.js";
import { h } from "./dom.js";
import { t } from "./i18n.js";
import { icon } from "./icons.js";

export const CAST_MAX = 8;

/**
 * Chips to choose characters from, one at least. `characters` as in `/api/me`; `chosen` is a list of ids, the first of which answers when nobody is
 * called. The element has `chosen()`, in the order in which they were chosen.
 */
export function castPicker(characters, chosen, onchange = () => {}) {
  let picked = chosen.filter((id) => characters.some((each) => each.id === id));
  const boxes = characters.map(({ id, name }) => {
    const box = h("input", { type: "checkbox", class: "sr-only", value: id, checked: picked.includes(id) });
    box.addEventListener("change", () => {
      picked = box.checked ? [...picked, id] : picked.filter((each) => each !== id);
      if (!picked.length || picked.length > CAST_MAX) {
        box.checked = !box.checked; // somebody has to answer, and a crowd does not
        picked = box.checked ? [...picked, id] : picked.filter((each) => each !== id);
      }
      onchange(picked);
    });
    return h("label", { class: "cast-chip" }, box, h("span", {}, icon("person"), name));
  });
  const element = h("fieldset", { class: "cast" }, h("legend", { class: "sr-only" }, t("new.character")), boxes);
  element.chosen = () => picked;
  return element;
}

/** The names of a talk's characters in one line. */
export function castNames(characters, ids) {
  return ids.map((id) => characters.find((each) => each.id === id)?.name ?? id).join(" · ");
}

/** Asks who answers from now on; `submit(ids)` is run while the dialog shows. */
export function askCast(characters, ids, submit) {
  const picker = castPicker(characters, ids);
  return openDialog({
    title: t("cast.title"),
    content: [h("p", { class: "dialog-text" }, t("cast.text")), picker],
    action: t("action.save"),
    submit: () => submit(picker.chosen()),
  });
}
