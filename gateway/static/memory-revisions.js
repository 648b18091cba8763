// Older texts of a file in a drawer: each with what has changed since, and a way back (WD-88).

import { iconButton } from "./controls.js";
import { diffLines } from "./difflines.js";
import { h } from "./dom.js";
import { t } from "./i18n.js";
import { icon } from "./icons.js";
import { makeSheet } from "./sheet.js";
import { emptyState, explain, fillWhenLoaded } from "./states.js";
import { toast } from "./toast.js";
import { absolute, ago } from "./when.js";

const ALWAYS = matchMedia("all");

export class RevisionDrawer {
  /** `restore(content, basedOn)` writes a text; `frame` is the page that the drawer lies over. */
  constructor({ api, path, restore, frame }) {
    Object.assign(this, { api, path, restore });
    this.body = h("div", { class: "drawer-body" });
    this.element = h(
      "aside",
      { class: "drawer revisions", "aria-label": t("revisions.title") },
      h(
        "header",
        { class: "drawer-head" },
        h("h2", {}, icon("history"), t("revisions.title")),
        iconButton("close", t("action.close"), () => this.close(), { dataset: { firstFocus: "1" } }),
      ),
      this.body,
    );
    frame.append(this.element);
    this.sheet = makeSheet({
      panel: this.element,
      rest: () => [frame.querySelector("main"), document.querySelector(".side")],
      narrow: ALWAYS,
    });
  }

  show() {
    this.sheet.show();
    fillWhenLoaded(this.body, {
      lines: 5,
      signal: this.api.signal,
      load: () => this.api.get(this.api.file(this.path, "/revisions")),
      show: ({ revisions }) =>
        revisions.length
          ? [h("p", { class: "hint" }, t("revisions.about")), ...revisions.map((each) => this.#row(each))]
          : emptyState("history", t("revisions.none"), t("revisions.noneText")),
    });
  }

  close() {
    this.sheet.hide();
  }

  destroy() {
    this.sheet.destroy();
    this.element.remove();
  }

  #row({ id, replaced_at: at }) {
    const place = h("div", { class: "revision-body" });
    const row = h("details", { class: "revision" }, h("summary", {}, ago(at), h("span", { class: "hint" }, absolute(at))), place);
    row.addEventListener("toggle", () => {
      if (!row.open || place.childElementCount) return;
      fillWhenLoaded(place, {
        lines: 4,
        signal: this.api.signal,
        load: () => this.api.get(this.api.file(this.path, `/revisions/${encodeURIComponent(id)}`)),
        show: (text) => [
          diffLines(text.difference, t("revisions.since")),
          h(
            "button",
            { type: "button", class: "button small", onclick: (event) => this.#restore(event.currentTarget, text) },
            icon("again"),
            t("revisions.restore"),
          ),
        ],
      });
    });
    return row;
  }

  async #restore(button, { content, hash }) {
    button.disabled = true;
    try {
      await this.restore(content, hash);
      toast(t("revisions.restored", { path: this.path }));
    } catch (error) {
      button.disabled = false;
      toast(explain(error), { tone: "warn" });
    }
  }
}
