// One saved memory: its words, how it stands, and what can be done with it. It is edited in place.

import { ApiError } from "./api.js";
import { iconButton } from "./controls.js";
import { confirmDialog } from "./dialog.js";
import { h, replace } from "./dom.js";
import { number, t, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { isComposing } from "./ime.js";
import { guessLang } from "./lang.js";
import { askLimits } from "./memory-saved-limits.js";
import { countInto } from "./memory-saved-names.js";
import { openMenu } from "./menu.js";
import { explain } from "./states.js";
import { toast } from "./toast.js";
import { absolute, ago } from "./when.js";

export class MemoryRow {
  #item = null;
  #editing = false;

  constructor(pane) {
    this.pane = pane;
    this.element = h("li", { class: "memory" });
  }

  show(item) {
    if (this.#editing && item.revision === this.#item?.revision) return; // somebody types here
    if (this.#item === item && !this.#editing) return;
    const hadFocus = this.element.contains(document.activeElement) && document.activeElement?.dataset.part;
    this.#item = item;
    this.#editing = false;
    this.#render();
    if (hadFocus) this.element.querySelector(`[data-part="${hadFocus}"]`)?.focus();
  }

  /** Brings the row into sight and gives it the focus. */
  reveal() {
    this.element.scrollIntoView({ block: "nearest" });
    (this.element.querySelector("[data-part]") ?? this.element).focus({ preventScroll: true });
  }

  get #state() {
    const { pinned, state } = this.#item;
    return pinned ? "pinned" : state;
  }

  #render() {
    const { content } = this.#item;
    this.element.className = `memory is-${this.#state}`;
    this.element.dataset.id = this.#item.id;
    replace(
      this.element,
      this.pane.list.manages ? this.#pinButton() : h("span", { class: "memory-mark", "aria-hidden": "true" }, icon("book")),
      h(
        "div",
        { class: "memory-main" },
        h("p", { class: "memory-text", lang: guessLang(content) }, content),
        this.#marks(),
      ),
      this.pane.list.manages && this.#moreButton(),
    );
  }

  #pinButton() {
    const { pinned } = this.#item;
    const button = iconButton(
      "pin",
      pinned ? t("saved.unpin") : t("saved.pin"),
      () => this.#act(pinned ? "unpin" : "pin", pinned ? "saved.unpinned" : "saved.pinned", button),
      { class: "icon-button memory-pin", "aria-pressed": String(pinned), dataset: { part: "pin" } },
    );
    return button;
  }

  #moreButton() {
    const name = this.#item.content.slice(0, 60);
    const button = iconButton("more", t("saved.rowMenu", { text: name }), () => openMenu(button, this.#menu(button)), {
      "aria-haspopup": "menu",
      "aria-expanded": "false",
      dataset: { part: "more" },
    });
    return button;
  }

  #menu(button) {
    const { state, pinned, list, private: hidden } = this.#item;
    return [
      { label: t("saved.edit"), icon: "edit", action: () => this.#edit() },
      state === "dormant" && !pinned && { label: t("saved.wake"), icon: "sun", action: () => this.#act("wake", "saved.woken", button) },
      { label: t("saved.limits"), icon: "gear", action: () => askLimits(this.#item, this.pane) },
      list !== "space" && {
        label: hidden ? t("saved.allowShared") : t("saved.keepPrivate"),
        icon: hidden ? "people" : "block",
        action: () => this.#save({ private: !hidden }, hidden ? "saved.sharedNow" : "saved.privateNow"),
      },
      null,
      { label: t("saved.delete"), icon: "trash", danger: true, action: () => this.#remove() },
    ].filter((item) => item !== false);
  }

  // --- how it stands ---

  #marks() {
    const item = this.#item;
    const { ageing, dormant_after_days: days } = this.pane.limits;
    const channels = item.channel_ids.map((id) => this.pane.data.channels.find((each) => each.id === id)?.label || id);
    const marks = [
      item.pinned && mark("", t("saved.state.pinned"), t("saved.stateHint.pinned"), "good"), // the icon is the button beside it
      item.state === "archived" && mark("book", t("saved.state.archived"), t("saved.stateHint.archived")),
      item.state === "dormant" && !item.pinned && mark("moon", t("saved.state.dormant"), t("saved.stateHint.dormant")),
      ageing && !item.pinned && item.state === "active" && item.unused_days > 0 && unused(item.unused_days, days),
      item.tags.length > 0 && mark("tag", item.tags.join(" · "), t("saved.tagsHint")),
      channels.length > 0 && mark("channel", channels.join(" · "), t("saved.channelsHint")),
      item.list !== "space" && !item.private && mark("people", t("saved.shared"), t("saved.sharedHint")),
    ];
    return h(
      "p",
      { class: "memory-marks" },
      marks,
      h(
        "span",
        { class: "memory-facts" },
        this.#origin(),
        " · ",
        ago(item.updated_at),
        item.last_matched_at && !item.pinned && [" · ", t("saved.lastMatch"), " ", ago(item.last_matched_at)],
        item.was_of && ` · ${t("saved.wasOf", { name: item.was_of })}`,
      ),
    );
  }

  #origin() {
    const { origin, author, protected: kept, created_at: made } = this.#item;
    const who = author.kind === "person" && !author.you && author.name ? author.name : "";
    const words = who ? t("saved.origin.by", { name: who }) : t(`saved.origin.${origin}`);
    return h("span", { title: [absolute(made), kept ? t("saved.protectedHint") : t("saved.plainHint")].join(" · ") }, words);
  }

  // --- what one can do ---

  async #act(what, told, button) {
    button.disabled = true;
    try {
      const { memory } = await this.pane.api.act(this.#item.id, what);
      this.pane.put(memory.id, memory);
      toast(t(told));
      this.element.querySelector(`[data-part="${button.dataset.part}"]`)?.focus();
    } catch (error) {
      button.disabled = false;
      toast(explain(error), { tone: "warn" });
    }
  }

  async #save(values, told) {
    try {
      const { memory } = await this.pane.api.change(this.#item.id, values);
      this.pane.put(memory.id, memory);
      toast(t(told));
    } catch (error) {
      toast(explain(error), { tone: "warn" });
    }
  }

  async #remove() {
    const { id, content } = this.#item;
    const done = await confirmDialog({
      title: t("saved.deleteTitle"),
      body: h("span", { class: "memory-quote", lang: guessLang(content) }, content),
      action: t("saved.delete"),
      danger: true,
      submit: () => this.pane.api.remove(id),
    });
    if (!done) return;
    this.pane.put(id, null);
    this.pane.focusFilter();
    toast(t("saved.deleted"));
  }

  // --- editing in place ---

  #edit() {
    this.#editing = true;
    const item = this.#item;
    const most = this.pane.limits.content_max;
    const count = h("span", { class: "hint num" });
    const problem = h("p", { class: "problem", role: "alert", hidden: true });
    const area = h("textarea", { class: "input", rows: 3, value: item.content, lang: guessLang(item.content), "aria-label": t("saved.text") });
    const save = h("button", { type: "submit", class: "button small primary" }, t("action.save"));
    const cancel = h("button", { type: "button", class: "button small", onclick: () => this.#stop() }, t("action.cancel"));
    countInto(count, area, most);
    const form = h(
      "form",
      {
        class: "memory-edit",
        onsubmit: async (event) => {
          event.preventDefault();
          save.disabled = true;
          problem.hidden = true;
          try {
            const { memory } = await this.pane.api.change(item.id, { content: area.value, based_on: item.revision });
            this.#editing = false;
            this.#item = null;
            this.pane.put(memory.id, memory);
            toast(t("saved.saved"));
            this.reveal();
          } catch (error) {
            save.disabled = false;
            problem.textContent = explain(error);
            problem.hidden = false;
            if (error instanceof ApiError && error.code === "changed") item.revision = error.details.memory.revision; // seen now: the next save counts
          }
        },
        onkeydown: (event) => {
          if (event.key === "Escape") this.#stop();
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !isComposing(event)) form.requestSubmit();
        },
      },
      area,
      problem,
      h("div", { class: "memory-edit-foot" }, count, cancel, save),
    );
    replace(this.element, form);
    area.focus();
  }

  #stop() {
    this.#editing = false;
    this.#render();
    this.reveal();
  }
}

function mark(iconName, text, hint, tone = "calm") {
  return h("span", { class: `memory-badge tone-${tone}`, title: hint }, iconName && icon(iconName), h("span", {}, text));
}

/** Days without a match of those after which a memory falls asleep. */
function unused(days, most) {
  return h("span", { class: "memory-badge", title: t("saved.unusedHint", { n: number(most) }) }, icon("clock"), tn("saved.unused", days, { most: number(most) }));
}
