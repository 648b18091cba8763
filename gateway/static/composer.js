// Where one writes: a field that grows to eight lines, files, commands, and one button that sends or stops.

import { ACCEPT, Attachments } from "./attachments.js";
import { CommandList } from "./commands.js";
import { iconButton } from "./controls.js";
import { freshId, h } from "./dom.js";
import { number, t, tn } from "./i18n.js";
import { isComposing, isPlainEnter } from "./ime.js";
import { fileSize } from "./names.js";
import { session } from "./session.js";
import { toast } from "./toast.js";

const SAVE_AFTER_MS = 250;
const MOST_LINES = 8;

/** Makes a textarea as high as its text, up to eight lines. */
export function grow(field) {
  const style = getComputedStyle(field);
  const most = parseFloat(style.lineHeight) * MOST_LINES + parseFloat(style.paddingTop) + parseFloat(style.paddingBottom);
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight, most)}px`;
  field.classList.toggle("is-full", field.scrollHeight > most + 1);
}

export class Composer {
  #running = false;
  #saveTimer = 0;
  #wanted = false; // sending was asked for while a file was still on its way

  /**
   * `onSend({text, attachments})` returns false when nothing was sent; `onStop()` ends the running turn; `loadDraft` and `saveDraft` keep the words
   * (nothing for guests). `above` is the line over the field. `commands` are offered with `/`.
   */
  constructor({ onSend, onStop, loadDraft, saveDraft, withFiles = true, commands = session.me.commands ?? [], above }) {
    Object.assign(this, { onSend, onStop, saveDraft });
    const id = freshId("composer");
    this.field = h("textarea", {
      id,
      class: "composer-field",
      rows: 1,
      placeholder: t(commands.length ? "composer.placeholder" : "composer.placeholderPlain"),
      "aria-label": t("composer.label"),
      "aria-describedby": `${id}-count`,
      enterkeyhint: "send",
      autocomplete: "off",
    });
    this.count = h("span", { class: "composer-count", id: `${id}-count`, role: "status" });
    this.files = new Attachments({ onChange: () => this.#filesChanged(), onProblem: (text) => this.#fileRefused(text) });
    this.commands = new CommandList({ field: this.field, commands, onTake: (text) => this.setText(text) });
    this.sendButton = iconButton("send", t("action.send"), () => this.#send(), { class: "round-button send" });
    this.stopButton = iconButton("stop", t("action.stop"), () => this.#stop(), { class: "round-button stop", hidden: true });
    this.box = h(
      "div",
      { class: "composer-box" },
      this.commands.element,
      this.files.element,
      this.field,
      h(
        "div",
        { class: "composer-tools" },
        withFiles && this.#fileButton(),
        h("span", { class: "composer-hint" }, t("composer.hint")),
        this.count,
        this.stopButton,
        this.sendButton,
      ),
    );
    this.element = h(
      "form",
      {
        class: "composer",
        "aria-label": t("composer.label"),
        onsubmit: (event) => {
          event.preventDefault();
          this.#send();
        },
      },
      above,
      this.box,
    );
    this.#listen(withFiles);
    const draft = loadDraft();
    this.files.restore(draft.attachments);
    this.setText(draft.text);
  }

  setText(text) {
    this.field.value = text;
    this.field.setSelectionRange(text.length, text.length);
    this.#changed();
  }

  clear() {
    this.files.clear();
    this.setText("");
  }

  /** Gives words and files back, before what was typed meanwhile. */
  giveBack({ text, attachments }) {
    this.files.restore(attachments);
    this.setText([text, this.field.value].filter(Boolean).join("\n\n"));
    this.focus();
  }

  setRunning(running) {
    if (this.#running === running) return;
    this.#running = running;
    const hadFocus = [this.stopButton, this.sendButton].includes(document.activeElement);
    this.stopButton.disabled = false;
    this.#buttons();
    if (hadFocus) this.field.focus();
  }

  focus() {
    if (matchMedia("(hover: hover)").matches) this.field.focus(); // on touch the keyboard would cover the talk
  }

  /** Writes the draft now; used when the page goes away. */
  flush = () => {
    clearTimeout(this.#saveTimer);
    this.saveDraft({ text: this.field.value, attachments: this.files.done });
  };

  destroy() {
    this.flush();
    removeEventListener("pagehide", this.flush);
    removeEventListener("resize", this.#resize);
  }

  #fileButton() {
    const { attachments_max: most, attachment_bytes: largest } = session.me.limits;
    const input = h("input", {
      type: "file",
      multiple: true,
      accept: ACCEPT,
      class: "sr-only",
      tabindex: -1,
      "aria-hidden": "true",
      onchange: () => {
        this.files.add(input.files);
        input.value = "";
      },
    });
    const label = `${t("attach.add")}: ${tn("attach.limits", most, { size: fileSize(largest) })}`;
    return [input, iconButton("attach", label, () => input.click())];
  }

  #listen(withFiles) {
    this.field.addEventListener("input", () => {
      this.#wanted = false;
      this.#changed();
    });
    this.field.addEventListener("keydown", (event) => this.#key(event));
    addEventListener("pagehide", this.flush);
    addEventListener("resize", this.#resize);
    this.box.addEventListener("click", (event) => event.target === this.box && this.field.focus());
    if (!withFiles) return;
    this.field.addEventListener("paste", (event) => {
      const files = [...event.clipboardData.files];
      if (!files.length || event.clipboardData.types.includes("text/plain")) return;
      event.preventDefault();
      this.files.add(files);
    });
    this.box.addEventListener("dragover", (event) => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      this.box.classList.add("is-target");
    });
    this.box.addEventListener("dragleave", (event) => !this.box.contains(event.relatedTarget) && this.box.classList.remove("is-target"));
    this.box.addEventListener("drop", (event) => {
      this.box.classList.remove("is-target");
      if (!event.dataTransfer.files.length) return;
      event.preventDefault();
      this.files.add(event.dataTransfer.files);
    });
  }

  #resize = () => grow(this.field);

  #key(event) {
    if (isComposing(event) || this.commands.key(event)) return;
    if (!isPlainEnter(event)) return;
    event.preventDefault();
    this.#send();
  }

  #changed() {
    if (this.field.isConnected) grow(this.field);
    this.commands.look();
    this.#countLeft();
    this.#buttons();
    clearTimeout(this.#saveTimer);
    this.#saveTimer = setTimeout(this.flush, SAVE_AFTER_MS);
  }

  #filesChanged() {
    this.#changed();
    if (this.#wanted && !this.files.busy) this.#send();
  }

  #fileRefused(text) {
    this.#wanted = false;
    toast(text, { tone: "warn" });
  }

  /** Speaks up only near the limit. */
  #countLeft() {
    const left = session.me.limits.text_max - [...this.field.value].length;
    const near = left < session.me.limits.text_max / 10;
    this.count.textContent = !near ? "" : left >= 0 ? t("composer.left", { n: number(left) }) : t("composer.over", { n: number(-left) });
    this.count.classList.toggle("tone-warn", left < 0);
    this.tooLong = left < 0;
  }

  #buttons() {
    const something = Boolean(this.field.value.trim()) || this.files.count > 0;
    this.stopButton.hidden = !this.#running;
    this.sendButton.hidden = this.#running && !something;
    this.sendButton.disabled = !something || this.tooLong;
  }

  #stop() {
    this.stopButton.disabled = true;
    setTimeout(() => {
      this.stopButton.disabled = false;
    }, 3000); // the stop may have got lost
    this.onStop();
  }

  #send() {
    const text = this.field.value.trim();
    this.#wanted = this.files.busy && !this.sendButton.disabled; // then it goes as soon as the files have arrived
    if (this.sendButton.disabled || this.#wanted || (!text && !this.files.done.length)) return;
    const words = { text, attachments: this.files.done };
    if (this.onSend(words) === false) return;
    this.commands.close();
    this.clear();
    this.flush();
    this.focus();
  }
}
