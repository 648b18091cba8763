// The drawer that tells what went into one reply: tokens by part, what memory gave and why, what was left out, who answered and how fast (WO-15).

import { request } from "./api.js";
import { colour, stackedBar } from "./bars.js";
import { iconButton } from "./controls.js";
import { h, replace } from "./dom.js";
import { duration, number, percent, t, term, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { guessLang } from "./lang.js";
import { emptyState, fillWhenLoaded } from "./states.js";

export class ReceiptDrawer {
  #turnId = "";
  #page = new AbortController();

  constructor({ chatId, onClose }) {
    this.chatId = chatId;
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
    if (!turnId) {
      replace(this.body, emptyState("receipt", t("receipt.emptyTitle"), t("receipt.emptyText")));
      return;
    }
    this.#page = new AbortController();
    const { signal } = this.#page;
    const path = `/api/chats/${encodeURIComponent(this.chatId)}/turns/${encodeURIComponent(turnId)}/receipt`;
    fillWhenLoaded(this.body, { load: () => request("GET", path, undefined, { signal }), show: receiptView, signal, lines: 8 });
  }

  destroy() {
    this.#page.abort();
  }
}

function receiptView(receipt) {
  return [
    summary(receipt),
    tokens(receipt),
    memory(receipt.memories ?? {}),
    trimmed(receipt.trimmed_messages),
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
  const parts = (receipt.sections ?? []).filter((part) => part.tokens > 0);
  const sum = parts.reduce((total, part) => total + part.tokens, 0);
  const input = receipt.input_tokens ?? sum;
  const rows = parts.map((part, at) =>
    h(
      "li",
      { class: "token-row" },
      h("span", { class: `swatch ${colour(at)}`, "aria-hidden": "true" }),
      h("span", { class: "token-name" }, term("section", part.name)),
      h("span", { class: "num" }, number(part.tokens)),
      h("span", { class: "num dim" }, percent(sum ? part.tokens / sum : 0)),
    ),
  );
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
    parts.length > 0 && [
      stackedBar(
        parts.map((part) => ({ label: term("section", part.name), value: part.tokens })),
        sum,
      ),
      h("ul", { class: "token-list" }, rows),
    ],
    receipt.estimated && h("p", { class: "hint" }, t("receipt.estimated")),
  );
}

function memory({ used = [], reason = "" }) {
  if (!used.length)
    return block(t("receipt.memory"), h("p", { class: "receipt-plain" }, reason ? term("reason", reason) : t("receipt.memoryNone")));
  return block(
    t("receipt.memory"),
    h("p", { class: "hint" }, tn("receipt.memoryUsed", used.length)),
    h("ul", { class: "memory-list" }, used.map(memoryRow)),
  );
}

/** One remembered thing; rows may be plain texts or objects with a text, a kind and a reason. */
function memoryRow(row) {
  const { text = "", title = "", kind = "", why = "", reason = "" } = typeof row === "string" ? { text: row } : row;
  const words = text || title || row.id || "";
  const about = [kind && term("memoryKind", kind), (why || reason) && term("why", why || reason)].filter(Boolean).join(" · ");
  return h("li", { class: "memory-row" }, h("p", { lang: guessLang(words) }, words), about && h("p", { class: "hint" }, about));
}

function trimmed(count) {
  return block(
    t("receipt.trimmed"),
    h("p", { class: "receipt-plain" }, count ? tn("receipt.trimmedSome", count) : t("receipt.trimmedNone")),
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
