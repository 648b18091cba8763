// The chat page: the list of talks, the talk in the middle, the receipt at its right.

import { request } from "./api.js";
import { askCast, castNames, castPicker } from "./cast.js";
import { ChallengeBar, ChallengeList, challengeMark, laterAttempt } from "./challenge.js";
import { ChatList, tellList, titleOf } from "./chatlist.js";
import { Composer, grow } from "./composer.js";
import { Conversation } from "./conversation.js";
import { iconButton, segmented, select } from "./controls.js";
import { h, replace } from "./dom.js";
import { lang, t } from "./i18n.js";
import { icon, mark } from "./icons.js";
import { isComposing, isPlainEnter } from "./ime.js";
import { guessLang } from "./lang.js";
import { rememberFromChat } from "./memory-saved-chat.js";
import { openMenu } from "./menu.js";
import { files } from "./message.js";
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
const SEVERAL = "\u0000several"; // no id of a character

/** The ids of all who answer in a talk. */
const castOf = (chat, characters) => (chat.characters.length ? chat.characters : [chat.character || characters[0].id]);

/** The page of one talk, or with an empty id the beginning of a new one. */
export function chatPage(chatId) {
  return new ChatPage(chatId);
}

class ChatPage {
  title = "";
  #first = []; // what was sent while the talk for it is being made
  #made = ""; // the id of that talk, once it is

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
      saveDraft: (draft) => this.#keep(draft),
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
    this.cast = characters.slice(0, 1).map(({ id }) => id);
    const name = person()?.name ?? "";
    const picker = castPicker(characters, this.cast, (ids) => {
      this.cast = ids;
      hint.textContent = ids.length > 1 ? t("cast.hint") : "";
    });
    const choices = h(
      "div",
      { class: "new-choices" },
      characters.length > 1 && picker,
      segmented({
        legend: t("new.kind"),
        options: [
          ["web", t("new.ordinary")],
          ["challenge", t("new.challenge")],
        ],
        value: "web",
        onchange: (kind) => {
          this.kind = kind;
          const playing = kind === "challenge";
          picker.hidden = playing;
          hint.textContent = playing ? t("new.challengeHint") : "";
          this.composer.element.hidden = false;
          // with challenges to choose from, a message sent here would begin another chat than the one looked at
          const onshow = (count) => (this.composer.element.hidden = this.kind === "challenge" && count > 0);
          replace(challenges, playing && new ChallengeList({ onshow }).element);
        },
      }),
    );
    const hint = h("p", { class: "hint new-hint", role: "status" });
    const challenges = h("div", {});
    this.firstPlace = h("ol", { class: "messages if-any", "aria-label": t("chat.messages") });
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
        challenges,
      ),
      h("div", { class: "chat-bottom" }, this.firstPlace, this.composer.element),
    );
    this.#mount(main);
  }

  #send(words) {
    const entry = { client_id: newClientId(), ...words };
    if (this.conversation) this.conversation.send(entry);
    else if (this.#made) putOutbox(this.#made, entry); // its page opens this very moment
    else {
      this.#first.push(entry);
      this.#showFirst();
      if (this.#first.length === 1) this.#begin();
    }
  }

  #showFirst() {
    replace(
      this.firstPlace,
      this.#first.map(({ text, attachments }) =>
        h(
          "li",
          { class: "message is-user is-pending" },
          h("article", { "aria-label": t("chat.by.user") }, text && h("div", { class: "bubble as-typed", lang: guessLang(text) }, text), files(attachments)),
        ),
      ),
    );
  }

  /** Keeps what is in the field, and with it what was sent to a talk that does not exist yet: whoever loads the page now finds all of it again. */
  #keep(draft) {
    const all = [...this.#first, draft];
    saveDraft(this.chatId || this.#made || NEW, {
      text: all.map(({ text }) => text).filter(Boolean).join("\n\n"),
      attachments: all.flatMap(({ attachments }) => attachments),
    });
  }

  /** Makes the talk that the first words need. What is sent meanwhile goes there as well, and what is typed goes along to its page. */
  async #begin() {
    try {
      const several = this.cast.length > 1 && this.kind === "web";
      const { id } = await request("POST", "/api/chats", {
        kind: this.kind,
        ...(several ? { characters: this.cast } : this.cast.length && { character: this.cast[0] }),
      });
      for (const entry of this.#first.splice(0)) putOutbox(id, entry);
      this.#made = id;
      saveDraft(NEW, { text: "", attachments: [] });
      this.composer.flush();
      location.replace(`#/chat/${encodeURIComponent(id)}`);
    } catch (error) {
      for (const entry of this.#first.splice(0).reverse()) this.composer.giveBack(entry);
      this.#showFirst();
      toast(explain(error), { tone: "warn" });
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
    this.deepBadge = h("span", { class: "pill tone-good deep-badge", title: t("saved.deepHint"), hidden: true }, icon("moon"), h("span", { class: "head-label" }, t("saved.deepActive")));
    this.conversation = new Conversation({ chatId: this.chatId, talk: this.talk, callbacks: this.#callbacks() });
    this.challenge = new ChallengeBar({ onChange: (chat) => this.#applyChat(chat) });
    this.drawer = new ReceiptDrawer({ chatId: this.chatId, onClose: () => this.drawerSheet.hide() });
    const main = h(
      "main",
      { class: "chat", tabindex: -1 },
      h(
        "header",
        { class: "chat-head" },
        sideButton(),
        h("div", { class: "chat-name" }, this.heading, this.badge, this.deepBadge),
        this.characterPlace,
        this.receiptButton,
        this.moreButton,
      ),
      this.talk.element,
      h("div", { class: "chat-bottom" }, this.challenge.element, this.composer.element),
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
      onSeen: () => tellList({ id: this.chatId, unread: false }),
      onAnswer: (message) => {
        if (this.drawerSheet.open) this.#showReceipt(message.turn_id);
        if (this.chat?.challenge) this.#loadChat(true); // an answer uses a turn
      },
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

  async #loadChat(again = false) {
    try {
      const chat = await request("GET", `/api/chats/${encodeURIComponent(this.chatId)}`);
      if (again || !this.chat) this.#applyChat(chat); // else the stream was faster, and newer
    } catch (error) {
      if (error.status === 404) this.#gone();
    }
  }

  /** The badge says what the server's own gate says (SM-85); without an answer there is none. */
  async #showDeep() {
    try {
      const { deep_memory: active } = await request("GET", `/api/chats/${encodeURIComponent(this.chatId)}/memory`);
      this.deepBadge.hidden = !active;
    } catch {
      this.deepBadge.hidden = true; // the page itself says what is wrong
    }
  }

  #applyChat(chat) {
    if (chat.kind === "challenge") this.drawer?.hidePrompts();
    if (!chat || chat.id !== this.chatId || !(this.chat || chat.kind)) return;
    chat = { ...this.chat, ...chat, attempt: laterAttempt(this.chat?.attempt, chat.attempt) }; // of a judged attempt only that is told
    this.list.apply(chat);
    this.chat = chat;
    this.challenge.show(chat);
    this.composer.element.hidden = this.challenge.over;
    this.talk.hasCast = chat.characters.length > 1;
    const title = titleOf(chat);
    this.title = title;
    setTitle(title);
    this.heading.textContent = title;
    this.heading.lang = guessLang(title, lang());
    this.badge.hidden = chat.kind !== "challenge";
    replace(this.badge, icon("flag"), challengeMark(chat));
    this.#showCharacters(chat);
  }

  #showCharacters(chat) {
    const characters = session.me.characters ?? [];
    if (characters.length < 2) return;
    const cast = castOf(chat, characters);
    const shown = JSON.stringify([cast, Boolean(chat.challenge)]);
    if (this.castShown === shown) return;
    this.castShown = shown;
    const names = castNames(characters, cast);
    if (chat.challenge) replace(this.characterPlace, h("span", { class: "hint" }, names));
    else if (cast.length > 1) replace(this.characterPlace, this.#castButton(names));
    else replace(this.characterPlace, this.#castSelect(characters, cast[0], chat.kind === "challenge"));
  }

  #castButton(names) {
    return h(
      "button",
      { type: "button", class: "text-button head-button", "aria-label": t("cast.change", { names }), onclick: () => this.#askCast() },
      icon("people"),
      h("span", { class: "head-label" }, names),
    );
  }

  #castSelect(characters, chosen, one) {
    return select([...characters.map(({ id, name }) => [id, name]), ...(one ? [] : [[SEVERAL, t("cast.several")]])], chosen, {
      class: "input quiet-select",
      "aria-label": t("new.character"),
      onchange: async (event) => {
        if (event.target.value !== SEVERAL) return this.#patch({ character: event.target.value });
        event.target.value = chosen;
        return this.#askCast();
      },
    });
  }

  async #askCast() {
    const characters = session.me.characters ?? [];
    const changed = await askCast(characters, castOf(this.chat, characters), (ids) =>
      request("PATCH", `/api/chats/${encodeURIComponent(this.chatId)}`, ids.length > 1 ? { characters: ids } : { character: ids[0] }),
    );
    if (changed) this.#applyChat(changed);
  }

  async #patch(change) {
    try {
      this.#applyChat(await request("PATCH", `/api/chats/${encodeURIComponent(this.chatId)}`, change));
      this.#showDeep(); // who learns may be somebody else now
    } catch (error) {
      toast(explain(error), { tone: "warn" });
      this.castShown = "";
      if (this.chat) this.#showCharacters(this.chat);
    }
  }

  #pageRead() {
    this.#showDeep();
    const empty = this.chat?.kind === "challenge" ? "chat.emptyText.challenge" : "chat.emptyText";
    this.talk.setLead(...(this.talk.quiet ? [emptyState("moon", t("chat.emptyTitle"), t(empty))] : []));
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
      chat.kind === "web" &&
        person()?.role !== "guest" && { label: t("saved.chatMemory"), icon: "book", action: () => rememberFromChat(chat) },
      null,
      { label: t("action.delete"), icon: "trash", danger: true, action: () => this.list.remove(chat, count) },
    ].filter((item) => item !== false);
  }

  /** Who answers, for narrow pages: there the choice in the head has no room. */
  #characterItems() {
    const characters = session.me.characters ?? [];
    if (characters.length < 2 || !this.chat || this.chat.challenge || this.characterPlace.checkVisibility()) return [];
    const cast = castOf(this.chat, characters);
    return [
      ...characters.map(({ id, name }) => ({
        label: name,
        icon: "person",
        checked: cast.includes(id),
        action: () => this.#patch({ character: id }),
      })),
      this.chat.kind !== "challenge" && { label: t("cast.several"), icon: "people", action: () => this.#askCast() },
      null,
    ].filter((item) => item !== false);
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
