// What happens in one chat: messages go out exactly once, events come in and are shown in order, and the view agrees with the server after every gap.
//
// The order at each opening of the stream closes every gap: first the stream is open, then the newest page is read, then the events that came meanwhile
// are shown. What was stored before is on the page, what was stored after comes as an event, and ids make sure that nothing shows twice.

import { request } from "./api.js";
import { Outbox } from "./outbox.js";
import { explain } from "./states.js";
import { loadOutbox, newClientId } from "./store.js";
import { ChatStream } from "./stream.js";
import { nudgeTitle } from "./title.js";

const PAGE = 40;
const SYNC_AGAIN_MS = 5_000;

export class Conversation {
  #queue = []; // events that wait until the page is read
  #syncing = false;
  #again = false;
  #synced = false;
  #more = false;
  #loadingOlder = false;
  #running = new Set(); // turn ids
  #begun = new Set(); // turn ids whose first event has come
  #closed = false;
  #seen = "";
  #told = 0; // events about the chat itself

  /**
   * `talk` shows. Callbacks: `onRunning(bool)` switches send and stop; `onChat(chat)` tells a changed title or state; `onSeen()` that all is read; `onAnswer(message)` a finished
   * answer; `onReturn(entry)` gives words back to the composer; `onPage()` follows each reading of the newest page, `onLoadError(error)` the first that
   * failed; `onOlder(state, error)` tells how the paging goes; `onNotice(text, level)` a passing notice; `onEnd(error)` that the chat is gone.
   */
  constructor({ chatId, talk, callbacks }) {
    this.chatId = chatId;
    this.path = `/api/chats/${encodeURIComponent(chatId)}`;
    this.talk = talk;
    this.on = callbacks;
    this.stream = new ChatStream({
      path: `${this.path}/events`,
      onEvent: (event) => this.#receive(event),
      onOpen: () => this.sync(),
      onDown: () => !this.#synced && this.sync(),
      onEnd: (error) => this.on.onEnd(error),
      isBusy: () => this.running,
      fromBegin: loadOutbox(chatId).length > 0, // what answers them may be there before the stream is open, and is spoken only as it comes
    });
    this.outbox = new Outbox({
      chatId,
      path: this.path,
      talk,
      waits: (turnId) => this.running && this.#isAhead(turnId),
      onTaken: (turnId) => this.#taken(turnId),
      onOther: (message) => this.#fromElsewhere(message),
      onReturn: (entry) => this.#returned(entry),
    });
    document.addEventListener("visibilitychange", this.#markSeen);
  }

  get running() {
    return this.#running.size > 0;
  }

  get more() {
    return this.#more;
  }

  start() {
    this.outbox.start();
    this.stream.run();
  }

  close() {
    this.#closed = true;
    this.stream.close();
    this.outbox.close();
    document.removeEventListener("visibilitychange", this.#markSeen);
  }

  // --- reading ---

  /** Reads the newest page and makes the view agree with it; events wait meanwhile. */
  async sync() {
    if (this.#closed) return;
    if (this.#syncing) {
      this.#again = true; // asked for by something newer than the reading under way
      return;
    }
    this.#syncing = true;
    this.#again = false;
    try {
      const page = await request("GET", `${this.path}/messages?limit=${PAGE}`);
      if (this.#closed) return;
      this.#synced = true;
      this.talk.reconcile(page.messages);
      if (this.talk.ids[0] === page.messages[0]?.id) this.#more = page.more;
      this.#setRunning(page.running_turn ? [page.running_turn] : []);
      for (const turnId of this.talk.draftTurns) if (turnId !== page.running_turn) this.talk.dropDraft(turnId);
      if (page.running_turn && !this.talk.hasDraft(page.running_turn)) this.talk.openDraft(page.running_turn);
      this.on.onPage();
      this.#markSeen();
    } catch (error) {
      if (this.#closed) return;
      if (!this.#synced) this.on.onLoadError(error);
      else if (error.passing) setTimeout(() => this.sync(), SYNC_AGAIN_MS);
    } finally {
      this.#syncing = false;
      for (const event of this.#queue.splice(0)) this.#show(event);
      if (this.#again) this.sync();
    }
  }

  async loadOlder() {
    const [oldest] = this.talk.ids;
    if (!this.#more || this.#loadingOlder || !oldest) return;
    this.#loadingOlder = true;
    this.on.onOlder("loading");
    try {
      const page = await request("GET", `${this.path}/messages?limit=${PAGE}&before=${encodeURIComponent(oldest)}`);
      if (this.#closed) return;
      this.#more = page.more;
      this.talk.prepend(page.messages);
      this.on.onOlder("idle");
    } catch (error) {
      if (!this.#closed) this.on.onOlder("error", error);
    } finally {
      this.#loadingOlder = false;
    }
  }

  #receive(event) {
    if (this.#closed) return;
    if (this.#syncing) this.#queue.push(event);
    else this.#show(event);
  }

  #show({ event, data }) {
    switch (event) {
      case "turn":
        this.#begun.add(data.turn_id);
        this.talk.answering(data.turn_id);
        this.talk.openDraft(data.turn_id);
        this.#addRunning(data.turn_id);
        break;
      case "delta":
        this.#delta(data);
        break;
      case "snapshot":
        this.#draftFor(data.turn_id)?.snapshot(data.html);
        break;
      case "reset":
        this.#draftFor(data.turn_id)?.reset();
        this.talk.speaker.reset();
        break;
      case "tool":
        this.#draftFor(data.turn_id)?.tool(data.name, data.state);
        break;
      case "message":
        this.#message(data);
        break;
      case "chat":
        this.#told += 1;
        this.on.onChat(data);
        break;
      case "notice":
        this.talk.speaker.announce(data.text);
        this.on.onNotice(data.text, data.level);
        break;
      case "error":
        this.#draftFor(data.turn_id)?.problem(data.message, () => this.regenerate(data.turn_id));
        this.talk.speaker.announce(data.message);
        break;
      case "done":
        this.#done(data);
        break;
      default: // a newer server may say more than this page knows
    }
    this.talk.follow.grown();
  }

  #delta({ turn_id: turnId, text }) {
    const draft = this.#draftFor(turnId);
    if (!draft) return;
    draft.delta(text);
    this.talk.speaker.feed(text);
  }

  /** The draft of a turn; made when events begin in its middle, but not again for a turn whose answer is stored. */
  #draftFor(turnId) {
    if (this.talk.hasDraft(turnId)) return this.talk.draft(turnId);
    return this.talk.hasAnswer(turnId) ? null : this.talk.openDraft(turnId);
  }

  #message(message) {
    if (message.role === "user") {
      if (!this.outbox.holds(message)) this.#fromElsewhere(message);
      return;
    }
    this.talk.upsert(message);
    if (message.role === "notice") this.#notice(message);
    if (message.role === "assistant") this.on.onAnswer(message);
    nudgeTitle();
    this.#markSeen();
  }

  /** A notice about a turn says in the log what its draft said in passing. */
  #notice({ text, turn_id: turnId }) {
    this.talk.speaker.announce(text);
    const draft = this.talk.draft(turnId);
    if (draft?.empty) this.talk.dropDraft(turnId);
    else draft?.notes.replaceChildren();
  }

  /** A message from another tab may have replaced others there: read the page again, so that both tabs agree. */
  #fromElsewhere(message) {
    const known = this.talk.ids.includes(message.id);
    this.talk.upsert(message);
    if (!known) this.sync();
  }

  #done({ turn_id: turnId, outcome }) {
    this.talk.speaker.flush();
    this.#running.delete(turnId);
    this.on.onRunning(this.running);
    this.talk.draft(turnId)?.settle();
    if (outcome !== "answered") this.sync(); // what the log keeps of it, and the former answer if there is no new one
  }

  #addRunning(turnId) {
    if (turnId) this.#running.add(turnId);
    this.on.onRunning(this.running);
  }

  #setRunning(turnIds) {
    this.#running = new Set(turnIds);
    this.on.onRunning(this.running);
  }

  #markSeen = () => {
    const last = this.talk.last;
    if (document.hidden || !last || last.id === this.#seen || this.#closed) return;
    this.#seen = last.id;
    const told = this.#told;
    request("PATCH", this.path, { seen: last.id }).then(
      (chat) => (told === this.#told && !this.#closed ? this.on.onChat(chat) : this.on.onSeen()), // the stream may have been faster, and is newer
      () => {
        this.#seen = "";
      },
    );
  };

  // --- writing ---

  /** Puts a message on its way; with `replaces` what it takes the place of is gone at once. */
  send(entry) {
    if (entry.replaces) this.talk.cutFrom(entry.replaces);
    this.outbox.send(entry);
  }

  /** Whether nothing of a turn has come yet. */
  #isAhead(turnId) {
    return Boolean(turnId) && !this.#begun.has(turnId);
  }

  /** The server has a message: its answer begins, unless another runs before it. */
  #taken(turnId) {
    if (this.#closed || !this.#isAhead(turnId)) return;
    if (!this.running) this.talk.openDraft(turnId);
    this.#addRunning(turnId);
  }

  #returned(entry) {
    this.on.onReturn(entry);
    if (entry.replaces) this.sync();
  }

  async regenerate(turnId) {
    this.#begun.delete(turnId);
    try {
      const answer = await request("POST", `${this.path}/regenerate`, { turn_id: turnId, client_id: newClientId() });
      if (!this.#isAhead(answer.turn_id)) return; // its events were faster
      this.talk.openDraft(answer.turn_id);
      this.#addRunning(answer.turn_id);
      this.talk.follow.jump();
    } catch (error) {
      this.on.onNotice(explain(error), "warning");
    }
  }

  async stop() {
    try {
      await request("POST", `${this.path}/stop`, {});
    } catch (error) {
      this.on.onNotice(explain(error), "warning");
    }
  }
}
