// What a screen reader hears while an answer grows: whole sentences, one at a time, never single tokens. Code is announced, not spelled.

import { h } from "./dom.js";
import { t } from "./i18n.js";
import { guessLang } from "./lang.js";

const SENTENCE_END = /[.!?…](?=\s)|[。！？](?![。！？」』”])|[。！？][」』”]|\n/;
const KEEP_LINES = 12;

export class Speaker {
  #rest = "";
  #inCode = false;

  constructor() {
    this.element = h("div", {
      class: "sr-only",
      role: "log",
      "aria-live": "polite",
      "aria-relevant": "additions",
      "aria-label": t("chat.spoken"),
    });
  }

  /** More words of the answer. */
  feed(text) {
    this.#rest += text;
    for (;;) {
      const end = SENTENCE_END.exec(this.#rest);
      if (!end) return;
      const cut = end.index + end[0].length;
      this.#say(this.#rest.slice(0, cut));
      this.#rest = this.#rest.slice(cut);
    }
  }

  /** The answer is over: says what is left. */
  flush() {
    this.#say(this.#rest);
    this.reset();
  }

  /** The answer starts again from nothing. */
  reset() {
    this.#rest = "";
    this.#inCode = false;
  }

  /** What stands outside the answer, such as a notice: all of it at once. */
  announce(markdown) {
    const text = markdown.split("\n").map(bare).filter(Boolean).join("\n");
    if (this.element.lastChild?.textContent === text) return; // told already, as an error and as the notice about it
    this.element.append(h("p", { lang: guessLang(text) }, text));
    while (this.element.childElementCount > KEEP_LINES) this.element.firstChild.remove();
  }

  #say(piece) {
    const line = piece.trim();
    if (line.startsWith("```")) {
      this.#inCode = !this.#inCode;
      if (this.#inCode) this.announce(t("code.label"));
      return;
    }
    if (!this.#inCode && /[\p{L}\p{N}]/u.test(bare(line))) this.announce(line);
  }
}

/** A line of Markdown without its marks; underscores within a word, as in names of files and settings, are no marks. */
function bare(line) {
  return line
    .replace(/^\s*(#{1,6}|[-*+>]|\d+\.)\s+/, "")
    .replace(/[*`]{1,3}|(?<![\p{L}\p{N}])_{1,3}|_{1,3}(?![\p{L}\p{N}])/gu, "")
    .replace(/\s*\|\s*/g, " ")
    .trim();
}
