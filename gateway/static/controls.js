// The small controls that every page shares.

import { freshId, h, replace } from "./dom.js";
import { t } from "./i18n.js";
import { icon } from "./icons.js";

/** A button that shows only an icon: its name is its label and its hint. */
export function iconButton(name, label, onclick, props = {}) {
  return h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...props }, icon(name));
}

/** A labelled field. `control` is the input; hint and error are tied to it for screen readers. Returns the row with `setError`. */
export function field({ label, control, hint = "" }) {
  control.id ||= freshId("field");
  const hintId = `${control.id}-hint`;
  const errorId = `${control.id}-error`;
  const error = h("p", { class: "field-error", id: errorId, hidden: true });
  control.setAttribute("aria-describedby", `${hint ? hintId : ""} ${errorId}`.trim());
  const row = h(
    "div",
    { class: "field" },
    h("label", { class: "label", for: control.id }, label),
    control,
    hint && h("p", { class: "hint", id: hintId }, hint),
    error,
  );
  row.setError = (text) => {
    error.textContent = text;
    error.hidden = !text;
    control.toggleAttribute("aria-invalid", Boolean(text));
  };
  return row;
}

/** A `<select>` of `[value, label]` pairs. */
export function select(options, value, props = {}) {
  return h(
    "select",
    { class: "input", ...props },
    options.map(([key, label]) => h("option", { value: key, selected: key === value }, label)),
  );
}

/** A few choices of which one is taken, as radio buttons that look like one bar. */
export function segmented({ legend, options, value, onchange }) {
  const name = freshId("seg");
  return h(
    "fieldset",
    { class: "segmented" },
    h("legend", { class: "sr-only" }, legend),
    options.map(([key, label]) =>
      h(
        "label",
        { class: "segment" },
        h("input", { type: "radio", name, value: key, checked: key === value, onchange: () => onchange(key) }),
        h("span", {}, label),
      ),
    ),
  );
}

/** A button that copies; for two seconds it says so. `text` may be a function. */
export function copyButton(text, label = t("action.copy"), cls = "text-button") {
  const caption = h("span", { class: "copy-caption" }, label);
  const face = h("span", { class: "copy-face" }, icon("copy"));
  const button = h("button", { type: "button", class: `${cls} copy`, title: label }, face, caption);
  button.addEventListener("click", async () => {
    const done = await copyText(typeof text === "function" ? text() : text);
    replace(face, icon(done ? "check" : "warn"));
    caption.textContent = done ? t("action.copied") : t("action.copyFailed");
    setTimeout(() => {
      replace(face, icon("copy"));
      caption.textContent = label;
    }, 2000);
  });
  return button;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text); // the clipboard needs a secure context; a selection works everywhere
  }
}

function copyBySelection(text) {
  const area = h("textarea", { class: "sr-only", readonly: true });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

/** A state in words, with a colour that repeats it: "calm", "good", "warn". */
export function pill(text, tone = "calm") {
  return h("span", { class: `pill tone-${tone}` }, h("span", { class: "dot", "aria-hidden": "true" }), text);
}
