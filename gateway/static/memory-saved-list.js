// One list of saved memories: how full it is, a filter, its rows, what the AI changed lately, and what can be done with the whole list.

import { shareBar } from "./bars.js";
import { iconButton, segmented } from "./controls.js";
import { h, replace } from "./dom.js";
import { number, t, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { guessLang } from "./lang.js";
import { askAdd, askFromChat, askGenerate } from "./memory-saved-add.js";
import { sameList } from "./memory-saved-api.js";
import { askClear, askImport, saveExport } from "./memory-saved-batch.js";
import { listName, useText } from "./memory-saved-names.js";
import { MemoryRow } from "./memory-saved-row.js";
import { openMenu } from "./menu.js";
import { readings } from "./refresh.js";
import { emptyState, errorState, explain, skeleton } from "./states.js";
import { toast } from "./toast.js";
import { ago } from "./when.js";

const FILTERS = ["all", "pinned", "active", "dormant"];
const fold = (text) => text.normalize("NFKC").toLowerCase();

export class SavedPane {
  #rows = new Map(); // id → MemoryRow
  #items = [];
  #filter = "all";
  #query = "";
  #begin = readings();

  /** `data` is the answer about all lists; `onChanged` is called when the use of any list is another now. */
  constructor({ place, api, address, signal, list, data, onChanged }) {
    Object.assign(this, { place, api, address, signal, list, data, onChanged });
    this.limits = data.limits;
    this.use = h("div", { class: "saved-use" });
    this.lately = h("div", { class: "saved-lately" });
    this.tools = h("div", { class: "saved-tools" });
    this.body = h("div", { class: "saved-body" }, skeleton(6));
    replace(place, this.#head(), this.use, this.tools, this.lately, this.body);
    this.load();
  }

  focusFilter() {
    this.search?.focus();
  }

  async load() {
    const isNewest = this.#begin();
    try {
      const [answer, changes] = await Promise.all([this.api.rows(this.list), this.list.manages ? this.api.changes(this.list) : { changes: [] }]);
      if (this.signal.aborted || !isNewest()) return;
      this.#items = answer.items;
      this.limits = answer.limits;
      this.#show();
      replace(this.lately, this.#changesView(changes.changes));
    } catch (error) {
      if (error.name === "AbortError" || this.signal.aborted || !isNewest()) return;
      replace(
        this.body,
        errorState(error, () => {
          replace(this.body, skeleton(6));
          this.load();
        }),
      );
    }
  }

  /** A row is another now, or new (`focus` shows it); null takes it away. */
  put(id, item, { focus = false } = {}) {
    const at = this.#items.findIndex((each) => each.id === id);
    if (!item || !sameList(item, this.list)) this.#items = this.#items.filter((each) => each.id !== id);
    else if (at < 0) this.#items.push(item);
    else this.#items[at] = item;
    this.#show();
    this.onChanged();
    if (focus && item) this.reveal(id);
  }

  /** Shows a row whatever the filter hides, and puts the focus on it. */
  reveal(id) {
    if (!this.#rows.has(id)) {
      this.#filter = "all";
      this.#query = "";
      this.#show({ tools: true });
    }
    this.#rows.get(id)?.reveal();
  }

  // --- the frame ---

  #head() {
    const add = h("button", { type: "button", class: "button primary", onclick: () => this.#add() }, icon("plus"), t("saved.add"));
    const more = iconButton("more", t("saved.more"), () => openMenu(more, this.#menu()), { "aria-haspopup": "menu", "aria-expanded": "false" });
    return h(
      "header",
      { class: "saved-head" },
      h("a", { class: "text-button file-back", href: this.address.hash("saved") }, icon("back"), t("saved.back")),
      h("div", { class: "saved-title" }, h("h2", {}, listName(this.list)), h("p", { class: "hint" }, t(`saved.about.${this.list.manages ? this.list.list : "taught"}`))),
      this.list.manages && h("div", { class: "file-actions" }, add, more),
    );
  }

  #menu() {
    const own = this.list.list !== "space";
    return [
      { label: t("saved.generate"), icon: "spark", action: () => askGenerate(this) },
      own && { label: t("saved.fromChat"), icon: "channel", action: () => askFromChat(this) },
      null,
      { label: t("saved.export"), icon: "down", action: () => saveExport(this) },
      { label: t("saved.import"), icon: "attach", action: () => askImport(this) },
      null,
      { label: t("saved.clear"), icon: "trash", danger: true, action: () => askClear(this) },
    ].filter((item) => item !== false);
  }

  async #add() {
    await askAdd(this);
  }

  #showUse() {
    const pinned = this.#items.filter((each) => each.pinned).length;
    const use = { pinned, unpinned: this.#items.length - pinned };
    const asleep = this.limits.ageing ? this.#items.filter((each) => each.state === "dormant").length : 0;
    if (!this.list.manages) return replace(this.use);
    return replace(
      this.use,
      h(
        "p",
        { class: use.unpinned >= this.limits.unpinned_max ? "hint num tone-warn" : "hint num" },
        useText(use, this.limits),
        asleep > 0 && [" · ", tn("saved.asleep", asleep)],
        !this.limits.ageing && [" · ", t("saved.noAgeing")],
      ),
      shareBar(Math.min(1, use.unpinned / this.limits.unpinned_max)),
    );
  }

  #showTools() {
    this.search = h("input", {
      type: "search",
      class: "input",
      value: this.#query,
      placeholder: t("saved.search"),
      "aria-label": t("saved.search"),
      oninput: () => {
        this.#query = this.search.value;
        this.#show();
      },
    });
    const filters = segmented({
      legend: t("saved.filter"),
      options: FILTERS.map((name) => [name, t(`saved.filter.${name}`)]),
      value: this.#filter,
      onchange: (name) => {
        this.#filter = name;
        this.#show();
      },
    });
    replace(this.tools, this.search, filters);
  }

  // --- the rows ---

  #show({ tools = false } = {}) {
    this.#showUse();
    if (!this.#items.length) {
      replace(this.tools);
      this.search = null;
      this.#rows.clear();
      replace(this.body, this.#empty());
      return;
    }
    if (tools || !this.search) this.#showTools();
    const found = this.#items.filter((each) => this.#fits(each)).sort(order);
    const known = this.#rows;
    this.#rows = new Map(
      found.map((item) => {
        const row = known.get(item.id) ?? new MemoryRow(this);
        row.show(item);
        return [item.id, row];
      }),
    );
    if (!found.length) {
      replace(this.body, emptyState("search", t("saved.noneFound"), t("saved.noneFoundText")));
      return;
    }
    const list = this.body.querySelector("ul.memories");
    const rows = [...this.#rows.values()].map(({ element }) => element);
    if (list && rows.length === list.children.length && rows.every((row, at) => list.children[at] === row)) return; // the focus stays where it is
    replace(this.body, h("ul", { class: "memories", "aria-label": listName(this.list) }, rows));
  }

  #fits(item) {
    const words = fold(this.#query).split(/\s+/).filter(Boolean);
    const text = fold([item.content, ...item.tags].join(" "));
    const state = this.#filter === "all" || (this.#filter === "pinned" ? item.pinned : item.state === this.#filter && !item.pinned);
    return state && words.every((word) => text.includes(word));
  }

  #empty() {
    if (!this.list.manages) return emptyState("book", t("saved.empty.taught"), t("saved.emptyText.taught"));
    return emptyState(
      "book",
      t(`saved.empty.${this.list.list}`),
      t(this.list.saves ? "saved.emptyText" : "saved.emptyText.byHand"),
      h("button", { type: "button", class: "button", onclick: () => this.#add() }, icon("plus"), t("saved.add")),
    );
  }

  // --- what the AI changed ---

  #changesView(changes) {
    if (!changes.length) return null;
    return h(
      "details",
      { class: "saved-changes" },
      h("summary", {}, icon("history"), tn("saved.changes", changes.length)),
      h(
        "ul",
        { class: "rows" },
        changes.map((each) => this.#changeView(each)),
      ),
    );
  }

  #changeView(change) {
    const button = h(
      "button",
      { type: "button", class: "button small", "aria-label": t("saved.undoOf", { text: (change.after ?? change.before ?? "").slice(0, 60) }) },
      icon("undo"),
      t("saved.undo"),
    );
    button.addEventListener("click", () => this.#undo(change, button));
    return h(
      "li",
      { class: "row is-top" },
      h(
        "div",
        { class: "row-main change" },
        h("p", { class: "hint" }, t(`saved.op.${change.op}`), " · ", t(`saved.actor.${change.actor}`), " · ", ago(change.at)),
        change.before && h("del", { lang: guessLang(change.before) }, change.before),
        change.after && h("ins", { lang: guessLang(change.after) }, change.after),
      ),
      button,
    );
  }

  async #undo(change, button) {
    button.disabled = true;
    try {
      const done = await this.api.undo(change.id);
      const many = done.removed.length + done.rewritten.length + done.restored.length;
      toast(tn("saved.undone", many, { n: number(many) }));
      await this.load();
      this.onChanged();
    } catch (error) {
      button.disabled = false;
      toast(explain(error), { tone: "warn" });
    }
  }
}

/** Pins first, then what is awake, then what sleeps; the newest text first. */
function order(one, other) {
  const rank = ({ pinned, state }) => (pinned ? 0 : state === "active" ? 1 : state === "dormant" ? 2 : 3);
  return rank(one) - rank(other) || other.updated_at.localeCompare(one.updated_at) || other.id - one.id;
}
