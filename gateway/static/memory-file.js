// One file of a memory: read with the origin of its lines beside it, edited as plain text, saved only over the text that was read (WD-17).

import { ApiError } from "./api.js";
import { iconButton, pill, segmented } from "./controls.js";
import { confirmDialog } from "./dialog.js";
import { h, replace } from "./dom.js";
import { t, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { guessLang } from "./lang.js";
import { conflictView, meanwhile } from "./memory-conflict.js";
import { draftOf, dropDraft, keepDraft } from "./memory-drafts.js";
import { meterView } from "./memory-meter.js";
import { RevisionDrawer } from "./memory-revisions.js";
import { fileView } from "./memory-view.js";
import { openMenu } from "./menu.js";
import { emptyState, errorState, explain, skeleton } from "./states.js";
import { toast } from "./toast.js";
import { ago } from "./when.js";

const BOM = /^\ufeff/;

export class FilePane {
  #file = null; // as the server gave it; null while there is none
  #mode = "view";
  #theirs = null; // what somebody changed meanwhile, shown while merging by hand
  #share = null;
  #drawer = null;

  /** `known` is the row of the list, `onChanged` is told when the list is no longer true. */
  constructor({ api, signal, path, known, prompt, onChanged }) {
    Object.assign(this, { api, signal, path, known, onChanged });
    this.#share = prompt;
    this.element = h("div", { class: "file" }, skeleton(8));
    document.addEventListener("keydown", (event) => this.#key(event), { signal });
    this.#load();
  }

  destroy() {
    this.#drawer?.destroy();
  }

  /** The size of the prompt's part, when it was counted anew. */
  setShare(prompt) {
    this.#share = prompt;
    if (this.meter) replace(this.meter, meterView(prompt));
  }

  // --- reading ---

  async #load() {
    try {
      this.#file = this.known?.exists === false ? null : await this.#read();
      if (this.signal.aborted) return;
      if (draftOf(this.api.scope, this.path)) this.#mode = "edit";
      this.#render();
    } catch (error) {
      if (error.name === "AbortError" || this.signal.aborted) return;
      replace(this.element, this.#head(), errorState(error, () => this.#load()));
    }
  }

  async #read() {
    try {
      return await this.api.get(this.api.file(this.path));
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return null;
      throw error;
    }
  }

  #render() {
    const curated = this.known?.role === "curated" && this.#file;
    const typing = document.activeElement === this.field ? this.field : null;
    this.meter = curated ? h("div", { class: "file-meter" }, meterView(this.#share)) : null;
    replace(this.element, this.#head(), this.meter, this.#mode === "edit" ? this.#editor() : this.#reader());
    if (!typing || this.#mode !== "edit") return;
    this.field.focus();
    this.field.setSelectionRange(typing.selectionStart, typing.selectionEnd);
  }

  #head() {
    const editable = this.#file?.editable ?? this.known?.editable ?? true;
    return h(
      "header",
      { class: "file-head" },
      h("a", { class: "text-button file-back", href: this.api.hash("files") }, icon("back"), t("files.back")),
      h(
        "div",
        { class: "file-title" },
        h("h2", {}, h("bdi", { lang: "en" }, this.path)),
        this.#file && h("p", { class: "hint" }, t("files.changed"), " ", ago(this.#file.changed_at)),
      ),
      h(
        "div",
        { class: "file-actions" },
        !editable && pill(t("files.readOnly")),
        editable &&
          (this.#file || this.#mode === "edit") &&
          segmented({
            legend: t("files.mode"),
            options: [
              ["view", t("files.view")],
              ["edit", t("files.edit")],
            ],
            value: this.#mode,
            onchange: (mode) => this.#turn(mode),
          }),
        this.#file && iconButton("history", t("files.history"), () => this.#history()),
        this.#file && editable && this.#more(),
      ),
    );
  }

  #more() {
    const items = [{ label: t("files.delete"), icon: "trash", danger: true, action: () => this.#remove() }];
    const button = iconButton("more", t("files.actions"), () => openMenu(button, items), {
      "aria-haspopup": "menu",
      "aria-expanded": "false",
    });
    return button;
  }

  #reader() {
    if (!this.#file) {
      const write = h("button", { type: "button", class: "button", onclick: () => this.#turn("edit") }, icon("edit"), t("files.write"));
      const role = this.known?.role ?? "knowledge";
      return emptyState("file", t("files.notThere"), t(`files.what.${role}`), write);
    }
    return fileView(this.#file) ?? emptyState("file", t("files.empty"), t(`files.what.${this.#file.role}`));
  }

  #turn(mode) {
    this.#mode = mode;
    this.#render();
    if (mode === "edit") this.field.focus();
    else this.element.querySelector(".segmented input:checked")?.focus();
  }

  // --- writing ---

  #editor() {
    const draft = draftOf(this.api.scope, this.path);
    const saved = this.#file?.content.replace(BOM, "").replace(/\r\n?/g, "\n") ?? "";
    this.basedOn = draft ? draft.basedOn : (this.#file?.hash ?? null);
    this.base = draft ? draft.base : saved;
    const value = draft?.content ?? saved;
    this.field = h("textarea", {
      class: "input file-text",
      "aria-label": t("files.text", { path: this.path }),
      lang: guessLang(value),
      spellcheck: "false",
      value,
      oninput: () => this.#typed(saved),
    });
    this.problem = h("p", { class: "problem", role: "alert", hidden: true });
    this.state = h("span", { class: "hint", role: "status" }, draft ? t("files.unsaved") : "");
    this.saveButton = h("button", { type: "submit", class: "button primary" }, t("action.save"));
    return h(
      "form",
      {
        class: "file-form",
        onsubmit: (event) => {
          event.preventDefault();
          this.#save();
        },
      },
      this.#theirs && meanwhile(this.#theirs),
      this.field,
      this.problem,
      h(
        "div",
        { class: "file-foot" },
        this.state,
        h("kbd", { "aria-hidden": "true" }, /Mac|iP/.test(navigator.platform) ? "⌘S" : "Ctrl S"),
        h("button", { type: "button", class: "button", onclick: () => this.#giveUp() }, t("action.cancel")),
        this.saveButton,
      ),
    );
  }

  #typed(saved) {
    const same = this.field.value === saved && this.basedOn === (this.#file?.hash ?? null);
    if (same) dropDraft(this.api.scope, this.path);
    else keepDraft(this.api.scope, this.path, { content: this.field.value, basedOn: this.basedOn, base: this.base });
    this.state.textContent = same ? "" : t("files.unsaved");
  }

  #giveUp() {
    dropDraft(this.api.scope, this.path);
    this.#theirs = null;
    this.#turn("view");
  }

  #key(event) {
    if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    if (this.#mode !== "edit" || !this.field?.isConnected || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    this.#save();
  }

  async #save() {
    if (this.saveButton.disabled) return;
    this.saveButton.disabled = true;
    this.problem.hidden = true;
    const before = this.#file;
    const content = this.field.value;
    try {
      const done = await this.#put(content, this.basedOn, this.base);
      const undo = () => this.#restore(before.content, done.hash);
      toast(t("files.saved", { path: this.path }), before && done.changed ? { action: { label: t("action.undo"), run: undo } } : {});
    } catch (error) {
      if (this.signal.aborted) toast(explain(error), { tone: "warn" });
      else if (error.code === "conflict") this.#conflict(content, error.details);
      else {
        this.problem.textContent = explain(error);
        this.problem.hidden = false;
      }
    } finally {
      this.saveButton.disabled = false;
    }
  }

  /** Writes a text over the one it was based on, and shows the file as it then is. What was typed in the meantime stays, as a change of that text. */
  async #put(content, basedOn, base) {
    const before = this.#typedNow;
    const done = await this.api.send("PUT", this.api.file(this.path), { content, based_on: basedOn, base });
    const typed = this.#typedNow;
    this.basedOn = done.hash;
    this.base = content;
    if (typed === before) dropDraft(this.api.scope, this.path);
    else keepDraft(this.api.scope, this.path, { content: typed, basedOn: done.hash, base: content });
    await this.#changed();
    return done;
  }

  /** The words in the field, while there is one. */
  get #typedNow() {
    return this.#mode === "edit" && this.field?.isConnected ? this.field.value : "";
  }

  async #changed() {
    this.#theirs = null;
    this.#mode = "view";
    this.#drawer?.close();
    if (this.signal.aborted) return;
    this.known = this.known && { ...this.known, exists: true };
    await this.#load();
    this.onChanged();
  }

  async #restore(content, basedOn) {
    try {
      await this.#put(content, basedOn);
    } catch (error) {
      toast(explain(error), { tone: "warn" });
    }
  }

  #conflict(content, { current, mine, theirs }) {
    const view = conflictView({
      path: this.path,
      mine,
      theirs,
      gone: current === null,
      takeTheirs: async () => {
        dropDraft(this.api.scope, this.path);
        await this.#changed();
      },
      keepMine: () => {
        keepDraft(this.api.scope, this.path, { content, basedOn: current?.hash ?? null, base: current?.content ?? "" });
        this.#turn("edit");
        this.#save();
      },
      merge: async () => {
        keepDraft(this.api.scope, this.path, { content, basedOn: current?.hash ?? null, base: current?.content ?? "" });
        this.#theirs = theirs;
        this.#file = await this.#read();
        this.#turn("edit");
      },
    });
    replace(this.element, this.#head(), view);
    view.querySelector("h3").focus();
  }

  async #remove() {
    const { content, hash } = this.#file;
    const lines = this.#file.lines.length;
    const done = await confirmDialog({
      title: t("files.deleteTitle", { path: this.path }),
      body: tn("files.deleteText", lines),
      action: t("files.deleteAction"),
      danger: true,
      submit: () => this.api.send("DELETE", this.api.file(this.path), undefined, { based_on: hash }),
    });
    if (!done) return;
    toast(t("files.deleted", { path: this.path }), { action: { label: t("action.undo"), run: () => this.#restore(content, null) } });
    dropDraft(this.api.scope, this.path);
    await this.#changed();
  }

  #history() {
    this.#drawer ??= new RevisionDrawer({
      api: this.api,
      path: this.path,
      restore: (content, basedOn) => this.#put(content, basedOn),
      frame: this.element.closest(".plain-frame"),
    });
    this.#drawer.show();
  }
}
