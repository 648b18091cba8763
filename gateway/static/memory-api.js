// The addresses of the memory API, each with the scope that is being looked at.

import { request } from "./api.js";

/** Calls for one scope; an empty one is one's own. `signal` ends them when the page is left. */
export class MemoryApi {
  constructor(scope, signal) {
    this.scope = scope;
    this.signal = signal;
  }

  get(tail, query) {
    return request("GET", this.#path(tail, query), undefined, { signal: this.signal });
  }

  /** Writes are not ended by leaving the page: what was asked for happens. */
  send(method, tail, body, query) {
    return request(method, this.#path(tail, query), body);
  }

  file(path, more = "") {
    return `files/${path.split("/").map(encodeURIComponent).join("/")}${more}`;
  }

  /** The address of a place on the memory page. */
  hash(tab, ...parts) {
    const where = [tab, ...parts.flatMap((part) => part.split("/"))].filter(Boolean).map(encodeURIComponent).join("/");
    return `#/memory/${where}${this.scope ? `?scope=${encodeURIComponent(this.scope)}` : ""}`;
  }

  #path(tail, query = {}) {
    const pairs = Object.entries({ ...query, scope: this.scope }).filter(([, value]) => value !== "" && value !== undefined);
    return `/api/memory/${tail}${pairs.length ? `?${new URLSearchParams(pairs)}` : ""}`;
  }
}
