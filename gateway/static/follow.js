// Following the end of the talk: only while the reader is at the bottom. Whoever scrolls up is left in peace and gets a button back down.

import { h } from "./dom.js";
import { t } from "./i18n.js";
import { icon } from "./icons.js";

const NEAR_PX = 56;

export class Follow {
  #following = true;
  #queued = false;
  #top = 0;

  /** `scroller` scrolls, `content` is what grows inside it, also by itself when a picture arrives. */
  constructor(scroller, content) {
    this.scroller = scroller;
    this.button = h(
      "button",
      { type: "button", class: "to-latest", hidden: true, onclick: () => this.jump() },
      icon("down"),
      t("chat.latest"),
    );
    scroller.addEventListener("scroll", () => this.#look(), { passive: true });
    this.observer = new ResizeObserver(() => this.grown());
    this.observer.observe(scroller);
    this.observer.observe(content);
  }

  get following() {
    return this.#following;
  }

  /** Something was added at the end: go along if the reader is there. Many calls in one frame are one scroll. */
  grown() {
    if (this.#queued) return;
    this.#queued = true;
    requestAnimationFrame(() => {
      this.#queued = false;
      if (this.#following) this.#toEnd();
      else this.button.hidden = this.#nearEnd();
    });
  }

  /** Go to the end now, and follow from there: the reader sent something or asked for it. */
  jump() {
    this.#following = true;
    this.#toEnd();
  }

  /** Runs `change`, which adds above, and keeps what the reader sees where it is. */
  keepPlace(change) {
    const before = this.scroller.scrollHeight - this.scroller.scrollTop;
    change();
    this.scroller.scrollTop = this.scroller.scrollHeight - before;
  }

  destroy() {
    this.observer.disconnect();
  }

  #toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.#top = this.scroller.scrollTop;
    this.button.hidden = true;
  }

  #nearEnd() {
    return this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight < NEAR_PX;
  }

  /** Only a move upwards is the reader leaving; that the end moved away by itself is not. */
  #look() {
    const top = this.scroller.scrollTop;
    if (this.#nearEnd()) this.#following = true;
    else if (top < this.#top) this.#following = false;
    this.#top = top;
    this.button.hidden = this.#following;
  }
}
