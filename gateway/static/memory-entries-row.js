// One entry: a row of the list, or a card that waits for a yes. Both are edited in place.

import { ApiError } from "./api.js";
import { field, iconButton } from "./controls.js";
import { h, replace } from "./dom.js";
import { number, t, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { guessLang } from "./lang.js";
import { openMenu } from "./menu.js";
import { explain } from "./states.js";
import { toast } from "./toast.js";
import { between } from "./when.js";

/** What an entry is called: its title, or the messages that it stands for. */
export function entryName({ title, first, last }) {
  return title || t("entries.range", { first: number(first), last: number(last) });
}

export function entryRow(item, list) {
  const element = h("li", { class: item.enabled ? "memory entry" : "memory entry is-inactive", dataset: { id: item.id } });
  show();
  return element;

  function show() {
    const name = entryName(item);
    const tick = h("input", {
      type: "checkbox",
      class: "entry-tick",
      value: item.id,
      checked: list.isTicked(item),
      "aria-label": t("entries.tick", { name }),
      onclick: (event) => list.tick(item, tick.checked, event.shiftKey),
    });
    const toggle = h("input", {
      type: "checkbox",
      role: "switch",
      class: "switch",
      checked: item.enabled,
      "aria-label": t("entries.toggle", { name }),
      onchange: () => list.toggle(item, toggle.checked),
    });
    const more = iconButton("more", t("recall.summaryMenu", { name }), () => openMenu(more, menu()), { "aria-haspopup": "menu", "aria-expanded": "false" });
    const box = h(
      "details",
      { class: "entry-text", open: list.isOpen(item) },
      h("summary", {}, h("span", { class: "entry-name", lang: guessLang(name) }, name)),
      h("p", { class: "memory-text", lang: guessLang(item.text) }, item.text),
    );
    box.addEventListener("toggle", () => list.setOpen(item, box.open));
    replace(element, tick, h("div", { class: "memory-main" }, box, marks(item)), h("div", { class: "entry-deeds" }, toggle, more));
  }

  function menu() {
    return [
      { label: t("recall.edit"), icon: "edit", action: edit },
      null,
      { label: t("action.delete"), icon: "trash", danger: true, action: () => list.remove(item, entryName(item)) },
    ];
  }

  function edit() {
    const stop = () => {
      show();
      element.querySelector(".icon-button")?.focus();
    };
    const form = editForm(item, list.pane, {
      stop,
      saved: (fresh) => {
        item = fresh;
        stop();
      },
    });
    replace(element, form);
    form.querySelector("textarea").focus();
  }
}

/** What the model wrote and what does not count yet (RS-85). */
export function reviewCard(item, pane) {
  const element = h("li", { class: "entry-card", dataset: { id: item.id } });
  show();
  return element;

  function show() {
    const decide = (accept) => pane.act(() => pane.api.send("POST", `${item.id}/decide`, { accept }), t(accept ? "recall.approved" : "entries.declined"));
    replace(
      element,
      h("h4", { class: "entry-name", lang: guessLang(entryName(item)) }, entryName(item)),
      h("p", { class: "memory-text", lang: guessLang(item.text) }, item.text),
      marks(item),
      h(
        "div",
        { class: "row-start" },
        h("button", { type: "button", class: "button small primary", onclick: () => decide(true) }, icon("check"), t("recall.approve")),
        h("button", { type: "button", class: "button small", onclick: () => decide(false) }, icon("close"), t("entries.decline")),
        h("button", { type: "button", class: "text-button", onclick: edit }, t("recall.edit")),
      ),
    );
  }

  function edit() {
    const saved = (fresh) => {
      item = fresh;
      show();
    };
    const form = editForm(item, pane, { stop: show, saved });
    replace(element, form);
    form.querySelector("textarea").focus();
  }
}

function editForm(item, pane, { stop, saved }) {
  const title = h("input", { class: "input", value: item.title, maxlength: 200, autocomplete: "off" });
  const area = h("textarea", { class: "input", rows: 6, value: item.text, maxlength: 40_000, required: true, lang: guessLang(item.text) });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const save = h("button", { type: "submit", class: "button small primary" }, t("action.save"));
  return h(
    "form",
    {
      class: "memory-edit",
      onsubmit: async (event) => {
        event.preventDefault();
        save.disabled = true;
        problem.hidden = true;
        try {
          const done = await pane.api.send("PATCH", String(item.id), { title: title.value.trim(), text: area.value.trim(), based_on: item.updated_at });
          toast(t("saved.saved"));
          saved(done.item);
          await pane.tell();
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
    field({ label: t("entries.title"), control: title, hint: t("entries.titleHint") }),
    field({ label: t("entries.text"), control: area }),
    problem,
    h("div", { class: "memory-edit-foot" }, h("span", { class: "hint" }, t("recall.editHint")), h("button", { type: "button", class: "button small", onclick: stop }, t("action.cancel")), save),
  );
}

function marks(item) {
  const { said_from: from, said_to: to } = item;
  return h(
    "p",
    { class: "memory-marks" },
    item.by_hand && badge("edit", t("recall.byHand"), "good"),
    item.origin === "automatic" && badge("clock", t("entries.automatic")),
    item.withheld && badge("block", t("recall.state.withheld"), "warn"),
    item.stale && badge("again", t("recall.state.stale")),
    item.replaced && badge("history", t("entries.replaced")),
    item.left_out && badge("flag", t("entries.leftOut")),
    item.hidden > 0 && badge("book", tn("entries.hides", item.hidden)),
    h(
      "span",
      { class: "memory-facts num", title: from && to ? between(from, to) : null },
      item.first > 0 && item.title && [t("entries.range", { first: number(item.first), last: number(item.last) }), " · "],
      tn("recall.messages", item.messages), " · ", tn("recall.tokensAbout", item.tokens),
    ),
  );
}

function badge(iconName, text, tone = "calm") {
  return h("span", { class: `memory-badge tone-${tone}` }, icon(iconName), h("span", {}, text));
}
