// The addresses of the API of recall and summaries, each about one chat.

import { request } from "./api.js";

export class RecallApi {
  constructor(chat, signal) {
    this.chat = chat;
    this.signal = signal;
  }

  chats() {
    return request("GET", "/api/recall/chats", undefined, { signal: this.signal });
  }

  /** `tail` is what stands behind the chat, empty for the chat itself. */
  get(tail = "", query = {}) {
    const pairs = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined);
    return request("GET", `${this.#path(tail)}${pairs.length ? `?${new URLSearchParams(pairs)}` : ""}`, undefined, { signal: this.signal });
  }

  /** Writes are not ended by leaving the page: what was asked for happens. */
  send(method, tail, body) {
    return request(method, this.#path(tail), body);
  }

  exportPath() {
    return this.#path("chunks/export");
  }

  #path(tail) {
    return `/api/recall/chats/${encodeURIComponent(this.chat)}${tail ? `/${tail}` : ""}`;
  }
}
