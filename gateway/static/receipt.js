// The drawer that tells what went into one reply: tokens by part, what memory gave and why, what was left out, who answered and how fast (WO-15).

import { request } from "./api.js";
import { iconButton, segmented } from "./controls.js";
import { h, replace } from "./dom.js";
import { duration, number, percent, t, term, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { nextView, sentView } from "./prompt-view.js";
import { session } from "./session.js";
import { emptyState, fillWhenLoaded } from "./states.js";
import { tokenParts } from "./token-parts.js";
import { day } from "./when.js";

const DATE = { day: "numeric", month: "short", year: "numeric" };
const PROMPTS = { sent: sentView, next: nextView };

export class ReceiptDrawer {
  #turnId = "";
  #view = "receipt";
  #page = new AbortController();

  constructor({ chatId, onClose }) {
    this.chatId = chatId;
    this.tabs = session.me?.inspects
      ? segmented({
          legend: t("prompt.views"),
          options: ["receipt", "sent", "next"].map((view) => [view, t(`prompt.view.${view}`)]),
          value: this.#view,
          onchange: (view) => {
            this.#view = view;
            this.show(this.#turnId);
          },
        })
      : null;
    this.body = h("div", { class: "drawer-body", tabindex: 0, role: "group", "aria-label": t("receipt.title") });
    this.element = h(
      "aside",
      { class: "drawer", "aria-label": t("receipt.title") },
      h(
        "header",
        { class: "drawer-head" },
        h("h2", {}, icon("receipt"), t("receipt.title")),
        iconButton("close", t("action.close"), onClose, { dataset: { firstFocus: "1" } }),
      ),
      this.tabs,
      this.body,
    );
    this.show("");
  }

  get turnId() {
    return this.#turnId;
  }

  /** Shows the receipt of a turn; asks anew each time, because a new attempt has a new one. */
  show(turnId) {
    this.#turnId = turnId;
    this.#page.abort();
    if (this.#view !== "receipt") {
      this.#page = new AbortController();
      PROMPTS[this.#view](this.body, { chatId: this.chatId, turnId, signal: this.#page.signal });
      return;
    }
    if (!turnId) {
      replace(this.body, emptyState("receipt", t("receipt.emptyTitle"), t("receipt.emptyText")));
      return;
    }
    this.#page = new AbortController();
    const { signal } = this.#page;
    const path = `/api/chats/${encodeURIComponent(this.chatId)}/turns/${encodeURIComponent(turnId)}/receipt`;
    fillWhenLoaded(this.body, { load: () => request("GET", path, undefined, { signal }), show: receiptView, signal, lines: 8 });
  }

  /** What went to a model in a challenge is hidden from who plays it. */
  hidePrompts() {
    if (this.tabs) this.tabs.hidden = true;
  }

  destroy() {
    this.#page.abort();
  }
}

function receiptView(receipt) {
  return [
    summary(receipt),
    tokens(receipt),
    memory(receipt.memories ?? {}, receipt.recall ?? {}, receipt.places ?? {}),
    stood(receipt.window ?? {}, receipt.places ?? {}),
    trimmed(receipt.trimmed_messages, receipt.window ?? {}),
    tools(receipt.tools ?? []),
  ].filter(Boolean);
}

function block(title, ...content) {
  return h("section", { class: "receipt-block" }, h("h3", {}, title), content);
}

function fact(label, value) {
  return h("div", { class: "fact" }, h("dt", {}, label), h("dd", {}, value));
}

function summary(receipt) {
  const model = h("bdi", { lang: "en" }, receipt.model || "–");
  return h(
    "section",
    { class: "receipt-block receipt-summary" },
    h("p", { class: "receipt-model" }, model, receipt.provider && h("span", { class: "dim", lang: "en" }, receipt.provider)),
    h(
      "dl",
      { class: "facts" },
      fact(t("receipt.firstToken"), duration(receipt.first_token_ms)),
      fact(t("receipt.total"), duration(receipt.total_ms)),
      receipt.attempt > 1 && fact(t("receipt.attempt"), number(receipt.attempt)),
      receipt.outcome && receipt.outcome !== "answered" && fact(t("receipt.outcome"), term("outcome", receipt.outcome)),
    ),
  );
}

function tokens(receipt) {
  const parts = tokenParts(receipt.sections ?? []);
  const input = receipt.input_tokens ?? parts.sum;
  const cached = receipt.cached_tokens;
  return block(
    t("receipt.tokens"),
    h(
      "dl",
      { class: "facts" },
      fact(t("receipt.input"), number(input)),
      fact(t("receipt.output"), number(receipt.output_tokens ?? 0)),
      cached > 0 && fact(t("receipt.cached"), `${number(cached)} · ${percent(cached / Math.max(input, cached))}`),
    ),
    parts.elements,
    (receipt.estimated || parts.sum > 0) && h("p", { class: "hint" }, t(receipt.estimated ? "receipt.estimated" : "receipt.partsEstimated")),
  );
}

/** What was remembered, of files and of earlier talk; where nothing was, which rule says so, else what the search came to. */
function memory({ used = [], reason = "" }, { used: passages = [], reason: none = "" }, { recalled: slot }) {
  const place = slot && h("p", { class: "hint" }, t("receipt.placeRecalled", { slot: `{{${slot}}}` }));
  const why = reason || none;
  if (!used.length && !passages.length) return block(t("receipt.memory"), h("p", { class: "receipt-plain" }, why ? term("reason", why) : t("receipt.memoryNone")), place);
  return block(
    t("receipt.memory"),
    used.length > 0 && [h("p", { class: "hint" }, tn("receipt.memoryUsed", used.length)), h("ul", { class: "memory-list" }, used.map(memoryRow))],
    passages.length > 0 && h("p", { class: "hint" }, tn("receipt.recalled", passages.length)),
    place,
  );
}

/** One piece of a memory file: its lines, the day it is about, how it came into the prompt, whose words it rests on. */
function memoryRow({ path, how, first = 0, last = 0, date = "", origin = "" }) {
  const lines = last > first ? `:${first}–${last}` : first ? `:${first}` : "";
  const about = [date, term("memoryHow", how), origin && term("origin", origin)].filter(Boolean).join(" · ");
  return h("li", { class: "memory-row" }, h("p", {}, h("bdi", {}, path + lines)), h("p", { class: "hint" }, about));
}

/** What stood in the prompt for talk that was not sent, the oldest first: which rows, not their words (RS-77). */
function stood({ summaries = [], summaries_more: more = 0, summaries_hidden: hidden = 0 }, { summaries: slot }) {
  if (!summaries.length && !hidden) return null;
  return block(
    t("receipt.stood"),
    h("p", { class: "hint" }, tn("receipt.stoodCount", summaries.length + more + hidden)),
    more > 0 && h("p", { class: "hint" }, tn("receipt.stoodMore", more)),
    h("ul", { class: "stood-list" }, summaries.map(stoodRow)),
    hidden > 0 && h("p", { class: "hint" }, tn("receipt.stoodHidden", hidden)),
    slot && h("p", { class: "hint" }, t("receipt.placeSummaries", { slot: `{{${slot}}}` })),
  );
}

function stoodRow({ kind, from, to, messages, cut }) {
  const span = [...new Set(messages ? messages.map((place) => number(place)) : [from, to].map((date) => day(date, DATE)))].join(" – ");
  const about = messages ? t("receipt.stoodMessages", { numbers: span }) : span;
  return h(
    "li",
    { class: "stood-row" },
    h("span", {}, term("recall.kind", kind)),
    h("span", { class: "num dim" }, about),
    cut && h("span", { class: "stood-cut" }, t("receipt.stoodCut")),
  );
}

function trimmed(count, window) {
  const { jump = null, newest_alone: alone = false, summaries_cut: cut = false, summaries = [], summaries_left_out: leftOut } = window;
  const said = [
    count > 0 && tn("receipt.trimmedSome", count),
    jump && tn("receipt.jumped", jump.messages),
    alone && t("receipt.newestAlone"),
    cut && leftOut === undefined && t("receipt.summariesCut"), // of before they were counted
    leftOut > 0 && tn("receipt.summariesLeftOut", leftOut),
    (summaries.some((each) => each.cut) || (cut && leftOut === 0)) && t("receipt.summariesExcerpt"),
  ].filter(Boolean);
  return block(
    t("receipt.trimmed"),
    (said.length ? said : [t("receipt.trimmedNone")]).map((line) => h("p", { class: "receipt-plain" }, line)),
  );
}

function tools(list) {
  if (!list.length) return null;
  const rows = list.map((tool) =>
    h(
      "li",
      { class: "tool", dataset: { state: tool.ok ? "done" : "failed" } },
      icon(tool.ok ? "check" : "warn"),
      h("span", {}, term("tool", tool.name)),
      h("span", { class: "dim" }, tool.ok ? "" : t("toolState.failed")),
      h("span", { class: "num dim" }, duration(tool.ms)),
    ),
  );
  return block(t("receipt.tools"), h("ul", { class: "tools" }, rows));
}
