// An answer while it grows. Deltas are added as plain text after the last snapshot; a snapshot takes the place of both (WO-13).

import { h } from "./dom.js";
import { t, term } from "./i18n.js";
import { icon } from "./icons.js";
import { guessLang } from "./lang.js";
import { note } from "./message.js";
import { growingPoint, Prose } from "./prose.js";

export class Draft {
  #prose;
  #tail = null;
  #tailText = null;
  #since = "";
  #tools = new Map();

  constructor(turnId) {
    this.turnId = turnId;
    this.body = h("div", { class: "prose" });
    this.thinking = h("p", { class: "thinking" }, h("span", { class: "thinking-moon", "aria-hidden": "true" }, icon("moon")), h("span", {}, t("chat.thinking")));
    this.toolList = h("ul", { class: "tools", hidden: true });
    this.notes = h("div", {});
    this.element = h("li", { class: "message is-assistant is-growing", dataset: { turn: turnId } }, h("article", { "aria-label": t("chat.by.assistant"), "aria-busy": "true" }, this.toolList, this.body, this.thinking, this.notes));
    this.#prose = new Prose(this.body);
  }

  get empty() {
    return !this.body.hasChildNodes();
  }

  delta(text) {
    this.thinking.remove();
    this.#since += text;
    if (!this.#tail) this.#openTail();
    this.#tailText.data = this.#tail.matches("p") ? this.#since.trimStart() : this.#since;
    if (this.#tail.matches("p")) this.#tail.lang = guessLang(this.#since, this.body.lang);
  }

  snapshot(html) {
    this.thinking.remove();
    this.#closeTail();
    this.#prose.show(html);
  }

  reset() {
    this.#closeTail();
    this.#prose.clear();
    this.notes.replaceChildren();
    this.body.after(this.thinking);
  }

  tool(name, state) {
    const line = this.#tools.get(name) ?? this.toolList.appendChild(h("li", { class: "tool" }));
    this.#tools.set(name, line);
    line.dataset.state = state;
    line.replaceChildren(icon(state === "started" ? "clock" : state === "failed" ? "warn" : "check"), h("span", {}, `${term("tool", name)} · ${term("toolState", state)}`));
    this.toolList.hidden = false;
  }

  /** The turn went wrong: the server's sentence and a way to try again. */
  problem(message, retry) {
    this.notes.replaceChildren(note("warn", message, retry && h("button", { type: "button", class: "text-button", onclick: retry }, t("action.retry"))));
    this.settle();
  }

  /** No more words will come. */
  settle() {
    this.thinking.remove();
    this.element.classList.remove("is-growing");
    this.element.querySelector("article").removeAttribute("aria-busy");
  }

  #openTail() {
    const fresh = this.empty || /^\s*\n/.test(this.#since);
    this.#tailText = document.createTextNode("");
    this.#tail = h(fresh ? "p" : "span", { class: "tail" }, this.#tailText);
    (fresh ? this.body : growingPoint(this.body)).append(this.#tail);
  }

  #closeTail() {
    this.#tail?.remove();
    this.#tail = null;
    this.#since = "";
  }
}
