// The tab "chunks": the passages of a chat that can be recalled, how each stands, and what can be done with them.

import { shareBar } from "./bars.js";
import { iconButton } from "./controls.js";
import { h, replace } from "./dom.js";
import { number, t, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { guessLang } from "./lang.js";
import { askClearChunks, askForget, askImportChunks, askRebuild } from "./memory-chunks-batch.js";
import { recallTab } from "./memory-recall.js";
import { openMenu } from "./menu.js";
import { readings } from "./refresh.js";
import { emptyState, errorState, explain } from "./states.js";
import { toast } from "./toast.js";
import { ago, between } from "./when.js";

const PAGE = 50;
const WATCH_MS = 3_000;

export const chunksTab = recallTab("chunks", (context) => new Chunks(context).load());

export class Chunks {
  #begin = readings();
  #shown = PAGE;

  constructor(context) {
    Object.assign(this, context);
  }

  async load() {
    const isNewest = this.#begin();
    try {
      const data = await this.api.get("chunks", { limit: Math.min(this.#shown, 200) });
      if (this.signal.aborted || !isNewest()) return;
      this.totals = data.totals;
      replace(this.place, this.#head(data), this.#list(data));
      clearTimeout(this.timer);
      if (this.#coming(data) > 0 && !data.reason) this.timer = setTimeout(() => this.signal.aborted || document.hidden || this.load(), WATCH_MS);
    } catch (error) {
      if (error.name === "AbortError" || this.signal.aborted || !isNewest()) return;
      replace(this.place, errorState(error, () => this.load()));
    }
  }

  /** Passages that wait for a vector. */
  #coming({ totals }) {
    return totals.chunks - totals.off - totals.vectorized;
  }

  #head(data) {
    const { totals, reason } = data;
    const more = iconButton("more", t("recall.chunksMenu"), () => openMenu(more, this.#menu()), { "aria-haspopup": "menu", "aria-expanded": "false" });
    const live = totals.chunks - totals.off;
    return h(
      "section",
      { class: "recall-part" },
      h(
        "div",
        { class: "with-button" },
        h("p", { class: "num" }, tn("recall.chunks", totals.chunks), " · ", tn("recall.tokensAbout", totals.tokens), totals.imported > 0 && [" · ", tn("recall.imported", totals.imported)]),
        more,
      ),
      live > 0 &&
        h(
          "div",
          { class: "recall-progress", role: "status" },
          h("span", { class: "hint num" }, t("recall.vectors", { n: number(totals.vectorized), most: number(live) })),
          shareBar(totals.vectorized / live),
        ),
      totals.waiting > 0 && h("p", { class: "hint" }, tn("recall.waitingMessages", totals.waiting)),
      totals.outdated > 0 && h("p", { class: "hint tone-warn" }, tn("recall.outdated", totals.outdated)),
      reason && h("p", { class: "hint tone-warn" }, reason === "off" ? t("recall.noEmbedder") : t("recall.embedderFailed", { reason })),
    );
  }

  #menu() {
    const imported = this.chat.shared && this.totals.imported > 0;
    return [
      { label: t("recall.rebuild"), icon: "again", action: () => askRebuild(this) },
      { label: t("recall.export"), icon: "down", action: () => this.#export() },
      { label: t("recall.import"), icon: "attach", action: () => askImportChunks(this) },
      imported && { label: t("recall.share"), icon: "people", action: () => this.#share() },
      null,
      { label: t("recall.clear"), icon: "trash", danger: true, action: () => askClearChunks(this) },
    ].filter((each) => each !== false);
  }

  #export() {
    const link = h("a", { href: this.api.exportPath(), download: "" });
    document.body.append(link);
    link.click();
    link.remove();
  }

  async #share() {
    try {
      const { shared } = await this.api.send("POST", "chunks/share", {});
      toast(tn("recall.shared", shared));
      await this.load();
    } catch (error) {
      toast(explain(error), { tone: "warn" });
    }
  }

  #list({ items, more, reason, totals }) {
    if (!items.length) return emptyState("wave", t("recall.noChunks"), t("recall.noChunksText"));
    return [
      h(
        "ul",
        { class: "memories", "aria-label": t("memory.tab.chunks") },
        items.map((each) => this.#row(each, reason)),
      ),
      more &&
        items.length < 200 &&
        h(
          "button",
          {
            type: "button",
            class: "button",
            onclick: () => {
              this.#shown += PAGE;
              this.load();
            },
          },
          t("recall.moreChunks", { n: number(totals.chunks - items.length) }),
        ),
    ];
  }

  #row(item, reason) {
    return h(
      "li",
      { class: item.state === "off" ? "memory chunk is-dormant" : "memory chunk", dataset: { id: item.id } },
      h(
        "div",
        { class: "memory-main" },
        h("h4", { class: "summary-name num" }, span(item)),
        chunkText(item.text),
        h(
          "p",
          { class: "memory-marks" },
          status(item, reason),
          item.origin === "imported" && badge("down", t("recall.importedOne"), item.mine_alone && this.chat.shared ? t("recall.mineAlone") : ""),
          h("span", { class: "memory-facts" }, tn("recall.messages", item.messages), " · ", tn("recall.tokens", item.tokens), " · ", t("recall.made"), " ", ago(item.created_at)),
        ),
      ),
      iconButton("trash", t("recall.forgetOne", { when: span(item) }), () => askForget(this, item, span(item))),
    );
  }
}

function span({ said_from: from, said_to: to }) {
  return between(from, to);
}

/** Long text is folded to a few lines. */
function chunkText(text) {
  const words = h("p", { class: "memory-text", lang: guessLang(text) }, text);
  if (text.length < 400) return words;
  return h("details", { class: "chunk-text" }, h("summary", {}, h("span", { lang: guessLang(text) }, `${text.slice(0, 200)} …`)), words);
}

/** Why there are no vectors is said once, above the list; here it is a hint. */
function status(item, reason) {
  if (item.state === "off") return badge("block", t("recall.status.off"), t("recall.statusHint.off"));
  if (item.state === "stale") return badge("again", t("recall.status.stale"));
  if (item.outdated && item.status !== "vectorized") return badge("again", t("recall.status.outdated"), "", "warn");
  const icons = { vectorized: "check", waiting: "clock", unavailable: "warn" };
  const why = item.status === "unavailable" ? (reason === "off" ? t("recall.noEmbedder") : reason) : "";
  return badge(icons[item.status], t(`recall.status.${item.status}`), why, item.status === "vectorized" ? "good" : item.status === "unavailable" ? "warn" : "calm");
}

function badge(iconName, text, hint = "", tone = "calm") {
  return h("span", { class: `memory-badge tone-${tone}`, title: hint || null }, icon(iconName), h("span", {}, text));
}
