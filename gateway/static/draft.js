// An answer while it grows. Deltas are added as plain text after the last snapshot; a snapshot takes the place of both (WO-13).

import { h } from "./dom.js";
import { t, term } from "./i18n.js";
import { icon } from "./icons.js";
import { guessLang } from "./lang.js";
import { note } from "./message.js";
import { growingPoint, Prose } from "./prose.js";

export class Draft {
  #prose;
  #since = ""; // words after the last snapshot
  #inline = null; // where they go on in its last block
  #block = null; // and what begins a new one

  constructor(turnId) {
    this.turnId = turnId;
    this.body = h("div", { class: "prose" });
    this.doing = h("span", { class: "thinking-text" }, t("chat.thinking"));
    this.thinking = h("p", { class: "thinking" }, h("span", { class: "thinking-moon", "aria-hidden": "true" }, icon("moon")), this.doing);
    this.notes = h("div", {});
    this.element = h(
      "li",
      { class: "message is-assistant is-growing", dataset: { turn: turnId } },
      h("article", { "aria-label": t("chat.by.assistant"), "aria-busy": "true" }, this.body, this.thinking, this.notes),
    );
    this.#prose = new Prose(this.body);
  }

  get empty() {
    return !this.body.hasChildNodes();
  }

  delta(text) {
    this.element.classList.add("has-words");
    this.#since += text;
    this.#showSince();
  }

  snapshot(html) {
    const gap = /\s*$/.exec(this.#since)[0]; // HTML has no use for blanks at its end, but the next word has
    this.element.classList.add("has-words");
    this.#dropSince();
    this.#prose.show(html);
    this.#since = gap;
  }

  reset() {
    this.#dropSince();
    this.#prose.clear();
    this.notes.replaceChildren();
    this.element.classList.remove("has-words");
  }

  /** Tells in the line below what a tool does; a tool that is done says nothing more, the receipt has it. */
  tool(name, state) {
    this.element.classList.toggle("is-working", state !== "done");
    this.doing.textContent =
      { started: term("tool", name), failed: `${term("tool", name)} · ${term("toolState", state)}` }[state] ?? t("chat.thinking");
  }

  /** The turn went wrong: the server's sentence and a way to try again. */
  problem(message, retry) {
    this.notes.replaceChildren(
      note("warn", message, retry && h("button", { type: "button", class: "text-button", onclick: retry }, t("action.retry"))),
    );
    this.settle();
  }

  /** No more words will come. */
  settle() {
    this.thinking.remove();
    this.element.classList.remove("is-growing");
    this.element.querySelector("article").removeAttribute("aria-busy");
  }

  /** Up to the first blank line the words go on in the last block; what follows stands below it until the next snapshot. */
  #showSince() {
    if (!this.#inline) {
      this.#inline = h("span", { class: "tail" });
      (this.empty ? this.body : growingPoint(this.body)).append(this.#inline);
      this.#block = h("p", { class: "tail" });
      const code = this.#inline.closest("pre");
      if (code?.textContent.endsWith("\n")) this.#since = this.#since.replace(/^\n/, ""); // a block of code has its last line end already
    }
    const cut = this.#inline.closest("pre") ? -1 : this.#since.search(/\n\s*\n/);
    this.#inline.textContent = cut < 0 ? this.#since : this.#since.slice(0, cut);
    const below = cut < 0 ? "" : this.#since.slice(cut).trim();
    this.#block.textContent = below;
    this.#block.lang = guessLang(below, this.body.lang);
    if (below) this.body.append(this.#block);
  }

  #dropSince() {
    this.#inline?.remove();
    this.#block?.remove();
    this.#inline = null;
    this.#since = "";
  }
}
