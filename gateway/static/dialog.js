// Questions over the page: one confirmation, one line of text, or a small form. All are native modal dialogs: focus stays inside, Esc says no.

import { freshId, h } from "./dom.js";
import { iconButton } from "./controls.js";
import { t } from "./i18n.js";
import { isComposing } from "./ime.js";
import { explain } from "./states.js";

/**
 * Opens a dialog around `content` (nodes). `submit` is an async function run by the main button; when it resolves, the dialog closes and its value is
 * the result; when it fails, the reason is shown and the dialog stays. Closing any other way gives undefined.
 */
export function openDialog({ title, content = [], action, danger = false, submit = async () => true, cancel = t("action.cancel") }) {
  const titleId = freshId("dialog");
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const main = action && h("button", { type: "submit", class: danger ? "button danger" : "button primary" }, action);
  const form = h(
    "form",
    { method: "dialog", class: "dialog-form" },
    h(
      "header",
      { class: "dialog-head" },
      h("h2", { id: titleId }, title),
      iconButton("close", t("action.close"), () => dialog.close()),
    ),
    content,
    problem,
    h("footer", { class: "dialog-foot" }, h("button", { type: "button", class: "button", onclick: () => dialog.close() }, cancel), main),
  );
  const dialog = h("dialog", { "aria-labelledby": titleId }, form);
  let result;

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (main?.disabled) return;
    problem.hidden = true;
    if (main) main.disabled = true;
    try {
      result = await submit();
      dialog.close();
    } catch (error) {
      problem.textContent = explain(error);
      problem.hidden = false;
    } finally {
      if (main) main.disabled = false;
    }
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && isComposing(event)) event.preventDefault();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });

  const leave = () => dialog.close(); // what it asks is about the page that is left
  addEventListener("hashchange", leave);
  document.body.append(dialog);
  dialog.showModal();
  (form.querySelector("[autofocus]") ?? form.querySelector("footer button")).focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      removeEventListener("hashchange", leave);
      dialog.remove();
      resolve(result);
    });
  });
}

/** Asks once; the title names the object, the button names the deed. `submit` runs while the dialog shows. */
export function confirmDialog({ title, body, action, danger = false, submit }) {
  return openDialog({ title, content: [h("p", { class: "dialog-text" }, body)], action, danger, submit });
}

/** Asks for one line of text. */
export function askText({ title, label, value = "", action, maxlength = 200, submit }) {
  const id = freshId("ask");
  const input = h("input", { id, class: "input", value, maxlength, required: true, autocomplete: "off", autofocus: true });
  const asked = openDialog({
    title,
    content: [h("label", { class: "label", for: id }, label), input],
    action,
    submit: () => submit(input.value.trim()),
  });
  input.select();
  return asked;
}
