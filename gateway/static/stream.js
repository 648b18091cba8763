// The event stream of one chat: opened, read, and opened again with Last-Event-ID when it breaks, ever more slowly (WP-01), but at once when the gate can be
// reached again. A tab that nobody looks at and where nothing runs lets go of its connection, because browsers allow only a few per gate.

import { ApiError, NetworkError, openStream } from "./api.js";
import { onReachChange } from "./reach.js";
import { readEvents } from "./sse.js";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
const HEALTHY_MS = 10_000;
const SILENCE_MS = 90_000;
const HIDDEN_MS = 120_000;

export class ChatStream {
  #end = new AbortController();
  #connection = null;
  #lastEventId = "";
  #hiddenTimer = 0;
  #paused = false;
  #wake = () => {};

  /**
   * `onEvent({event, data})` gets each event in order; `onOpen()` each opening, before any event; `onDown(error)` each loss; `onEnd(error)` when it makes
   * no sense to go on: signed out, or the chat is gone. `isBusy()` says whether a turn runs. `fromBegin`: nothing of this chat was seen yet.
   */
  constructor({ path, onEvent, onOpen, onDown, onEnd, isBusy, fromBegin = false }) {
    Object.assign(this, { path, onEvent, onOpen, onDown, onEnd, isBusy });
    if (fromBegin) this.#lastEventId = "begin";
    document.addEventListener("visibilitychange", () => this.#look(), { signal: this.#end.signal });
    addEventListener("online", () => this.#wake(), { signal: this.#end.signal });
    const forget = onReachChange((up) => up && !this.#paused && this.#wake()); // else an answer to words sent just now would come only after the wait
    this.#end.signal.addEventListener("abort", forget);
  }

  async run() {
    let wait = FIRST_WAIT_MS;
    while (!this.#end.signal.aborted) {
      const started = performance.now();
      let asked = 0;
      try {
        await this.#connect();
      } catch (error) {
        if (this.#end.signal.aborted) return;
        if (!(error instanceof ApiError || error instanceof NetworkError || error.name === "AbortError")) console.error(error); // a fault of this page
        if (error instanceof ApiError && [401, 403, 404].includes(error.status)) return this.onEnd(error);
        asked = (error.retryAfterS ?? 0) * 1000;
        if (!this.#paused) this.onDown(error);
      }
      if (performance.now() - started > HEALTHY_MS) wait = FIRST_WAIT_MS;
      await this.#sleep(this.#paused ? Infinity : Math.max(asked, wait * (0.75 + Math.random() / 2)));
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    }
  }

  close() {
    this.#end.abort();
    this.#connection?.abort();
    clearTimeout(this.#hiddenTimer);
    this.#wake();
  }

  async #connect() {
    this.#connection = new AbortController();
    const { signal } = this.#connection;
    let watch = 0;
    const heard = () => {
      clearTimeout(watch);
      watch = setTimeout(() => this.#connection.abort(new NetworkError()), SILENCE_MS);
    };
    heard();
    try {
      const answer = await openStream("GET", this.path, { signal, lastEventId: this.#lastEventId });
      this.onOpen();
      for await (const { id, event, data } of readEvents(answer, heard)) {
        if (signal.aborted) return;
        this.onEvent({ event, data });
        if (id !== undefined) this.#lastEventId = id;
      }
    } finally {
      clearTimeout(watch);
    }
  }

  #look() {
    clearTimeout(this.#hiddenTimer);
    if (!document.hidden) {
      this.#paused = false;
      this.#wake();
      return;
    }
    this.#hiddenTimer = setTimeout(() => {
      if (this.isBusy()) return;
      this.#paused = true;
      this.#connection?.abort();
    }, HIDDEN_MS);
  }

  #sleep(ms) {
    return new Promise((resolve) => {
      const timer = ms === Infinity ? 0 : setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
