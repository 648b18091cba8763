// How entries of a chat are made and what they hide (RS-82, RS-85, RS-86, RS-89 to RS-92).

import { field } from "./controls.js";
import { h, replace } from "./dom.js";
import { t, tn } from "./i18n.js";
import { icon } from "./icons.js";

const BOUNDS = { last_n: [5, 500], every: [1, 200], max_output: [1, 32_768], tail: [0, 5_000] };

export class EntrySettings {
  constructor(pane) {
    this.pane = pane;
    this.uncovered = h("div", { class: "entries-uncovered" });
    this.element = h("details", { class: "recall-part recall-fold" });
  }

  show(data) {
    this.#showUncovered(data);
    if (this.element.contains(document.activeElement) && this.changed) return; // somebody changes them
    if (JSON.stringify(data.settings) === this.known) return;
    this.known = JSON.stringify(data.settings);
    this.changed = false;
    replace(this.element, h("summary", {}, icon("gear"), t("entries.settings")), this.#form(data.settings));
  }

  #form(settings) {
    const number = (name) => {
      const [min, max] = BOUNDS[name];
      return h("input", { class: "input", type: "number", inputmode: "numeric", min, max, step: 1, required: true, value: settings[name] });
    };
    const box = (name) => h("input", { type: "checkbox", role: "switch", class: "switch", checked: settings[name] });
    const controls = {
      automatic: box("automatic"), every: number("every"), review: box("review"), last_n: number("last_n"), max_output: number("max_output"),
      hide: box("hide"), tail: number("tail"), collapse: box("collapse"),
    };
    const save = h("button", { type: "submit", class: "button small primary" }, t("action.save"));
    return h(
      "form",
      {
        class: "entries-settings",
        oninput: () => {
          this.changed = true;
        },
        onsubmit: async (event) => {
          event.preventDefault();
          save.disabled = true;
          const values = Object.entries(controls).map(([name, each]) => [name, each.type === "checkbox" ? each.checked : Number(each.value)]);
          const changes = Object.fromEntries(values.filter(([name, value]) => value !== settings[name]));
          this.changed = false;
          await this.pane.act(() => this.pane.api.send("PATCH", "settings", changes), t("saved.saved"));
          save.disabled = false;
        },
      },
      h("h4", {}, t("entries.settings.making")),
      line(controls.automatic, t("entries.automaticSwitch"), t("entries.automaticHint")),
      field({ label: t("entries.every"), control: controls.every, hint: t("entries.everyHint") }),
      line(controls.review, t("entries.review"), t("entries.reviewHint")),
      field({ label: t("entries.lastNDefault"), control: controls.last_n }),
      field({ label: t("entries.maxOutput"), control: controls.max_output, hint: t("entries.maxOutputHint") }),
      h("h4", {}, t("entries.settings.hiding")),
      line(controls.hide, t("entries.hide"), t("entries.hideHint")),
      field({ label: t("entries.tail"), control: controls.tail, hint: t("entries.tailHint") }),
      this.uncovered,
      line(controls.collapse, t("entries.collapse"), t("entries.collapseHint")),
      h("div", {}, save),
    );
  }

  /** Old messages that no entry stands for are still sent, whatever the tail says (RS-92). */
  #showUncovered({ uncovered, progress, allowed, has_model: hasModel }) {
    const running = progress?.state === "running";
    replace(
      this.uncovered,
      h("p", { class: uncovered ? "hint tone-warn" : "hint", role: "status" }, uncovered ? tn("entries.uncovered", uncovered) : t("entries.covered")),
      uncovered > 0 && [
        h("p", { class: "hint" }, t("entries.backfillHint")),
        h("button", { type: "button", class: "button small", disabled: running || !allowed || !hasModel, onclick: () => this.pane.backfill() }, icon("again"), t("entries.backfill")),
      ],
    );
  }
}

function line(control, label, hint) {
  return h("label", { class: "switch-line" }, control, h("span", {}, label, hint && h("span", { class: "hint" }, hint)));
}
