// One summary: its words and key details, how it stands, and what can be done with it. It is edited in place.

import { ApiError } from "./api.js";
import { iconButton, select } from "./controls.js";
import { confirmDialog } from "./dialog.js";
import { h, replace } from "./dom.js";
import { t, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { guessLang } from "./lang.js";
import { openMenu } from "./menu.js";
import { emptyState, explain, fillWhenLoaded } from "./states.js";
import { toast } from "./toast.js";
import { absolute, day } from "./when.js";

const DETAILS = ["promise", "plan", "question", "fact", "event"];

/** An element for a summary. `pane` has `api`, `signal` and `load()`; `part` of another summary is read only. */
export function summaryRow(item, pane, { part = false } = {}) {
  const element = h("li", { class: `memory summary is-${item.state}`, dataset: { id: item.id } });
  show();
  return element;

  function show() {
    const more = iconButton("more", t("recall.summaryMenu", { name: summaryName(item) }), () => openMenu(more, menu()), {
      "aria-haspopup": "menu",
      "aria-expanded": "false",
    });
    replace(
      element,
      h(
        "div",
        { class: "memory-main" },
        h("h4", { class: "summary-name" }, summaryName(item)),
        h("p", { class: "memory-text", lang: guessLang(item.text) }, item.text),
        item.details.length > 0 && details(item.details),
        marks(item),
        !part && item.inputs > 0 && inputs(item, pane),
      ),
      !part && more,
    );
  }

  function menu() {
    return [
      { label: t("recall.edit"), icon: "edit", action: edit },
      item.state === "waiting" && { label: t("recall.approve"), icon: "check", action: () => act("approve", t("recall.approved")) },
      { label: t("recall.remake"), icon: "again", action: remake },
      item.inputs > 0 && { label: t("recall.unfold"), icon: "undo", action: () => act("unfold", t("recall.unfolded")) },
      null,
      { label: t("recall.forgetSummary"), icon: "trash", danger: true, action: forget },
    ].filter((each) => each !== false);
  }

  async function act(what, told) {
    try {
      await pane.api.send("POST", `summaries/${item.id}/${what}`, {});
      toast(told);
      await pane.load();
    } catch (error) {
      toast(explain(error), { tone: "warn" });
    }
  }

  async function remake() {
    const consent = item.by_hand;
    const done = await confirmDialog({
      title: t("recall.remakeTitle"),
      body: t(consent ? "recall.remakeByHand" : "recall.remakeText"),
      action: t("recall.remake"),
      danger: consent,
      submit: () => pane.api.send("POST", `summaries/${item.id}/rebuild`, { consent }),
    });
    if (!done) return;
    toast(t("recall.begun"));
    await pane.load();
  }

  async function forget() {
    const { code } = await pane.api.send("POST", `summaries/${item.id}/confirm`, {});
    let gone = false;
    await confirmDialog({
      title: t("recall.forgetSummaryTitle"),
      body: t("recall.forgetSummaryText", { name: summaryName(item) }),
      action: t("recall.forget"),
      danger: true,
      submit: async () => {
        await pane.api.send("DELETE", `summaries/${item.id}?code=${code}`);
        gone = true;
      },
    });
    if (!gone) return;
    toast(t("recall.forgotten"));
    await pane.load();
  }

  function edit() {
    const problem = h("p", { class: "problem", role: "alert", hidden: true });
    const area = h("textarea", { class: "input", rows: 5, value: item.text, lang: guessLang(item.text), "aria-label": t("recall.summaryText"), required: true });
    const list = h("ul", { class: "detail-edit" }, item.details.map(detailRow));
    const add = h("button", { type: "button", class: "button small", onclick: () => addDetail(list) }, icon("plus"), t("recall.addDetail"));
    const save = h("button", { type: "submit", class: "button small primary" }, t("action.save"));
    const form = h(
      "form",
      {
        class: "memory-edit",
        onsubmit: async (event) => {
          event.preventDefault();
          save.disabled = true;
          problem.hidden = true;
          try {
            const body = { text: area.value, details: [...list.children].map(readDetail).filter(({ text }) => text), based_on: item.updated_at };
            ({ item } = await pane.api.send("PATCH", `summaries/${item.id}`, body));
            toast(t("saved.saved"));
            show();
            element.querySelector(".icon-button")?.focus();
          } catch (error) {
            save.disabled = false;
            problem.textContent = explain(error);
            problem.hidden = false;
            if (error instanceof ApiError && error.code === "changed") pane.load();
          }
        },
        onkeydown: (event) => {
          if (event.key === "Escape") stop();
        },
      },
      area,
      h("p", { class: "label" }, t("recall.details")),
      list,
      h("div", {}, add),
      problem,
      h("div", { class: "memory-edit-foot" }, h("span", { class: "hint" }, t("recall.editHint")), h("button", { type: "button", class: "button small", onclick: stop }, t("action.cancel")), save),
    );
    replace(element, form);
    area.focus();
  }

  function stop() {
    show();
    element.querySelector(".icon-button")?.focus();
  }
}

/** How a summary is called: its kind and its time. */
export function summaryName({ kind, date, part, said_from: from, said_to: to }) {
  const when = date ? dateName(kind, date) : from ? span(from, to) : "";
  return `${t(`recall.kind.${kind}`)}${when ? ` · ${when}` : ""}${part ? ` (${part})` : ""}`;
}

function dateName(kind, date) {
  if (kind === "year") return day(date, { year: "numeric" });
  if (kind === "month") return day(date, { month: "long", year: "numeric" });
  return day(date, { dateStyle: "medium" });
}

function span(from, to) {
  const first = absolute(from).split(/\s+\S*\d:\d/)[0];
  const last = absolute(to).split(/\s+\S*\d:\d/)[0];
  return first === last ? absolute(from) : `${absolute(from)} – ${absolute(to)}`;
}

function details(list) {
  return h(
    "ul",
    { class: "details-list" },
    list.map(({ text, kind, state, due }) =>
      h(
        "li",
        { class: state === "resolved" ? "is-resolved" : null },
        h("span", { class: "detail-kind" }, t(`recall.detail.${kind}`)),
        " ",
        h("span", { lang: guessLang(text) }, text),
        due && [" ", h("span", { class: "hint num" }, day(due, { dateStyle: "medium" }))],
        state === "resolved" && [" ", h("span", { class: "hint" }, t("recall.resolved"))],
      ),
    ),
  );
}

function marks(item) {
  return h(
    "p",
    { class: "memory-marks" },
    item.state === "waiting" && badge("clock", t("recall.state.waiting"), "warn"),
    item.state === "withheld" && badge("block", t("recall.state.withheld"), "warn"),
    item.stale && badge("again", t("recall.state.stale")),
    item.by_hand && badge("edit", t("recall.byHand"), "good"),
    item.failed_days.length > 0 && badge("warn", t("recall.without", { days: item.failed_days.map((each) => day(each)).join(", ") })),
    h("span", { class: "memory-facts" }, tn("recall.messages", item.messages), " · ", tn("recall.tokens", item.tokens)),
  );
}

function badge(iconName, text, tone = "calm") {
  return h("span", { class: `memory-badge tone-${tone}` }, icon(iconName), h("span", {}, text));
}

/** What it was made from, asked for when it is opened. */
function inputs(item, pane) {
  const body = h("ul", { class: "memories summary-inputs" });
  const box = h("details", { class: "summary-parts" }, h("summary", {}, tn("recall.inputs", item.inputs)), body);
  box.addEventListener("toggle", () => {
    if (!box.open || body.children.length) return;
    fillWhenLoaded(body, {
      signal: pane.signal,
      lines: 3,
      load: () => pane.api.get(`summaries/${item.id}/inputs`),
      show: ({ items }) => (items.length ? items.map((each) => summaryRow(each, pane, { part: true })) : emptyState("book", t("recall.inputsGone"), "")),
    });
  });
  return box;
}

// --- details in the editor ---

function detailRow({ text = "", kind = "fact", state = "open", due = "" } = {}) {
  const row = h(
    "li",
    {},
    h("input", { class: "input detail-text", value: text, maxlength: 1000, "aria-label": t("recall.detailText") }),
    select(
      DETAILS.map((each) => [each, t(`recall.detail.${each}`)]),
      kind,
      { "aria-label": t("recall.detailKind") },
    ),
    h("input", { class: "input detail-due", type: "date", value: due, "aria-label": t("recall.detailDue") }),
    h("label", { class: "check-line" }, h("input", { type: "checkbox", checked: state === "resolved" }), h("span", {}, t("recall.resolved"))),
    iconButton("close", t("recall.removeDetail"), () => row.remove()),
  );
  return row;
}

function addDetail(list) {
  const row = detailRow();
  list.append(row);
  row.querySelector("input").focus();
}

function readDetail(row) {
  const [text, due, done] = row.querySelectorAll("input");
  return { text: text.value.trim(), kind: row.querySelector("select").value, state: done.checked ? "resolved" : "open", due: due.value };
}
