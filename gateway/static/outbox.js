// Sending of one chat: each message goes out exactly once (WO-11). It keeps its client id through retries, reloads and lost connections, and is shown
// from the first moment; the server's own copy, arriving on the stream, takes its place and never stands beside it.

import { NetworkError, request } from "./api.js";
import { t } from "./i18n.js";
import { onReachChange, reachable } from "./reach.js";
import { explain } from "./states.js";
import { dropOutbox, loadOutbox, putOutbox } from "./store.js";

const TRIES_MS = [1_000, 3_000, 8_000, 15_000]; // the last again and again; from the third on the person is told

export class Outbox {
  #entries = new Map(); // client id → entry that this tab sends; what is stored is its copy for the next load
  #refused = new Set(); // client ids that wait for the person
  #sending = false;
  #wake = () => {}; // ends the wait between two tries
  #held = []; // messages from the stream that may be one of the entries, whose answer has not come

  /**
   * `talk` shows. `waits(turnId)` says whether a message just taken stands behind a running turn; `onTaken(turnId)` is called once it is shown as sent;
   * `onOther(message)` gets a held message that was somebody else's; `onReturn(entry)` gets words back that the person took back.
   */
  constructor({ chatId, path, talk, waits, onTaken, onOther, onReturn }) {
    Object.assign(this, { chatId, path, talk, waits, onTaken, onOther, onReturn });
    this.close = onReachChange((up) => up && this.#again());
  }

  /** Takes up what the last load of the page left unsent. */
  start() {
    for (const entry of loadOutbox(this.chatId)) this.#take(entry);
    this.#flush();
  }

  /** Puts `{client_id, text, attachments, replaces?}` on its way. */
  send(entry) {
    putOutbox(this.chatId, entry);
    this.#take(entry);
    this.#flush();
  }

  /** Keeps a message of the stream back while it may be the echo of an entry; false when it is certainly not. */
  holds(message) {
    if (!this.#mayBeMine(message)) return false;
    this.#held.push(message);
    return true;
  }

  #mayBeMine(message) {
    return !this.talk.ids.includes(message.id) && [...this.#entries.values()].some((entry) => entry.text === message.text);
  }

  #take(entry) {
    this.#entries.set(entry.client_id, entry);
    this.talk.showPending(entry);
  }

  #forget(entry) {
    this.#entries.delete(entry.client_id);
    this.#refused.delete(entry.client_id);
    dropOutbox(this.chatId, entry.client_id);
  }

  #again() {
    this.#wake();
    this.#flush();
  }

  /** One after the other, so that they arrive in order. Goes on when the person has moved to another chat. */
  async #flush() {
    if (this.#sending) return;
    const entry = [...this.#entries.values()].find((each) => !this.#refused.has(each.client_id));
    if (!entry) return;
    this.#sending = true;
    this.talk.retryPending(entry.client_id);
    const settled = await this.#deliver(entry);
    this.#sending = false;
    this.#release();
    if (settled || reachable()) this.#flush(); // it may have come back while this try still failed
  }

  /** True when the entry is off the way, sent or refused; false when it waits for the gate to come back. */
  async #deliver(entry) {
    const { client_id, text, replaces } = entry;
    const body = { client_id, text, attachments: entry.attachments.map((file) => file.id), ...(replaces && { replaces }) };
    for (let tries = 0; this.#entries.has(client_id); tries += 1) {
      try {
        this.#sent(entry, await request("POST", `${this.path}/messages`, body));
        return true;
      } catch (error) {
        if (!error.passing) {
          this.#refused.add(client_id);
          this.talk.failPending(client_id, explain(error), this.#choices(entry));
          return true;
        }
        const gone = error instanceof NetworkError && !reachable();
        if (gone || tries >= 2) this.talk.failPending(client_id, t("message.unsent", { reason: explain(error) }), this.#choices(entry));
        if (gone) return false; // goes on as soon as any call is answered
        await this.#pause(Math.max(TRIES_MS[Math.min(tries, TRIES_MS.length - 1)], (error.retryAfterS ?? 0) * 1000));
      }
    }
    return true; // taken back meanwhile
  }

  #pause(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** A command gets no id: it joins no log, and its line stays only until the page is read again. */
  #sent(entry, { message_id: id, turn_id: turnId }) {
    this.#forget(entry);
    const mine = { id: id || entry.client_id, role: "user", text: entry.text, html: "", turn_id: turnId ?? "", attempt: 1, passing: !id };
    const echo = this.#held.find((message) => message.id === id);
    this.#held = this.#held.filter((message) => message.id !== id);
    const message = echo ?? { ...mine, created_at: new Date().toISOString(), attachments: entry.attachments };
    this.talk.confirmPending(entry.client_id, { ...message, state: this.waits(turnId) ? "waiting" : "done" });
    this.onTaken(turnId);
  }

  /** Lets go of what belongs to no entry any more. */
  #release() {
    for (const message of this.#held.splice(0)) {
      if (!this.holds(message)) this.onOther(message);
    }
  }

  #choices(entry) {
    const retry = () => {
      this.#refused.delete(entry.client_id);
      this.#again();
    };
    const takeBack = () => {
      this.#forget(entry);
      this.talk.dropPending(entry.client_id);
      this.#release();
      this.onReturn(entry);
    };
    return [
      [t("action.retry"), retry],
      [t("action.takeBack"), takeBack],
    ];
  }
}
