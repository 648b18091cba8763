// The tab "conversation": where the window of a chat begins, what nothing stands for yet, its rolling summaries by level, and its switches.

import { segmented } from "./controls.js";
import { confirmDialog } from "./dialog.js";
import { h, replace } from "./dom.js";
import { t, term, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { guessLang } from "./lang.js";
import { linksView } from "./memory-links.js";
import { recallTab } from "./memory-recall.js";
import { summaryRow } from "./memory-summary-row.js";
import { readings } from "./refresh.js";
import { emptyState, errorState, explain } from "./states.js";
import { toast } from "./toast.js";
import { absolute } from "./when.js";

const LEVELS = ["long_term", "consolidated", "recent"];
const RULES = ["full", "recall_only", "none"];
const WATCH_MS = 3_000;
const WATCHES = 40; // looks after a rebuild was asked for

export const conversationTab = recallTab("conversation", (context) => new Conversation(context).load());

class Conversation {
  #begin = readings();
  #watches = 0;

  constructor(context) {
    Object.assign(this, context);
  }

  async load() {
    const isNewest = this.#begin();
    try {
      const [chat, summaries] = await Promise.all([this.api.get(), this.api.get("summaries")]);
      if (this.signal.aborted || !isNewest()) return;
      if (this.place.querySelector(".memory-edit")) return; // somebody types here
      this.uncovered = summaries.uncovered;
      replace(this.place, this.#window(summaries.window), this.#uncovered(summaries), this.#levels(summaries), this.#switches(chat), linksView(this));
    } catch (error) {
      if (error.name === "AbortError" || this.signal.aborted || !isNewest()) return;
      replace(this.place, errorState(error, () => this.load()));
    }
  }

  #window({ profile, first, can_undo: canUndo }) {
    const undo = h("button", { type: "button", class: "button small", onclick: () => this.#undo(undo) }, icon("undo"), t("recall.undoJump"));
    return h(
      "section",
      { class: "recall-part" },
      h("h3", {}, t("recall.window")),
      h("p", { class: "hint" }, t("recall.profile", { name: term("recall.profileName", profile) })),
      first
        ? h(
            "div",
            { class: "window-start" },
            h("p", { class: "window-mark" }, icon("flag"), t("recall.startsHere"), h("span", { class: "hint" }, absolute(first.created_at))),
            h("p", { class: "memory-quote", lang: guessLang(first.text) }, first.text.slice(0, 300)),
          )
        : h("p", {}, t("recall.allSent")),
      canUndo && h("p", { class: "window-undo" }, h("span", { class: "hint" }, t("recall.jumped")), undo),
    );
  }

  async #undo(button) {
    button.disabled = true;
    try {
      await this.api.send("POST", "window/undo", {});
      toast(t("recall.undone"));
      await this.load();
    } catch (error) {
      button.disabled = false;
      toast(explain(error), { tone: "warn" });
    }
  }

  #uncovered({ uncovered, allowed, has_model: hasModel }) {
    if (uncovered === null) return null;
    const button = h("button", { type: "button", class: "button small", onclick: () => this.#rebuild(button) }, icon("again"), t("recall.summarise"));
    return h(
      "section",
      { class: "recall-part" },
      h(
        "p",
        { class: uncovered ? "with-button tone-warn" : "with-button", role: "status" },
        h("span", {}, uncovered ? tn("recall.uncovered", uncovered) : t("recall.covered")),
        uncovered > 0 && allowed && hasModel && button,
      ),
      uncovered > 0 && !allowed && h("p", { class: "hint" }, t("recall.noRecord")),
      uncovered > 0 && allowed && !hasModel && h("p", { class: "hint" }, t("recall.noModel")),
      this.#watches > 0 && uncovered > 0 && h("progress", { "aria-label": t("recall.progress"), value: Math.max(0, this.asked - uncovered), max: this.asked }),
    );
  }

  async #rebuild(button) {
    button.disabled = true;
    try {
      await this.api.send("POST", "summaries/rebuild", {});
      toast(t("recall.begun"));
      this.asked = this.uncovered;
      this.#watches = WATCHES;
      this.#watch();
    } catch (error) {
      button.disabled = false;
      toast(explain(error), { tone: "warn" });
    }
  }

  #watch() {
    setTimeout(async () => {
      if (this.signal.aborted) return;
      this.#watches = this.uncovered ? this.#watches - 1 : 0;
      await this.load();
      if (this.#watches > 0) this.#watch();
    }, WATCH_MS);
  }

  #levels({ items, uncovered }) {
    if (!items.length)
      return emptyState("book", t("recall.noSummaries"), t(uncovered === null ? "recall.noSummariesProfile" : "recall.noSummariesText"));
    return LEVELS.filter((level) => items.some(({ kind }) => kind === level)).map((level) =>
      h(
        "section",
        { class: "recall-part" },
        h("h3", {}, t(`recall.level.${level}`)),
        h(
          "ul",
          { class: "memories", "aria-label": t(`recall.level.${level}`) },
          items.filter(({ kind }) => kind === level).map((each) => summaryRow(each, this)),
        ),
      ),
    );
  }

  #switches(chat) {
    const box = h("input", { type: "checkbox", role: "switch", class: "switch", checked: chat.on, onchange: () => this.#set({ recall: box.checked }) });
    return h(
      "section",
      { class: "recall-part" },
      h("h3", {}, t("recall.switches")),
      h("label", { class: "switch-line" }, box, h("span", {}, t("recall.recall"), h("span", { class: "hint" }, t("recall.recallText")))),
      h("p", { class: "label" }, t("recall.record")),
      segmented({
        legend: t("recall.record"),
        options: RULES.map((rule) => [rule, t(`recall.record.${rule}`)]),
        value: chat.own_record,
        onchange: (record) => this.#set({ record }),
      }),
      h("p", { class: "hint" }, t(`recall.recordHint.${chat.own_record}`)),
      chat.record !== chat.own_record && h("p", { class: "hint tone-warn" }, t("recall.stricter", { rule: t(`recall.record.${chat.record}`) })),
    );
  }

  async #set(values) {
    try {
      const chat = await this.api.send("PATCH", "", values);
      toast(t("saved.saved"));
      if (chat.asks_to_clear) await this.#askClear(chat);
    } catch (error) {
      toast(explain(error), { tone: "warn" });
    }
    await this.load();
  }

  async #askClear({ totals }) {
    const { code } = await this.api.send("POST", "chunks/confirm", { what: "everything" });
    await confirmDialog({
      title: t("recall.clearKeptTitle"),
      body: tn("recall.clearKeptText", totals.chunks),
      action: t("recall.clearKept"),
      danger: true,
      submit: () => this.api.send("POST", "chunks/clear", { code, everything: true }),
    });
  }
}
