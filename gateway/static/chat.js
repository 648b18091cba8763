// The chat page: the list of talks, the talk in the middle, the receipt at its right.

import { request } from "./api.js";
import { ChatList, titleOf } from "./chatlist.js";
import { Composer, grow } from "./composer.js";
import { Conversation } from "./conversation.js";
import { iconButton, segmented, select } from "./controls.js";
import { h, replace } from "./dom.js";
import { lang, t, tn } from "./i18n.js";
import { icon, mark } from "./icons.js";
import { isComposing, isPlainEnter } from "./ime.js";
import { guessLang } from "./lang.js";
import { openMenu } from "./menu.js";
import { modelLine } from "./modelline.js";
import { ReceiptDrawer } from "./receipt.js";
import { person, session } from "./session.js";
import { hideSide, showInShell, showSide, sideButton } from "./shell.js";
import { makeSheet } from "./sheet.js";
import { emptyState, errorState, explain, skeleton } from "./states.js";
import { forgetChat, loadDraft, newClientId, putOutbox, saveDraft } from "./store.js";
import { Talk } from "./talk.js";
import { setTitle } from "./title.js";
import { toast } from "./toast.js";

const DRAWER_IS_SHEET = matchMedia("(max-width: 1180px)");
const NEW = "new";

/** The page of one talk, or with an empty id the beginning of a new one. */
export function chatPage(chatId) {
  return new ChatPage(chatId);
}

class ChatPage {
  title = "";

  constructor(chatId) {
    this.chatId = chatId;
    this.list = new ChatList({
      activeId: chatId,
      onGone: (id) => id === this.chatId && this.#leave(),
      onRenamed: (chat) => this.#applyChat(chat),
    });
    this.composer = new Composer({
      onSend: (words) => this.#send(words),
      onStop: () => this.conversation?.stop(),
      loadDraft: () => loadDraft(chatId || NEW),
      saveDraft: (draft) => saveDraft(chatId || NEW, draft),
      above: modelLine(),
    });
    if (chatId) this.#build();
    else this.#buildNew();
    hideSide();
    this.composer.focus();
    requestAnimationFrame(() => grow(this.composer.field));
  }

  destroy() {
    this.composer.destroy();
    this.conversation?.close();
    this.talk?.destroy();
    this.drawer?.destroy();
    this.drawerSheet?.destroy();
    this.list.destroy();
  }

  #mount(main, extra) {
    showInShell({
      side: this.list.element,
      main: h("div", { class: "chat-frame" }, main, extra),
      onFind: () => {
        showSide();
        this.list.find();
      },
    });
  }

  // --- a new talk ---

  #buildNew() {
    this.title = t("chats.new");
    this.kind = "web";
    const characters = session.me.characters ?? [];
    this.character = characters[0]?.id ?? "";
    const name = person()?.name ?? "";
    const choices = h(
      "div",
      { class: "new-choices" },
      characters.length > 1 &&
        h(
          "label",
          { class: "inline-field" },
          h("span", {}, t("new.character")),
          select(
            characters.map(({ id, name: label }) => [id, label]),
            this.character,
            {
              onchange: (event) => {
                this.character = event.target.value;
              },
            },
          ),
        ),
      segmented({
        legend: t("new.kind"),
        options: [
          ["web", t("new.ordinary")],
          ["challenge", t("new.challenge")],
        ],
        value: "web",
        onchange: (kind) => {
          this.kind = kind;
          hint.textContent = kind === "challenge" ? t("new.challengeHint") : "";
        },
      }),
    );
    const hint = h("p", { class: "hint new-hint", role: "status" });
    const main = h(
      "main",
      { class: "chat is-new", tabindex: -1 },
      h("header", { class: "chat-head" }, sideButton()),
      h(
        "div",
        { class: "welcome" },
        h("div", { class: "welcome-moon" }, mark()),
        h("h1", {}, t(`new.greeting.${dayPart()}`, { name })),
        h("p", {}, t("new.lead")),
        choices,
        hint,
      ),
      h("div", { class: "chat-bottom" }, this.composer.element),
    );
    this.#mount(main);
  }

  #send(words) {
    const entry = { client_id: newClientId(), ...words };
    if (this.conversation) {
      this.conversation.send(entry);
      return true;
    }
    this.#begin(entry);
    return false; // the words stay in the field until the talk exists
  }

  async #begin(entry) {
    if (this.beginning) return;
    this.beginning = true;
    try {
      const { id } = await request("POST", "/api/chats", { kind: this.kind, ...(this.character && { character: this.character }) });
      putOutbox(id, entry);
      this.composer.clear();
      location.replace(`#/chat/${encodeURIComponent(id)}`);
    } catch (error) {
      toast(explain(error), { tone: "warn" });
    } finally {
      this.beginning = false;
    }
  }

  // --- an existing talk ---

  #build() {
    this.heading = h("h1", { class: "chat-heading" });
    this.badge = h("span", { class: "mark-chip", hidden: true });
    this.characterPlace = h("span", { class: "chat-character" });
    this.receiptButton = h(
      "button",
      { type: "button", class: "text-button head-button", "aria-expanded": "false", onclick: () => this.#toggleReceipt() },
      icon("receipt"),
      h("span", { class: "head-label" }, t("receipt.title")),
    );
    this.moreButton = iconButton("more", t("chats.actions"), () => openMenu(this.moreButton, this.#menuItems()), {
      "aria-haspopup": "menu",
      "aria-expanded": "false",
    });
    this.talk = new Talk({
      actions: {
        edit: (message) => this.#edit(message),
        regenerate: (message) => this.conversation.regenerate(message.turn_id),
        fork: (message) => this.#fork(message.id),
        receipt: (message) => this.#showReceipt(message.turn_id),
      },
      loadOlder: () => this.conversation.loadOlder(),
    });
    this.conversation = new Conversation({ chatId: this.chatId, talk: this.talk, callbacks: this.#callbacks() });
    this.drawer = new ReceiptDrawer({ chatId: this.chatId, onClose: () => this.drawerSheet.hide() });
    const main = h(
      "main",
      { class: "chat", tabindex: -1 },
      h(
        "header",
        { class: "chat-head" },
        sideButton(),
        h("div", { class: "chat-name" }, this.heading, this.badge),
        this.characterPlace,
        this.receiptButton,
        this.moreButton,
      ),
      this.talk.element,
      h("div", { class: "chat-bottom" }, this.composer.element),
    );
    this.#mount(main, this.drawer.element);
    this.drawerSheet = makeSheet({
      panel: this.drawer.element,
      rest: () => [main],
      narrow: DRAWER_IS_SHEET,
      onChange: (open) => this.#receiptChanged(open),
    });
    this.#loadChat();
    this.conversation.start();
  }

  #callbacks() {
    return {
      onRunning: (running) => {
        this.composer.setRunning(running);
        this.list.apply({ id: this.chatId, running });
      },
      onChat: (chat) => this.#applyChat(chat),
      onSeen: () => this.list.apply({ id: this.chatId, unread: false }),
      onAnswer: (message) => this.drawerSheet.open && this.#showReceipt(message.turn_id),
      onReturn: (entry) => this.composer.giveBack(entry),
      onPage: () => this.#pageRead(),
      onLoadError: (error) =>
        this.talk.setLead(
          errorState(error, () => {
            this.talk.setLead(skeleton(5));
            this.conversation.sync();
          }),
        ),
      onNotice: (text, level) => toast(text, { tone: level === "warning" ? "warn" : "calm" }),
      onOlder: (state, error) => this.#older(state, error),
      onEnd: (error) => error.status !== 401 && this.#gone(),
    };
  }

  async #loadChat() {
    try {
      const chat = await request("GET", `/api/chats/${encodeURIComponent(this.chatId)}`);
      if (!this.chat) this.#applyChat(chat); // else the stream was faster, and newer
    } catch (error) {
      if (error.status === 404) this.#gone();
    }
  }

  #applyChat(chat) {
    if (!chat || chat.id !== this.chatId) return;
    this.chat = chat;
    this.list.apply(chat);
    const title = titleOf(chat);
    this.title = title;
    setTitle(title);
    this.heading.textContent = title;
    this.heading.lang = guessLang(title, lang());
    this.badge.hidden = chat.kind !== "challenge";
    replace(this.badge, icon("flag"), chat.turns_left === null ? t("challenge.label") : tn("challenge.left", chat.turns_left));
    this.#showCharacters(chat);
  }

  #showCharacters(chat) {
    const characters = session.me.characters ?? [];
    if (characters.length < 2) return;
    const chosen = chat.character || characters[0].id;
    if (this.characterShown === chosen) return;
    this.characterShown = chosen;
    replace(
      this.characterPlace,
      select(
        characters.map(({ id, name }) => [id, name]),
        chosen,
        {
          class: "input quiet-select",
          "aria-label": t("new.character"),
          onchange: (event) => this.#patch({ character: event.target.value }),
        },
      ),
    );
  }

  async #patch(change) {
    try {
      this.#applyChat(await request("PATCH", `/api/chats/${encodeURIComponent(this.chatId)}`, change));
    } catch (error) {
      toast(explain(error), { tone: "warn" });
      this.characterShown = "";
      if (this.chat) this.#showCharacters(this.chat);
    }
  }

  #pageRead() {
    this.talk.setLead(...(this.talk.quiet ? [emptyState("moon", t("chat.emptyTitle"), t("chat.emptyText"))] : []));
    this.#older("idle");
    if (this.drawerSheet.open && !this.drawer.turnId) this.#showReceipt(this.talk.lastAnswer()?.turn_id ?? "");
  }

  #older(state, error) {
    if (state === "loading") this.talk.setTop(skeleton(2));
    else if (state === "error") this.talk.setTop(errorState(error, () => this.conversation.loadOlder()));
    else if (this.conversation.more)
      this.talk.setTop(
        h("button", { type: "button", class: "text-button", onclick: () => this.conversation.loadOlder() }, t("chat.older")),
      );
    else this.talk.setTop();
  }

  #gone() {
    this.conversation.close();
    this.composer.clear();
    forgetChat(this.chatId);
    this.talk.setLead(
      emptyState("search", t("chat.goneTitle"), t("chat.goneText"), h("a", { class: "button", href: "#/chat" }, t("chats.new"))),
    );
    this.heading.textContent = t("chats.untitled");
    for (const element of [this.composer.element, this.receiptButton, this.moreButton]) element.hidden = true;
  }

  #leave() {
    this.composer.clear(); // or the draft of a chat that is gone would be kept
    location.hash = "#/chat";
  }

  #menuItems() {
    const chat = this.chat ?? { id: this.chatId, title: "" };
    const count = this.conversation.more ? null : this.talk.size;
    return [
      ...this.#characterItems(),
      { label: t("action.rename"), icon: "edit", action: () => this.list.rename(chat) },
      { label: t("chats.copyAll"), icon: "fork", action: () => this.#fork() },
      null,
      { label: t("action.delete"), icon: "trash", danger: true, action: () => this.list.remove(chat, count) },
    ];
  }

  /** Who answers, for narrow pages: there the choice in the head has no room. */
  #characterItems() {
    const characters = session.me.characters ?? [];
    if (characters.length < 2 || this.characterPlace.checkVisibility()) return [];
    const chosen = this.chat?.character || characters[0].id;
    return [
      ...characters.map(({ id, name }) => ({
        label: name,
        icon: "person",
        checked: id === chosen,
        action: () => this.#patch({ character: id }),
      })),
      null,
    ];
  }

  async #fork(messageId) {
    try {
      const { id } = await request(
        "POST",
        `/api/chats/${encodeURIComponent(this.chatId)}/fork`,
        messageId ? { message_id: messageId } : {},
      );
      toast(t("chat.forked"));
      location.hash = `#/chat/${encodeURIComponent(id)}`;
    } catch (error) {
      toast(explain(error), { tone: "warn" });
    }
  }

  #edit(message) {
    const resend = (text) =>
      this.conversation.send({ client_id: newClientId(), text, attachments: message.attachments ?? [], replaces: message.id });
    this.talk.edit(message, resend, editField);
  }

  // --- the receipt ---

  #toggleReceipt() {
    if (this.drawerSheet.open) this.drawerSheet.hide();
    else this.#showReceipt(this.talk.lastAnswer()?.turn_id ?? "");
  }

  #showReceipt(turnId) {
    this.drawer.show(turnId);
    this.drawerSheet.show();
    this.talk.focusReply(turnId);
  }

  #receiptChanged(open) {
    this.receiptButton.setAttribute("aria-expanded", String(open));
    this.drawer.element.parentElement?.classList.toggle("has-drawer", open);
    if (!open) this.talk.focusReply("");
  }
}

/** The field for edit-and-resend: Enter sends, Esc gives up. */
function editField({ message, submit, cancel }) {
  const box = h("textarea", { class: "composer-field", "aria-label": t("action.edit"), rows: 1, lang: guessLang(message.text) });
  box.value = message.text;
  const send = () => box.value.trim() && submit(box.value.trim());
  box.addEventListener("input", () => grow(box));
  box.addEventListener("keydown", (event) => {
    if (isPlainEnter(event)) {
      event.preventDefault();
      send();
    } else if (event.key === "Escape" && !isComposing(event)) {
      event.preventDefault();
      cancel();
    }
  });
  requestAnimationFrame(() => grow(box));
  return h(
    "div",
    { class: "composer-box" },
    box,
    h(
      "div",
      { class: "composer-tools" },
      h("span", { class: "composer-hint is-kept" }, t("edit.hint")),
      h("button", { type: "button", class: "button small", onclick: cancel }, t("action.cancel")),
      h("button", { type: "button", class: "button primary small", onclick: send }, t("action.send")),
    ),
  );
}

function dayPart() {
  const hour = new Date().getHours();
  if (hour < 5 || hour >= 22) return "night";
  return hour < 12 ? "morning" : hour < 18 ? "day" : "evening";
}
