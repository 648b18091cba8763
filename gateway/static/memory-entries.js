// The tab "entries": short recaps that stand for older messages, made by the model or written by hand, each switched on or off (RS-81 to RS-95).

import { h, replace } from "./dom.js";
import { t, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { iconButton } from "./controls.js";
import { EntriesApi } from "./memory-entries-api.js";
import { askGenerate, askWrite } from "./memory-entries-ask.js";
import { EntryList } from "./memory-entries-list.js";
import { reviewCard } from "./memory-entries-row.js";
import { EntrySettings } from "./memory-entries-settings.js";
import { EntryTemplates } from "./memory-entries-templates.js";
import { recallTab } from "./memory-recall.js";
import { readings } from "./refresh.js";
import { errorState, explain } from "./states.js";
import { toast } from "./toast.js";

const WATCH_MS = 3_000;
const WINDOW = "popup,width=560,height=820";

export const entriesTab = recallTab("entries", (context) => new Entries(context).load());

class Entries {
  #timer = 0;
  #begin = readings();
  #latest = null;

  constructor({ place, chat, signal, alone }) {
    Object.assign(this, { place, chat, signal, alone });
    this.api = new EntriesApi(chat.id, signal);
    this.make = h("button", { type: "button", class: "button primary", onclick: () => askGenerate(this) }, icon("spark"), t("entries.generate"));
    this.write = h("button", { type: "button", class: "button", onclick: () => askWrite(this) }, icon("edit"), t("entries.write"));
    this.why = h("p", { class: "hint tone-warn entries-why" });
    this.progress = h("div", { class: "entries-progress" });
    this.review = h("section", { class: "recall-part", hidden: true });
    this.list = new EntryList(this);
    this.settings = new EntrySettings(this);
    this.templates = new EntryTemplates(this);
    this.#hearOthers();
  }

  /** The panel may stand in two windows at once: what one of them changes, the other shows. What came while the page was out of sight, too. */
  #hearOthers() {
    this.others = new BroadcastChannel(`yumegate.entries.${this.chat.id}`);
    this.others.addEventListener("message", () => this.load());
    this.signal.addEventListener("abort", () => this.others.close());
    document.addEventListener("visibilitychange", () => document.hidden || this.load(), { signal: this.signal });
  }

  /** Reads all of it and shows it; done once the newest reading is, for another may begin meanwhile. */
  load() {
    this.#latest = this.#read(this.#begin());
    return this.#latest;
  }

  async #read(isNewest) {
    try {
      const data = await this.api.get();
      if (this.signal.aborted) return;
      if (!isNewest()) return await this.#latest;
      this.#show(data);
      this.#watch(data);
    } catch (error) {
      if (error.name === "AbortError" || this.signal.aborted || !isNewest()) return;
      this.shown = false;
      replace(this.place, errorState(error, () => this.load()));
    }
  }

  #show(data) {
    this.data = data;
    this.list.show(data.items.filter(({ waiting }) => !waiting));
    this.settings.show(data);
    this.templates.show(data.settings);
    if (!this.review.querySelector(".memory-edit")) this.#showReview(data.items.filter(({ waiting }) => waiting));
    this.make.disabled = !data.allowed || !data.has_model;
    this.write.disabled = !data.allowed;
    replace(this.why, !data.allowed ? t("recall.noRecord") : !data.has_model && t("recall.noModel"));
    this.why.hidden = !this.why.textContent;
    replace(
      this.progress,
      data.making > 0 && h("p", { class: "hint", role: "status" }, tn("entries.making", data.making)),
      !data.making && data.failed && h("p", { class: "hint tone-warn", role: "status" }, t("entries.failed")),
      data.stuck.map(stuckView),
      progressView(data.progress, () => this.#stop()),
    );
    if (this.shown) return;
    this.shown = true;
    replace(this.place, this.#tools(), this.progress, this.review, this.list.element, this.settings.element, this.templates.element);
  }

  #tools() {
    return h(
      "div",
      { class: "entries-tools" },
      this.make,
      this.write,
      !this.alone && iconButton("detach", t("entries.detach"), () => this.#detach(), { class: "icon-button entries-detach" }),
      this.why,
    );
  }

  #detach() {
    const opened = open(`#/memory/entries/${encodeURIComponent(this.chat.id)}?alone=1`, `entries-${this.chat.id}`, WINDOW);
    if (!opened) toast(t("entries.detachBlocked"), { tone: "warn" });
  }

  #showReview(waiting) {
    this.review.hidden = !waiting.length;
    replace(
      this.review,
      h("h3", {}, tn("entries.waiting", waiting.length)),
      h("p", { class: "hint" }, t("entries.waitingText")),
      h("ul", { class: "entry-cards" }, waiting.map((each) => reviewCard(each, this))),
    );
  }

  /** What is shown is out of date here and in other windows. */
  tell() {
    this.others.postMessage("changed");
    return this.load();
  }

  /** Does it, says so, and shows what came of it; whether it could be done. */
  async act(deed, told) {
    try {
      await deed();
      if (told) toast(told);
      await this.tell();
      return true;
    } catch (error) {
      toast(explain(error), { tone: "warn" });
      await this.load();
      return false;
    }
  }

  /** Looks again while something is being made. */
  #watch({ progress, making }) {
    clearTimeout(this.#timer);
    if (!making && progress?.state !== "running") return;
    this.#timer = setTimeout(() => this.signal.aborted || document.hidden || this.load(), WATCH_MS);
  }

  backfill() {
    return this.act(() => this.api.send("POST", "backfill", {}), t("entries.backfillBegun"));
  }

  #stop() {
    return this.act(() => this.api.send("POST", "stop", {}), t("entries.stopping"));
  }
}

/** An entry, or a merge, that nobody asked for and that could not be made. */
function stuckView({ what, state, reason }) {
  return h("p", { class: "hint tone-warn", role: "status" }, t(`entries.${what}.${state}`), " (", reason, ")");
}

/** How far a backfill is, with a way to stop it; afterwards how it ended. */
function progressView(progress, stop) {
  if (!progress) return null;
  const { done, total, state, reason } = progress;
  const text = tn("entries.progress", total, { done });
  if (state !== "running" && state !== "failed" && state !== "stopped") return null;
  return h(
    "div",
    { class: state === "failed" ? "entries-run is-failed" : "entries-run" },
    h(
      "p",
      { class: "with-button", role: "status" },
      h("span", { class: "num" }, t(`entries.state.${state}`), total > 0 && [" · ", text], reason && ` (${reason})`),
      state === "running" && h("button", { type: "button", class: "button small", onclick: stop }, icon("stop"), t("entries.stop")),
    ),
    total > 0 && h("progress", { "aria-label": t("recall.progress"), value: Math.min(done, total), max: total }),
  );
}
