// The middle of the chat page: the messages in order, what is on its way, and the answer that grows. It shows; `conversation.js` decides.

import { iconButton } from "./controls.js";
import { h } from "./dom.js";
import { Draft } from "./draft.js";
import { Follow } from "./follow.js";
import { t } from "./i18n.js";
import { guessLang } from "./lang.js";
import { files, messageView, note } from "./message.js";
import { MessageFolds } from "./message-folds.js";
import { Speaker } from "./speak.js";
import { skeleton } from "./states.js";

export class Talk {
  #views = new Map(); // message id → {message, key, element}
  #pending = new Map(); // client id → element
  #drafts = new Map(); // turn id → Draft

  /** `actions` as in `messageView`; `loadOlder` is called when the reader nears the top and older messages exist. */
  constructor({ actions = {}, loadOlder = () => {} }) {
    this.actions = actions;
    this.loadOlder = loadOlder;
    this.list = h("ol", { class: "messages", "aria-label": t("chat.messages") });
    this.folds = new MessageFolds(this.list, (id) => this.#views.get(id)?.message.folded);
    this.top = h("div", { class: "talk-top" });
    this.lead = h("div", { class: "talk-lead" }, skeleton(5));
    this.speaker = new Speaker();
    const inner = h("div", { class: "talk-inner" }, this.top, this.lead, this.list);
    this.scroller = h("div", { class: "talk", tabindex: 0, role: "region", "aria-label": t("chat.messages") }, inner);
    this.follow = new Follow(this.scroller, inner);
    this.element = h("div", { class: "talk-frame" }, this.scroller, this.follow.button, this.speaker.element);
    this.scroller.addEventListener("scroll", () => this.scroller.scrollTop < 240 && loadOlder(), { passive: true });
  }

  /** The messages as they stand on the page; they may have come in another order, an answer before its question was confirmed. */
  get #shown() {
    return [...this.list.children].map((element) => this.#views.get(element.dataset.id)?.message).filter(Boolean);
  }

  /** Whether each answer says who gave it: where several characters talk. */
  set hasCast(several) {
    this.list.classList.toggle("has-cast", several);
  }

  get ids() {
    return this.#shown.map((message) => message.id);
  }

  get size() {
    return this.#views.size;
  }

  get last() {
    return this.#shown.at(-1) ?? null;
  }

  lastAnswer() {
    return this.#shown.findLast((message) => message.role === "assistant" && message.turn_id) ?? null;
  }

  get quiet() {
    return !this.#views.size && !this.#pending.size && !this.#drafts.size;
  }

  hasAnswer(turnId) {
    return [...this.#views.values()].some(({ message }) => message.turn_id === turnId && message.role === "assistant");
  }

  hasDraft(turnId) {
    return this.#drafts.has(turnId);
  }

  /** What stands where messages will be: an empty state or an error. */
  setLead(...content) {
    this.lead.replaceChildren(...content);
  }

  setTop(...content) {
    this.top.replaceChildren(...content);
  }

  /** The newest page as the server has it. What is shown and not on it is gone, except older messages that were paged in before it. */
  reconcile(messages) {
    const onPage = new Set(messages.map((message) => message.id));
    const shown = this.ids;
    const firstShared = shown.findIndex((id) => onPage.has(id));
    shown.forEach((id, at) => {
      if (!onPage.has(id) && (firstShared < 0 || at > firstShared)) this.#drop(id);
    });
    for (const message of messages) this.upsert(message);
    this.#order(messages.map((message) => message.id));
    this.#fold();
    this.follow.grown();
  }

  prepend(messages) {
    this.follow.keepPlace(() => {
      const fresh = messages.filter((message) => !this.#views.has(message.id)).map((message) => this.#make(message));
      this.list.prepend(...fresh);
      this.#fold();
    });
  }

  /** A message of the server: new, or a newer state of one that is shown. A new attempt takes the place of the answer before it. */
  upsert(message) {
    const known = this.#views.get(message.id);
    if (known?.key === JSON.stringify(message)) return;
    const place = known?.element ?? this.#placeOf(message);
    if (!known) this.#dropOlderAttempts(message);
    const element = this.#make(message);
    if (place) place.replaceWith(element);
    else this.#add(element, message);
    this.follow.grown();
  }

  /** Takes a message and all after it out of the view (edit-and-resend). */
  cutFrom(id) {
    const ids = this.ids;
    const at = ids.indexOf(id);
    if (at < 0) return;
    for (const each of ids.slice(at)) this.#drop(each);
    for (const turnId of [...this.#drafts.keys()]) this.dropDraft(turnId);
  }

  // --- on its way ---

  showPending(entry) {
    this.#pending.get(entry.client_id)?.remove();
    const words = h("div", { class: "bubble as-typed", lang: guessLang(entry.text) }, entry.text);
    const state = h("div", { class: "pending-state", role: "status" });
    const element = h(
      "li",
      { class: "message is-user is-pending", dataset: { client: entry.client_id } },
      h("article", { "aria-label": t("chat.by.user") }, entry.text && words, files(entry.attachments ?? []), state),
    );
    this.#pending.set(entry.client_id, element);
    this.list.append(element);
    this.follow.jump();
  }

  /** Says why a message is not sent; `actions` is a list of `[label, function]`. */
  failPending(clientId, text, actions) {
    const element = this.#pending.get(clientId);
    if (!element) return;
    element.classList.add("is-unsent");
    element.querySelector(".pending-state").replaceChildren(
      note(
        "warn",
        text,
        actions.map(([label, run]) => h("button", { type: "button", class: "text-button", onclick: run }, label)),
      ),
    );
    this.follow.grown();
  }

  retryPending(clientId) {
    const element = this.#pending.get(clientId);
    element?.classList.remove("is-unsent");
    element?.querySelector(".pending-state").replaceChildren();
  }

  /** The server has it: the message takes the place of the pending one, unless the stream was faster. */
  confirmPending(clientId, message) {
    const element = this.#pending.get(clientId);
    this.#pending.delete(clientId);
    if (this.#views.has(message.id)) element?.remove();
    else if (element) element.replaceWith(this.#make(message));
    else this.upsert(message);
  }

  dropPending(clientId) {
    this.#pending.get(clientId)?.remove();
    this.#pending.delete(clientId);
  }

  // --- the growing answer ---

  /** A turn begins: its questions wait no longer. */
  answering(turnId) {
    for (const { message } of [...this.#views.values()]) {
      if (message.turn_id === turnId && message.state === "waiting") this.upsert({ ...message, state: "done" });
    }
  }

  /** A draft for a turn, fresh: behind the message it answers, or where the former answer stood. */
  openDraft(turnId) {
    this.dropDraft(turnId);
    const draft = new Draft(turnId);
    this.#drafts.set(turnId, draft);
    const former = [...this.#views.values()].filter(({ message }) => message.turn_id === turnId && message.role !== "user");
    const asked = [...this.#views.values()].findLast(({ message }) => message.turn_id === turnId && message.role === "user");
    if (former.length) former[0].element.before(draft.element);
    else if (asked) asked.element.after(draft.element);
    else this.list.append(draft.element);
    for (const view of former) this.#drop(view.message.id);
    this.speaker.reset();
    this.follow.grown();
    return draft;
  }

  draft(turnId) {
    return this.#drafts.get(turnId) ?? null;
  }

  get draftTurns() {
    return [...this.#drafts.keys()];
  }

  dropDraft(turnId) {
    this.#drafts.get(turnId)?.element.remove();
    this.#drafts.delete(turnId);
  }

  /** Marks the reply whose receipt is shown. */
  focusReply(turnId) {
    for (const element of this.list.querySelectorAll(".in-focus")) element.classList.remove("in-focus");
    if (turnId)
      for (const element of this.list.querySelectorAll(`.is-assistant[data-turn="${CSS.escape(turnId)}"]`))
        element.classList.add("in-focus");
  }

  /** Replaces a message's words by a field to edit them; `resend(text)` is called with the new words. */
  edit(message, resend, editor) {
    const view = this.#views.get(message.id);
    if (!view) return;
    view.element.hidden = true;
    const close = () => {
      box.remove();
      view.element.hidden = false;
      view.element.querySelector("button")?.focus();
    };
    const box = h(
      "li",
      { class: "message is-user is-edited" },
      editor({
        message,
        cancel: close,
        submit: (text) => {
          close();
          resend(text);
        },
      }),
      iconButton("close", t("action.cancel"), close, { class: "icon-button edit-close" }),
    );
    view.element.after(box);
    box.querySelector("textarea").focus();
  }

  destroy() {
    this.follow.destroy();
  }

  /** What an entry stands for is folded. Too short to scroll then, the talk asks for what is older by itself. */
  #fold() {
    if (this.folds.update()) requestAnimationFrame(() => this.scroller.scrollHeight <= this.scroller.clientHeight && this.loadOlder());
  }

  #make(message) {
    const element = messageView(message, this.actions);
    this.#views.set(message.id, { message, key: JSON.stringify(message), element });
    return element;
  }

  #drop(id) {
    this.#views.get(id)?.element.remove();
    this.#views.delete(id);
  }

  /** A finished answer goes where its draft is. */
  #placeOf(message) {
    if (message.role !== "assistant") return null;
    const draft = this.#drafts.get(message.turn_id);
    this.#drafts.delete(message.turn_id);
    return draft?.element ?? null;
  }

  #dropOlderAttempts(message) {
    if (message.role === "user" || !message.turn_id) return;
    for (const { message: other } of [...this.#views.values()]) {
      if (other.role !== "user" && other.turn_id === message.turn_id && (other.attempt ?? 1) < (message.attempt ?? 1)) this.#drop(other.id);
    }
  }

  /** What belongs to a turn goes behind the rest of it; a new question before those on their way; anything else to the end. */
  #add(element, message) {
    const sameTurn =
      message.turn_id && message.role !== "user" ? this.list.querySelectorAll(`[data-turn="${CSS.escape(message.turn_id)}"]`) : [];
    const pending = this.list.querySelector(":scope > .is-pending");
    if (sameTurn.length) sameTurn[sameTurn.length - 1].after(element);
    else if (pending && message.role === "user") pending.before(element);
    else this.list.append(element);
  }

  /** Puts shown messages in the server's order, moving only what stands wrong. */
  #order(ids) {
    let previous = null;
    for (const id of ids) {
      const { element } = this.#views.get(id);
      if (previous && previous.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_PRECEDING) previous.after(element);
      previous = element;
    }
  }
}
