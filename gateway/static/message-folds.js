// Messages that an entry stands for, folded to one line in the talk where the chat wishes it (RS-90). Nothing of them is gone: the line opens them.

import { h } from "./dom.js";
import { tn } from "./i18n.js";
import { icon } from "./icons.js";

export class MessageFolds {
  #open = new Set(); // ids of messages that were unfolded

  /** `list` holds the messages; `isFolded(id)` says which of them fold. */
  constructor(list, isFolded) {
    this.list = list;
    this.isFolded = isFolded;
  }

  /** Folds anew what stands in the list now: each run of such messages is one line. Whether there is any. */
  update() {
    for (const line of this.list.querySelectorAll(":scope > .message-fold")) line.remove();
    let run = [];
    for (const element of [...this.list.children, null]) {
      if (element && this.isFolded(element.dataset.id)) {
        run.push(element);
        continue;
      }
      if (run.length) this.#fold(run);
      run = [];
    }
    return Boolean(this.list.querySelector(":scope > .message-fold"));
  }

  #fold(run) {
    const open = run.some(({ dataset }) => this.#open.has(dataset.id)); // a run that grew stays as it was
    const button = h(
      "button",
      { type: "button", class: "text-button", "aria-expanded": String(open), onclick: () => show(button.ariaExpanded !== "true") },
      icon("scroll"),
      tn("entries.folded", run.length),
    );
    const show = (wanted) => {
      button.ariaExpanded = String(wanted);
      for (const element of run) {
        element.hidden = !wanted;
        if (wanted) this.#open.add(element.dataset.id);
        else this.#open.delete(element.dataset.id);
      }
    };
    show(open);
    run[0].before(h("li", { class: "message-fold" }, button));
  }
}
