// The list of talks at the side: search, new, and for each talk its marks and its menu. Kept fresh by the open talk's stream and by asking now and then.

import { request } from "./api.js";
import { challengeMark } from "./challenge.js";
import { askText, confirmDialog } from "./dialog.js";
import { iconButton } from "./controls.js";
import { h, replace } from "./dom.js";
import { lang, t, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { isComposing } from "./ime.js";
import { guessLang } from "./lang.js";
import { openMenu } from "./menu.js";
import { readings } from "./refresh.js";
import { person } from "./session.js";
import { emptyState, errorState, skeleton } from "./states.js";
import { forgetChat } from "./store.js";
import { toast } from "./toast.js";
import { shelf } from "./when.js";

/** The list as it was when a page was left, so that the next one does not begin from nothing. */
let memo = { personId: "", chats: null, query: "", found: "", scrollTop: 0 };

let present = null; // the list on the page

/** Tells the list what changed of a talk whose page may have been left since. */
export function tellList(chat) {
  present?.apply(chat);
}

const REFRESH_MS = 30_000;
const REFRESH_RUNNING_MS = 3_000; // while an answer is made in a talk that is not open
const SEARCH_AFTER_MS = 200;

/** A talk's title, or the words for one that has none yet. */
export const titleOf = (chat) => chat.title || t("chats.untitled");

export class ChatList {
  #chats = null;
  #query = ""; // what is looked for
  #found = ""; // and what the chats here were found with
  #shown = ""; // the list as it stands on the page
  #begin = readings();
  #latest = null; // the newest reading
  #applied = 0;
  #refreshedAt = 0;
  #searchTimer = 0;
  #end = new AbortController();

  /** `activeId` is the open talk; `onGone(id)` is called when a talk was deleted here, `onRenamed(chat)` when it got another title. */
  constructor({ activeId, onGone, onRenamed }) {
    Object.assign(this, { activeId, onGone, onRenamed });
    this.search = h("input", {
      type: "search",
      class: "search-field",
      placeholder: t("chats.search"),
      "aria-label": t("chats.search"),
      autocomplete: "off",
      oninput: () => this.#later(),
      onkeydown: (event) => this.#searchKey(event),
    });
    this.place = h("div", { class: "chat-list", onkeydown: (event) => this.#listKey(event) }, skeleton(6));
    this.element = h(
      "nav",
      { class: "chats", "aria-label": t("chats.label") },
      h("a", { class: "button new-chat", href: "#/chat" }, icon("plus"), t("chats.new")),
      h(
        "div",
        { class: "search" },
        icon("search"),
        this.search,
        h("kbd", { "aria-hidden": "true" }, /Mac|iP/.test(navigator.platform) ? "⌘K" : "Ctrl K"),
      ),
      this.place,
      person().role !== "guest" && h("a", { class: "side-link chats-memory", href: "#/memory" }, icon("book"), t("nav.memory")),
    );
    const signal = this.#end.signal;
    addEventListener("focus", () => this.refresh(), { signal });
    const timer = setInterval(() => this.#look(), 1_000);
    signal.addEventListener("abort", () => {
      clearInterval(timer);
      clearTimeout(this.#searchTimer);
    });
    present = this;
    if (memo.personId === person().id && memo.chats) this.#restore();
    this.refresh();
  }

  #restore() {
    this.#chats = memo.chats;
    this.#query = memo.query;
    this.#found = memo.found;
    this.search.value = memo.query;
    this.#render();
    requestAnimationFrame(() => {
      this.place.scrollTop = memo.scrollTop;
    });
  }

  find() {
    this.search.focus();
    this.search.select();
  }

  chat(id) {
    return this.#chats?.find((chat) => chat.id === id) ?? null;
  }

  #look() {
    const elsewhere = this.#chats?.some((chat) => chat.running && chat.id !== this.activeId);
    const due = performance.now() - this.#refreshedAt > (elsewhere ? REFRESH_RUNNING_MS : REFRESH_MS);
    if (due && !document.hidden) this.refresh();
  }

  /** Takes what changed of a talk, from the stream. A new one is added, unless a search is on. */
  apply(chat) {
    this.#applied += 1;
    if (!this.#chats) return;
    const at = this.#chats.findIndex((each) => each.id === chat.id);
    if (at >= 0) this.#chats[at] = { ...this.#chats[at], ...chat };
    else if (!this.#found && chat.updated_at) this.#chats.unshift(chat);
    this.#render();
  }

  /** Reads the list; done once the newest reading is, for another may begin meanwhile. */
  refresh() {
    this.#latest = this.#read(this.#begin());
    return this.#latest;
  }

  async #read(isNewest) {
    const applied = this.#applied;
    const query = this.#query;
    this.#refreshedAt = performance.now();
    try {
      const { chats } = await request("GET", `/api/chats${query ? `?q=${encodeURIComponent(query)}` : ""}`);
      if (this.#end.signal.aborted) return;
      if (!isNewest()) return await this.#latest; // a newer question is on its way
      if (applied !== this.#applied && this.#chats) return await this.refresh(); // the stream told something meanwhile that this answer may not have
      this.#chats = chats;
      this.#found = query;
      this.#render();
    } catch (error) {
      if (!this.#chats && !this.#end.signal.aborted && isNewest())
        replace(
          this.place,
          errorState(error, () => {
            replace(this.place, skeleton(6));
            this.refresh();
          }),
        );
    }
  }

  destroy() {
    memo = { personId: person()?.id ?? "", chats: this.#chats, query: this.#query, found: this.#found, scrollTop: this.place.scrollTop };
    present = null;
    this.#end.abort();
  }

  #later() {
    this.#query = this.search.value.trim();
    clearTimeout(this.#searchTimer);
    this.#searchTimer = setTimeout(() => this.refresh(), SEARCH_AFTER_MS);
  }

  /** A list that is as it was stays: under a finger that is just pressing, a new row would not feel the click. */
  #render() {
    const chats = this.#chats ?? [];
    const key = JSON.stringify([chats.map((chat) => this.#looks(chat)), this.#found, this.activeId]);
    if (key === this.#shown) return;
    this.#shown = key;
    if (!chats.length) {
      replace(
        this.place,
        this.#found
          ? emptyState("search", t("chats.noneFound"), t("chats.noneFoundText", { q: this.#found }))
          : emptyState("moon", t("chats.none"), t("chats.noneText")),
      );
      return;
    }
    const focused = this.place.contains(document.activeElement) ? document.activeElement.dataset.focusKey : null;
    if (this.#found)
      replace(
        this.place,
        h(
          "ul",
          { class: "chat-rows" },
          chats.map((chat) => this.#row(chat)),
        ),
      );
    else replace(this.place, this.#shelves(chats));
    if (focused) this.place.querySelector(`[data-focus-key="${CSS.escape(focused)}"]`)?.focus();
  }

  /** All of a chat that its row shows. */
  #looks(chat) {
    const { id, title, running, unread, kind, snippet, updated_at: at } = chat;
    return [id, title, Boolean(running), Boolean(unread) && id !== this.activeId, kind === "challenge" && chat, this.#found && snippet, shelf(at)];
  }

  #shelves(chats) {
    const shelves = new Map();
    for (const chat of chats) {
      const key = shelf(chat.updated_at);
      shelves.set(key, [...(shelves.get(key) ?? []), chat]);
    }
    return [...shelves].map(([key, rows]) =>
      h(
        "section",
        { class: "shelf" },
        h("h2", {}, t(`chats.shelf.${key}`)),
        h(
          "ul",
          { class: "chat-rows" },
          rows.map((chat) => this.#row(chat)),
        ),
      ),
    );
  }

  #row(chat) {
    const title = titleOf(chat);
    const active = chat.id === this.activeId;
    const more = iconButton("more", t("chats.menu", { title }), () => openMenu(more, this.#items(chat)), {
      "aria-haspopup": "menu",
      "aria-expanded": "false",
      dataset: { focusKey: `menu-${chat.id}` },
    });
    const marks = [
      chat.kind === "challenge" &&
        h(
          "span",
          { class: "mark-chip", title: t("challenge.label") },
          icon("flag"),
          h("span", { class: "sr-only" }, t("challenge.label")),
          chat.turns_left !== null && challengeMark(chat),
        ),
      chat.running && h("span", { class: "running-mark" }, icon("wave"), h("span", { class: "sr-only" }, t("chats.running"))),
      chat.unread && !active && h("span", { class: "unread-mark" }, h("span", { class: "sr-only" }, t("chats.unread"))),
    ].filter(Boolean);
    return h(
      "li",
      { class: "chat-row", dataset: { active: String(active), unread: String(Boolean(chat.unread && !active)) } },
      h(
        "a",
        { href: `#/chat/${encodeURIComponent(chat.id)}`, "aria-current": active ? "page" : null, dataset: { focusKey: chat.id } },
        h("span", { class: "chat-title", lang: guessLang(title, lang()), dir: "auto" }, title),
        marks.length > 0 && h("span", { class: "chat-marks" }, marks),
        this.#found &&
          chat.snippet &&
          h("span", { class: "chat-snippet", lang: guessLang(chat.snippet, lang()) }, highlight(chat.snippet, this.#found)),
      ),
      more,
    );
  }

  #items(chat) {
    return [
      { label: t("action.rename"), icon: "edit", action: () => this.rename(chat) },
      { label: t("action.delete"), icon: "trash", danger: true, action: () => this.remove(chat) },
    ];
  }

  async rename(chat) {
    const changed = await askText({
      title: t("chats.renameTitle"),
      label: t("chats.titleLabel"),
      value: chat.title,
      action: t("action.save"),
      maxlength: 120,
      submit: (title) => request("PATCH", `/api/chats/${encodeURIComponent(chat.id)}`, { title }),
    });
    if (!changed) return;
    this.apply(changed);
    this.onRenamed(changed);
  }

  /** Asks once and deletes; `count` is the number of messages where it is known. */
  async remove(chat, count = null) {
    const title = titleOf(chat);
    const done = await confirmDialog({
      title: t("chats.deleteTitle", { title }),
      body: count === null ? t("chats.deleteText") : tn("chats.deleteCount", count),
      action: t("chats.deleteAction"),
      danger: true,
      submit: async () => {
        await request("DELETE", `/api/chats/${encodeURIComponent(chat.id)}`);
        return true;
      },
    });
    if (!done) return;
    forgetChat(chat.id);
    this.#chats = this.#chats?.filter((each) => each.id !== chat.id) ?? null;
    this.#render();
    toast(t("chats.deleted", { title }));
    this.onGone(chat.id);
  }

  /** Once the chats are those of the words that stand in the field. */
  async #foundAll() {
    if (this.#query === this.#found) return true;
    clearTimeout(this.#searchTimer);
    const query = this.#query;
    await this.refresh();
    return !this.#end.signal.aborted && query === this.#query && query === this.#found; // else they changed meanwhile, or nothing could be asked
  }

  async #searchKey(event) {
    if (isComposing(event)) return;
    if (event.key === "Escape" && this.search.value) {
      event.preventDefault();
      this.search.value = "";
      this.#later();
    } else if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      if (!(await this.#foundAll())) return;
      const first = this.place.querySelector(".chat-row a");
      if (event.key === "Enter") first?.click();
      else first?.focus();
    }
  }

  #listKey(event) {
    const links = [...this.place.querySelectorAll(".chat-row a")];
    const at = links.indexOf(document.activeElement);
    if (at < 0 || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
    event.preventDefault();
    const next = at + (event.key === "ArrowDown" ? 1 : -1);
    if (next < 0) this.search.focus();
    else links[next]?.focus();
  }
}

/** The found words marked, as text. */
function highlight(text, query) {
  const at = text.toLowerCase().indexOf(query.toLowerCase());
  if (at < 0) return text;
  return [text.slice(0, at), h("mark", {}, text.slice(at, at + query.length)), text.slice(at + query.length)];
}
