// The addresses of the API of saved memories, and how a list is named in them and in the address of the page.

import { request } from "./api.js";

const MODEL_MS = 150_000; // a model that writes drafts takes its time
const named = ({ list, character, space }) => Object.fromEntries(Object.entries({ list, character, space }).filter(([, value]) => value));

/** `list` of the calls is `{list, character?, space?}`. */
export class SavedApi {
  constructor(signal) {
    this.signal = signal;
  }

  lists() {
    return this.#get("lists");
  }

  rows(list) {
    return this.#get(`?${new URLSearchParams(named(list))}`);
  }

  changes(list) {
    return this.#get(`changes?${new URLSearchParams(named(list))}`);
  }

  add(list, content, evict) {
    return this.#send("POST", "", { ...named(list), content, ...(evict ? { evict } : {}) });
  }

  change(id, values) {
    return this.#send("PATCH", id, values);
  }

  remove(id) {
    return this.#send("DELETE", id);
  }

  /** `what`: pin, unpin or wake. */
  act(id, what) {
    return this.#send("POST", `${id}/${what}`, {});
  }

  askClear(list) {
    return this.#send("POST", "clear", named(list));
  }

  clear(list, { step, token }, yes) {
    return this.#send("POST", `clear/${step}`, { ...named(list), token, yes });
  }

  generate(list, description) {
    return this.#send("POST", "generate", { ...named(list), description }, MODEL_MS);
  }

  extract(list, chat, messages, how) {
    return this.#send("POST", "extract", { ...named(list), chat, messages, how }, MODEL_MS);
  }

  saveDrafts(list, drafts, source) {
    return this.#send("POST", "drafts", { ...named(list), drafts, ...source });
  }

  undo(id) {
    return this.#send("POST", `changes/${id}/undo`, {});
  }

  /** The address of the file to be saved; without a list it holds all of them. */
  exportPath(list) {
    return `/api/memories/export${list ? `?${new URLSearchParams(named(list))}` : ""}`;
  }

  preview(wish) {
    return this.#send("POST", "import/preview", wish);
  }

  bringIn(wish) {
    return this.#send("POST", "import", wish);
  }

  #get(tail) {
    return request("GET", `/api/memories${tail.startsWith("?") ? tail : `/${tail}`}`, undefined, { signal: this.signal });
  }

  /** Writes are not ended by leaving the page: what was asked for happens. */
  #send(method, tail, body, timeoutMs) {
    return request(method, `/api/memories${tail === "" ? "" : `/${tail}`}`, body, timeoutMs ? { timeoutMs } : {});
  }
}

/** A list as it stands in the address of the page, and the list that an address means. */
export const listKey = ({ list, character = "", space = "" }) => [list, space, character].filter(Boolean).join("/");

export const sameList = (one, other) => listKey(one) === listKey(other);
