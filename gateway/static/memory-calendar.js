// The tab "calendar": years, months and weeks first, then days that are not folded; days without a summary with their reasons; how days are counted.

import { ApiError } from "./api.js";
import { field } from "./controls.js";
import { confirmDialog } from "./dialog.js";
import { h, replace } from "./dom.js";
import { t, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { recallTab } from "./memory-recall.js";
import { summaryRow } from "./memory-summary-row.js";
import { readings } from "./refresh.js";
import { emptyState, errorState, explain } from "./states.js";
import { toast } from "./toast.js";
import { day } from "./when.js";

const KINDS = ["year", "month", "week", "day"];
const SHOWN = 4; // missing days that are not folded away
const WATCH_MS = 3_000;
const STILL_AFTER = 60; // looks without a change after which nobody watches any more

export const calendarTab = recallTab("calendar", (context) => new Calendar(context).load());

class Calendar {
  #begin = readings();
  #asked = []; // dates of the backfill that is being watched
  #still = 0;

  constructor(context) {
    Object.assign(this, context);
  }

  async load() {
    const isNewest = this.#begin();
    try {
      const data = await this.api.get("calendar");
      if (this.signal.aborted || !isNewest()) return;
      const open = this.#open(data);
      if (open < (this.left ?? Number.POSITIVE_INFINITY)) this.#still = 0;
      this.left = open;
      if (this.place.querySelector(".memory-edit, .days-settings:focus-within")) return; // somebody types here
      replace(this.place, zoneWarning(data), this.#missing(data), this.#rows(data), this.#settings(data));
    } catch (error) {
      if (error.name === "AbortError" || this.signal.aborted || !isNewest()) return;
      replace(this.place, errorState(error, () => this.load()));
    }
  }

  /** How many of the days that were asked for are still without a row. */
  #open({ missing }) {
    return missing.filter(({ date, running, reason }) => this.#asked.includes(date) && (running || reason === "waiting")).length;
  }

  #missing(data) {
    if (!data.missing.length) return null;
    const past = data.missing.filter(({ reason }) => reason !== "not_over_yet");
    const button = h("button", { type: "button", class: "button small", onclick: () => this.#backfill(button) }, icon("again"), t("recall.backfill"));
    const done = this.#asked.length - this.left;
    return h(
      "section",
      { class: "recall-part" },
      h("div", { class: "with-button" }, h("h3", {}, t("recall.missing")), past.length > 0 && data.allowed && button),
      this.#asked.length > 0 &&
        h(
          "div",
          { class: "recall-progress", role: "status" },
          h("progress", { "aria-label": t("recall.progress"), value: done, max: this.#asked.length }),
          h("span", { class: "hint num" }, t("recall.daysDone", { n: done, most: this.#asked.length })),
        ),
      h("ul", { class: "rows" }, data.missing.slice(0, SHOWN).map(missingRow)),
      data.missing.length > SHOWN &&
        h("details", { class: "recall-fold" }, h("summary", {}, tn("saved.andMore", data.missing.length - SHOWN)), h("ul", { class: "rows" }, data.missing.slice(SHOWN).map(missingRow))),
    );
  }

  async #backfill(button) {
    button.disabled = true;
    try {
      const { days } = await this.api.send("POST", "calendar/backfill", {});
      this.#asked = days.filter(({ reason }) => reason === "waiting").map(({ date }) => date);
      toast(this.#asked.length ? tn("recall.backfillBegun", this.#asked.length) : t("recall.backfillNone"));
      this.left = this.#asked.length;
      this.#still = 0;
      await this.load();
      this.#watch();
    } catch (error) {
      button.disabled = false;
      toast(explain(error), { tone: "warn" });
    }
  }

  #watch() {
    if (!this.left) {
      this.#asked = [];
      return;
    }
    setTimeout(async () => {
      if (this.signal.aborted || ++this.#still > STILL_AFTER) return;
      await this.load();
      this.#watch();
    }, WATCH_MS);
  }

  #rows({ items, made }) {
    if (!items.length) return emptyState("calendar", t("recall.noDays"), t(made ? "recall.noDaysText" : "recall.noDaysProfile"));
    return KINDS.filter((wanted) => items.some(({ kind }) => kind === wanted)).map((wanted) =>
      h(
        "section",
        { class: "recall-part" },
        h("h3", {}, t(`recall.level.${wanted}`)),
        h(
          "ul",
          { class: "memories", "aria-label": t(`recall.level.${wanted}`) },
          items
            .filter(({ kind }) => kind === wanted)
            .reverse()
            .map((each) => summaryRow(each, this)),
        ),
      ),
    );
  }

  #settings({ settings, zone }) {
    const hour = h("input", { class: "input", type: "number", min: 0, max: 11, step: 1, value: settings.rollover_hour });
    const tail = h("input", { class: "input", type: "number", min: 0, max: 5000, step: 1, value: settings.tail });
    const save = h("button", { type: "submit", class: "button small" }, t("action.save"));
    return h(
      "details",
      { class: "recall-part recall-fold" },
      h("summary", {}, icon("gear"), t("recall.daySettings")),
      h(
        "form",
        {
          class: "days-settings",
          onsubmit: async (event) => {
            event.preventDefault();
            save.disabled = true;
            await this.#set({ rollover_hour: Number(hour.value), tail: Number(tail.value) });
            save.disabled = false;
          },
        },
        field({ label: t("recall.rollover"), control: hour, hint: t("recall.rolloverHint", { zone }) }),
        field({ label: t("recall.tail"), control: tail, hint: t("recall.tailHint") }),
        save,
      ),
    );
  }

  async #set(values) {
    try {
      this.#saved(await this.api.send("PATCH", "calendar", values));
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "tail_long") {
        toast(explain(error), { tone: "warn" });
        return;
      }
      const done = await confirmDialog({
        title: t("recall.tailTitle"),
        body: error.message,
        action: t("action.save"),
        submit: () => this.api.send("PATCH", "calendar", { ...values, sure: true }),
      });
      if (done) this.#saved(done);
    }
  }

  #saved({ warnings }) {
    if (warnings.includes("old_hour")) toast(t("recall.oldHour"), { tone: "warn" });
    else toast(t("saved.saved"));
  }
}

function zoneWarning({ wrong_zone: wrong, zone }) {
  return wrong ? h("p", { class: "outcome tone-warn", role: "note" }, t("recall.wrongZone", { wrong, zone })) : null;
}

function missingRow({ date, reason, error, running }) {
  return h(
    "li",
    { class: "row" },
    h("div", { class: "row-main" }, day(date, { dateStyle: "full" })),
    h("span", { class: reason === "failed" ? "hint tone-warn" : "hint" }, running ? t("recall.reason.running") : t(`recall.reason.${reason}`), error && ` (${error})`),
  );
}
