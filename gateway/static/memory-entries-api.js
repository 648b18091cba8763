// The addresses of the API of summary entries of one chat, and of the templates that all chats share.

import { request } from "./api.js";

export class EntriesApi {
  constructor(chat, signal) {
    this.path = `/api/chats/${encodeURIComponent(chat)}/entries`;
    this.signal = signal;
  }

  get() {
    return request("GET", this.path, undefined, { signal: this.signal });
  }

  /** `tail` is what stands behind the entries. Writes are not ended by leaving the page: what was asked for happens. */
  send(method, tail, body) {
    return request(method, `${this.path}${tail ? `/${tail}` : ""}`, body);
  }

  templates() {
    return request("GET", "/api/summary-templates", undefined, { signal: this.signal });
  }

  sendTemplate(method, tail, body) {
    return request(method, `/api/summary-templates${tail ? `/${tail}` : ""}`, body);
  }
}
