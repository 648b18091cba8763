// The list of entries: what is shown, what is ticked, and what can be done with several at once (RS-83, RS-84).

import { iconButton } from "./controls.js";
import { confirmDialog } from "./dialog.js";
import { h, replace } from "./dom.js";
import { number, t, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { entryRow } from "./memory-entries-row.js";
import { openMenu } from "./menu.js";
import { emptyState } from "./states.js";

const PAGE = 100;

export class EntryList {
  #items = [];
  #most = PAGE;
  #ticked = new Set(); // ids
  #open = new Set(); // ids whose text is shown
  #inactive = true;
  #anchor = null; // the row that was ticked last: where a range begins

  constructor(pane) {
    this.pane = pane;
    this.head = h("div", { class: "entries-head" });
    this.bar = h("div", { class: "entries-bar", role: "group", "aria-label": t("entries.ticked") });
    this.body = h("div", {});
    this.element = h("section", { class: "recall-part" }, this.head, this.bar, this.body);
  }

  show(items) {
    this.#items = items;
    const ids = new Set(items.map(({ id }) => id));
    for (const id of this.#ticked) if (!ids.has(id)) this.#ticked.delete(id);
    this.#showHead();
    this.#showBar();
    if (!this.body.querySelector(".memory-edit")) this.#showRows(); // somebody types here
  }

  get #wanted() {
    return this.#inactive ? this.#items : this.#items.filter(({ enabled }) => enabled);
  }

  get #shown() {
    return this.#wanted.slice(0, this.#most);
  }

  #showHead() {
    const on = this.#items.filter(({ enabled }) => enabled);
    const more = iconButton("more", t("entries.more"), () => openMenu(more, this.#menu()), { "aria-haspopup": "menu", "aria-expanded": "false" });
    const off = this.#items.length - on.length;
    const box = h("input", {
      type: "checkbox",
      checked: this.#inactive,
      onchange: () => {
        this.#inactive = box.checked;
        this.#showRows();
      },
    });
    replace(
      this.head,
      h("h3", {}, t("memory.tab.entries")),
      this.#items.length > 0 && [
        h("p", { class: "hint num" }, t("entries.count", { on: on.length, all: this.#items.length }), " · ", tn("recall.tokensAbout", on.reduce((sum, { tokens }) => sum + tokens, 0))),
        off > 0 && h("label", { class: "check-line" }, box, h("span", {}, tn("entries.showInactive", off))),
        more,
      ],
    );
  }

  #menu() {
    return [
      { label: t("entries.allOn"), icon: "check", action: () => this.#switch("all", true) },
      { label: t("entries.allOff"), icon: "block", action: () => this.#switch("all", false) },
      null,
      { label: t("entries.tickAll"), icon: "menu", action: () => this.#tickAll() },
    ];
  }

  #showBar() {
    const n = this.#ticked.size;
    this.bar.hidden = !n;
    const ids = () => [...this.#ticked];
    replace(
      this.bar,
      h("span", { class: "num", role: "status" }, tn("entries.tickedCount", n)),
      h("button", { type: "button", class: "button small", onclick: () => this.#switch(ids(), true) }, icon("check"), t("entries.enableTicked")),
      h("button", { type: "button", class: "button small", onclick: () => this.#switch(ids(), false) }, icon("block"), t("entries.disableTicked")),
      h("button", { type: "button", class: "text-button", onclick: () => this.#untick() }, t("entries.untick")),
    );
  }

  #showRows() {
    if (!this.#items.length) {
      replace(this.body, emptyState("scroll", t("entries.none"), t("entries.noneText")));
      return;
    }
    const rows = this.#shown;
    if (!rows.length) {
      replace(this.body, h("p", { class: "hint" }, t("entries.allInactive")));
      return;
    }
    const focus = this.#focus();
    replace(
      this.body,
      h(
        "ul",
        { class: "memories", "aria-label": t("memory.tab.entries") },
        rows.map((each) => entryRow(each, this)),
      ),
      this.#wanted.length > rows.length && this.#more(this.#wanted.length - rows.length),
    );
    focus();
  }

  #more(rest) {
    const more = () => {
      this.#most += PAGE;
      this.#showRows();
      this.body.querySelectorAll(".entry-tick")[this.#most - PAGE]?.focus();
    };
    return h("button", { type: "button", class: "button", onclick: more }, t("recall.moreChunks", { n: number(rest) }));
  }

  /** Puts the focus back where it is now, once the rows are new. */
  #focus() {
    const id = this.body.contains(document.activeElement) && document.activeElement.closest("[data-id]")?.dataset.id;
    if (!id) return () => {};
    const controls = () => [...(this.body.querySelector(`[data-id="${id}"]`)?.querySelectorAll("input, summary, button") ?? [])];
    const at = controls().indexOf(document.activeElement);
    return () => controls()[at]?.focus();
  }

  isTicked({ id }) {
    return this.#ticked.has(id);
  }

  isOpen({ id }) {
    return this.#open.has(id);
  }

  setOpen({ id }, open) {
    if (open) this.#open.add(id);
    else this.#open.delete(id);
  }

  /** One box; with `range` all from the last one that was clicked. */
  tick({ id }, on, range) {
    const rows = this.#shown.map((each) => each.id);
    const [from, to] = [rows.indexOf(this.#anchor), rows.indexOf(id)];
    const ids = range && from >= 0 ? rows.slice(Math.min(from, to), Math.max(from, to) + 1) : [id];
    for (const each of ids) {
      if (on) this.#ticked.add(each);
      else this.#ticked.delete(each);
    }
    this.#anchor = id;
    this.#boxes();
  }

  #tickAll() {
    for (const { id } of this.#shown) this.#ticked.add(id);
    this.#boxes();
  }

  #untick() {
    this.#ticked.clear();
    this.#boxes();
    this.body.querySelector(".entry-tick")?.focus();
  }

  /** The boxes and the bar as they stand now; the rows stay, and with them the focus. */
  #boxes() {
    for (const box of this.body.querySelectorAll(".entry-tick")) box.checked = this.#ticked.has(Number(box.value));
    this.#showBar();
  }

  async #switch(ids, enabled) {
    const told = t(enabled ? "entries.switchedOn" : "entries.switchedOff");
    const done = await this.pane.act(() => this.pane.api.send("POST", "switch", { ids, enabled }), told);
    if (done && ids !== "all") this.#untick();
  }

  toggle(item, enabled) {
    return this.pane.act(() => this.pane.api.send("POST", "switch", { ids: [item.id], enabled }));
  }

  async remove(item, name) {
    let gone = false;
    await confirmDialog({
      title: t("entries.deleteTitle", { name }),
      body: item.hidden > 0 ? tn("entries.deleteHidden", item.hidden) : t("entries.deleteText"),
      action: t("action.delete"),
      danger: true,
      submit: async () => {
        await this.pane.api.send("DELETE", String(item.id));
        gone = true;
      },
    });
    if (gone) await this.pane.act(async () => {}, t("entries.deleted"));
  }
}
