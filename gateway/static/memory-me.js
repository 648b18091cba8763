// What do you know about me: everything that is held about the person, counted, with the ways to it and files to keep (WO-22).

import { request } from "./api.js";
import { confirmDialog } from "./dialog.js";
import { h } from "./dom.js";
import { number, t, term } from "./i18n.js";
import { icon } from "./icons.js";
import { forgetDrafts } from "./memory-drafts.js";
import { section } from "./page.js";
import { explain, fillWhenLoaded } from "./states.js";
import { forgetAll } from "./store.js";
import { toast } from "./toast.js";
import { absolute } from "./when.js";

const PATH = "/api/me/held";

export function meTab(place, { signal }) {
  const body = h("div", { class: "cards" });
  place.append(body);
  fillWhenLoaded(body, { signal, lines: 8, load: () => request("GET", PATH, undefined, { signal }), show: heldView });
}

function heldView(held) {
  const pins = held.memories.filter(({ pinned }) => pinned).length;
  return [
    section(
      t("me.files"),
      t("me.filesText"),
      h(
        "div",
        { class: "row-start" },
        download("json", t("me.json")),
        download("markdown", t("me.markdown")),
      ),
    ),
    section(
      t("me.kept"),
      "",
      h(
        "ul",
        { class: "rows" },
        fact("book", t("me.memories"), t("me.memoriesText", { n: number(held.memories.length), pins: number(pins) }), "#/memory/saved"),
        fact("file", t("me.notes"), number(held.files.length), "#/memory/files"),
        fact("channel", t("me.chats"), t("me.chatsText", { n: number(held.chats.length), messages: number(sum(held.chats)) }), "#/chat"),
        fact("clock", t("me.tasks"), number(held.tasks.length)),
        fact("chart", t("me.usage"), t("me.usageText", { requests: number(held.usage.requests), tokens: number(held.usage.input_tokens + held.usage.output_tokens) })),
      ),
    ),
    section(
      t("me.you"),
      "",
      h(
        "ul",
        { class: "rows" },
        fact("person", held.person.name, [term("role", held.person.role), held.person.timezone, absolute(held.person.created_at)].filter(Boolean).join(" · "), "#/settings"),
        held.accounts.map((each) => fact("link", each.name || each.platform_user_id, term("channel", each.channel), "#/settings")),
        fact("gear", t("saved.switches"), t(`saved.privacy.${held.switches.privacy}`), "#/memory/saved/switches"),
        fact("screen", t("me.sessions"), number(held.sessions.length)),
        fact("key", t("me.tokens"), number(held.tokens.length), "#/settings"),
      ),
    ),
    section(
      t("me.forget"),
      t("me.forgetText"),
      h("div", { class: "row-end" }, h("button", { type: "button", class: "button danger", onclick: () => forget(held) }, icon("trash"), t("me.forget"))),
    ),
  ];
}

/** Two separate questions; then nobody is signed in here any more. */
async function forget(held) {
  try {
    const first = await request("POST", "/api/me/forget", {});
    const counts = { memories: number(held.memories.length), files: number(held.files.length), chats: number(held.chats.length) };
    const next = await confirmDialog({
      title: t("me.forgetTitle"),
      body: t("me.forgetFirst", counts),
      action: t("me.forgetNext"),
      danger: true,
      submit: () => request("POST", "/api/me/forget/1", { token: first.token }),
    });
    if (!next) return;
    const done = await confirmDialog({
      title: t("me.forgetAgain", { name: held.person.name }),
      body: t("me.forgetSecond"),
      action: t("me.forget"),
      danger: true,
      submit: () => request("POST", "/api/me/forget/2", { token: next.next.token }),
    });
    if (!done) return;
    forgetAll(); // unsent words in this browser too
    forgetDrafts();
    location.hash = "#/signin";
    location.reload();
  } catch (error) {
    toast(explain(error), { tone: "warn" });
  }
}

const sum = (chats) => chats.reduce((total, { messages }) => total + messages, 0);

function download(form, label) {
  return h("a", { class: "button", href: `${PATH}?as=${form}`, download: "" }, icon("down"), label);
}

function fact(iconName, name, value, hash) {
  return h(
    "li",
    { class: "row" },
    icon(iconName),
    h("div", { class: "row-main" }, h("p", { class: "row-title" }, hash ? h("a", { href: hash }, name) : name), h("p", { class: "hint" }, value)),
  );
}
