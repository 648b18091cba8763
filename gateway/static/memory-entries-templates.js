// The words that ask the model for an entry: templates that all chats share, and a chat's own wording, which is marked (RS-88).

import { field, iconButton, select } from "./controls.js";
import { confirmDialog, openDialog } from "./dialog.js";
import { h, replace } from "./dom.js";
import { t } from "./i18n.js";
import { icon } from "./icons.js";
import { guessLang } from "./lang.js";
import { openMenu } from "./menu.js";
import { isOperator } from "./session.js";
import { explain } from "./states.js";
import { toast } from "./toast.js";

const TEXT_MAX = 8_000;

export class EntryTemplates {
  #items = null;

  constructor(pane) {
    this.pane = pane;
    this.body = h("div", { class: "entries-settings" });
    this.mark = h("span", {});
    this.element = h("details", { class: "recall-part recall-fold" }, h("summary", {}, icon("file"), t("entries.prompt"), this.mark), this.body);
    this.element.addEventListener("toggle", () => this.element.open && !this.#items && this.#load());
  }

  show(settings) {
    this.settings = settings;
    replace(this.mark, settings.prompt_override && h("span", { class: "pill tone-good" }, h("span", { class: "dot", "aria-hidden": "true" }), t("entries.overridden")));
    if (this.#items && !this.body.contains(document.activeElement)) this.#show();
  }

  async #load() {
    try {
      ({ items: this.#items } = await this.pane.api.templates());
      if (!this.pane.signal.aborted) this.#show();
    } catch (error) {
      if (error.name !== "AbortError") replace(this.body, h("p", { class: "problem", role: "alert" }, explain(error)));
    }
  }

  get #chosen() {
    return this.#items.find(({ id }) => id === this.settings.template_id) ?? this.#items[0]; // the built-in one stands first
  }

  #show() {
    const chosen = this.#chosen;
    const own = this.settings.prompt_override;
    const more = iconButton("more", t("entries.templateMenu"), () => openMenu(more, this.#menu(chosen)), { "aria-haspopup": "menu", "aria-expanded": "false" });
    const choice = select(
      this.#items.map((each) => [String(each.id), each.builtin ? t("entries.builtin") : each.name]),
      String(chosen?.id ?? ""),
      { onchange: () => this.#configure({ template_id: Number(choice.value) || null }) },
    );
    replace(
      this.body,
      h("div", { class: "entry-template" }, field({ label: t("entries.template"), control: choice, hint: t("entries.templateHint") }), isOperator() && more),
      own
        ? h(
            "div",
            { class: "entry-override" },
            h("p", { class: "with-icon" }, icon("flag"), t("entries.overriddenText")),
            h("p", { class: "memory-quote", lang: guessLang(own) }, own),
          )
        : chosen && h("p", { class: "memory-quote", lang: guessLang(chosen.text) }, chosen.text),
      h(
        "div",
        { class: "row-start" },
        h("button", { type: "button", class: "button small", onclick: () => this.#askOwn(own || chosen?.text || "") }, icon("edit"), t(own ? "entries.changeOwn" : "entries.writeOwn")),
        own && h("button", { type: "button", class: "text-button", onclick: () => this.#configure({ prompt_override: "" }) }, t("entries.dropOwn")),
      ),
    );
  }

  /** Shared ones are the operators' to change. */
  #menu(chosen) {
    return [
      { label: t("entries.newTemplate"), icon: "plus", action: () => this.#askTemplate() },
      chosen && { label: t("entries.copyTemplate"), icon: "copy", action: () => this.#change(() => this.pane.api.sendTemplate("POST", `${chosen.id}/copy`, {})) },
      chosen && !chosen.builtin && { label: t("recall.edit"), icon: "edit", action: () => this.#askTemplate(chosen) },
      chosen && !chosen.builtin && null,
      chosen && !chosen.builtin && { label: t("action.delete"), icon: "trash", danger: true, action: () => this.#askDelete(chosen) },
    ].filter((each) => each !== false && each !== undefined);
  }

  async #askTemplate(old) {
    const name = h("input", { class: "input", value: old?.name ?? "", maxlength: 100, required: true, autocomplete: "off", autofocus: true });
    const text = h("textarea", { class: "input", rows: 10, value: old?.text ?? this.#chosen?.text ?? "", maxlength: TEXT_MAX, required: true });
    const done = await openDialog({
      title: t(old ? "entries.editTemplate" : "entries.newTemplate"),
      content: [
        h("p", { class: "dialog-text" }, t("entries.sharedText")),
        field({ label: t("entries.templateName"), control: name }),
        field({ label: t("entries.prompt"), control: text }),
      ],
      action: t("action.save"),
      submit: () => this.pane.api.sendTemplate(old ? "PATCH" : "POST", old ? String(old.id) : "", { name: name.value.trim(), text: text.value.trim() }),
    });
    if (done) await this.#change(async () => done);
  }

  async #askDelete(old) {
    let gone = false;
    await confirmDialog({
      title: t("entries.deleteTemplateTitle", { name: old.name }),
      body: t("entries.deleteTemplateText"),
      action: t("action.delete"),
      danger: true,
      submit: async () => {
        await this.pane.api.sendTemplate("DELETE", String(old.id));
        gone = true;
      },
    });
    if (gone) await this.#change(async () => null);
  }

  async #change(deed) {
    try {
      await deed();
      toast(t("saved.saved"));
      await this.#load();
      await this.pane.tell();
    } catch (error) {
      toast(explain(error), { tone: "warn" });
    }
  }

  async #askOwn(text) {
    const area = h("textarea", { class: "input", rows: 10, value: text, maxlength: TEXT_MAX, required: true, autofocus: true });
    await openDialog({
      title: t("entries.ownTitle"),
      content: [h("p", { class: "dialog-text" }, t("entries.ownText")), field({ label: t("entries.prompt"), control: area })],
      action: t("action.save"),
      submit: async () => {
        await this.pane.api.send("PATCH", "settings", { prompt_override: area.value.trim() });
        await this.pane.tell();
        this.#show();
        return true;
      },
    });
  }

  async #configure(changes) {
    await this.pane.act(() => this.pane.api.send("PATCH", "settings", changes), t("saved.saved"));
    this.#show();
  }
}
