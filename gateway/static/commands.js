// The list of commands that opens with `/` (WO-14): arrows choose, Enter or Tab takes, Esc closes. The field keeps the focus throughout.

import { freshId, h } from "./dom.js";
import { onEscape } from "./escape.js";
import { t } from "./i18n.js";
import { isComposing } from "./ime.js";

const MOST = 40;

export class CommandList {
  #shown = [];
  #at = 0;
  #release = () => {};
  #dismissed = "";

  /** `field` is the textarea; `commands` a list of `{name, args, help}`. `onTake(text)` gets the words that take the place of what was typed. */
  constructor({ field, commands, onTake }) {
    this.field = field;
    this.commands = commands.map((command) => ({ ...command, name: `/${command.name.replace(/^\//, "")}` }));
    this.onTake = onTake;
    this.element = h("ul", {
      class: "commands",
      role: "listbox",
      id: freshId("commands"),
      "aria-label": t("commands.label"),
      hidden: true,
    });
    field.setAttribute("aria-autocomplete", "list");
    field.setAttribute("aria-haspopup", "listbox");
    field.setAttribute("aria-controls", this.element.id);
    field.addEventListener("blur", () => this.close());
  }

  get open() {
    return !this.element.hidden;
  }

  /** Looks at what is typed: one word that begins with `/` opens the list. */
  look() {
    const typed = this.field.value;
    if (typed !== this.#dismissed) this.#dismissed = "";
    const word = /^\/\S*$/.test(typed) && !this.#dismissed ? typed.toLowerCase() : "";
    this.#shown = word ? this.#matching(word) : [];
    this.#at = 0;
    if (this.#shown.length) this.#render();
    else this.close();
  }

  #matching(word) {
    const starts = this.commands.filter((command) => command.name.toLowerCase().startsWith(word));
    const rest = this.commands.filter((command) => !starts.includes(command) && command.name.toLowerCase().includes(word.slice(1)));
    return [...starts, ...rest].slice(0, MOST);
  }

  /** Handles a key of the field; true when the list used it. A command typed in full is left to be sent. */
  key(event) {
    if (!this.open || isComposing(event)) return false;
    const { length } = this.#shown;
    const steps = { ArrowDown: 1, ArrowUp: length - 1 };
    if (event.key in steps) this.#choose((this.#at + steps[event.key]) % length);
    else if (event.key === "Tab" && !event.shiftKey) this.#take(this.#at);
    else if (event.key === "Enter" && !event.shiftKey && this.field.value !== this.#shown[this.#at].name) this.#take(this.#at);
    else return false;
    event.preventDefault();
    return true;
  }

  close() {
    this.#release();
    this.#release = () => {};
    this.element.hidden = true;
    this.field.removeAttribute("aria-activedescendant");
  }

  #render() {
    this.element.replaceChildren(
      ...this.#shown.map((command, at) =>
        h(
          "li",
          {
            class: "command",
            role: "option",
            id: `${this.element.id}-${at}`,
            "aria-selected": "false",
            onpointerdown: (event) => {
              event.preventDefault();
              this.#take(at);
            },
          },
          h("span", { class: "command-name" }, command.name, command.args && h("span", { class: "command-args" }, ` ${command.args}`)),
          h("span", { class: "command-help" }, command.help),
        ),
      ),
    );
    if (this.element.hidden) {
      this.element.hidden = false;
      this.#release = onEscape(() => {
        this.#dismissed = this.field.value;
        this.close();
      });
    }
    this.#choose(0);
  }

  #choose(at) {
    this.#at = at;
    [...this.element.children].forEach((row, index) => row.setAttribute("aria-selected", String(index === at)));
    const row = this.element.children[at];
    row.scrollIntoView({ block: "nearest" });
    this.field.setAttribute("aria-activedescendant", row.id);
  }

  #take(at) {
    const { name, args } = this.#shown[at];
    this.close();
    this.onTake(args ? `${name} ` : name);
  }
}
