// The memory page: whose memory, and its tabs. A tab is one row of the table; `show(place, context)` fills the place and may return
// `{destroy, find}`.

import { request } from "./api.js";
import { select } from "./controls.js";
import { h, replace } from "./dom.js";
import { t, term } from "./i18n.js";
import { icon } from "./icons.js";
import { MemoryApi } from "./memory-api.js";
import { calendarTab } from "./memory-calendar.js";
import { chunksTab } from "./memory-chunks.js";
import { conversationTab } from "./memory-conversation.js";
import { daysTab } from "./memory-days.js";
import { dreamsTab } from "./memory-dreams.js";
import { entriesTab } from "./memory-entries.js";
import { filesTab } from "./memory-files.js";
import { meTab } from "./memory-me.js";
import { savedTab } from "./memory-saved.js";
import { plainPage } from "./page.js";
import { showBare } from "./shell.js";

// Two levels: what a group holds stands below it; a group of one is its own tab.
const GROUPS = [
  { name: "saved", icon: "book", tabs: [{ name: "saved", show: savedTab, everyList: true }] },
  {
    name: "chats",
    icon: "channel",
    tabs: [
      { name: "conversation", show: conversationTab, everyList: true },
      { name: "entries", show: entriesTab, everyList: true, detaches: true },
      { name: "calendar", show: calendarTab, everyList: true },
      { name: "chunks", show: chunksTab, everyList: true },
    ],
  },
  {
    name: "notes",
    icon: "file",
    tabs: [
      { name: "files", show: filesTab },
      { name: "days", show: daysTab },
      { name: "dreams", show: dreamsTab },
    ],
  },
  { name: "me", icon: "person", tabs: [{ name: "me", show: meTab, everyList: true }] },
];
const TABS = GROUPS.flatMap(({ tabs }) => tabs);

/** `parts` is the rest of the address: the tab, then what is open in it. `?alone=1`: the panel by itself, for a window of its own (RS-81). */
export function memoryPage(parts, query) {
  const tab = TABS.find(({ name }) => name === parts[0]) ?? TABS[0];
  const alone = Boolean(tab.detaches && query.get("alone"));
  const end = new AbortController();
  const api = new MemoryApi(query.get("scope") ?? "", end.signal);
  const whose = h("div", { class: "memory-scope" });
  const place = h("div", { class: `memory-tab is-${tab.name}` });
  let shown = null;
  if (alone) {
    showBare(h("main", { class: "plain is-alone", tabindex: -1 }, h("h1", { class: "sr-only" }, t(`memory.tab.${tab.name}`)), place));
  } else {
    plainPage({
      title: t("memory.title"),
      lead: t(`memory.lead.${tab.name}`),
      current: "memory",
      actions: whose,
      body: [tabsView(tab, api, parts[1]), place],
      wide: true,
      onFind: () => shown?.find?.(),
    });
  }
  if (!tab.everyList) showScopes(whose, api, tab.name); // these are about the person, or show all lists at once
  shown = tab.show(place, { api, signal: end.signal, parts: parts.slice(1), query, alone }) ?? null;
  return {
    title: t("memory.title"),
    destroy() {
      end.abort();
      shown?.destroy?.();
    },
  };
}

/** The groups, and below them what the open one holds. The tabs about a chat keep the chat that is open. */
function tabsView(tab, api, open) {
  const current = GROUPS.find(({ tabs }) => tabs.includes(tab));
  const keeps = current.name === "chats" && open ? [open] : [];
  return h(
    "nav",
    { class: "tabs-frame", "aria-label": t("memory.tabs") },
    h(
      "ul",
      { class: "tabs" },
      GROUPS.map((group) => {
        const alone = group.tabs.length === 1;
        const here = group === current && (alone ? "page" : "true");
        return h("li", {}, h("a", { class: "tab", href: api.hash(group.tabs[0].name), "aria-current": here }, icon(group.icon), t(`memory.${alone ? "tab" : "group"}.${group.name}`)));
      }),
    ),
    current.tabs.length > 1 &&
      h(
        "ul",
        { class: "tabs-below", "aria-label": t(`memory.group.${current.name}`) },
        current.tabs.map((each) =>
          h("li", {}, h("a", { class: "tab-below", href: api.hash(each.name, ...keeps), "aria-current": each === tab && "page" }, t(`memory.tab.${each.name}`))),
        ),
      ),
  );
}

/** A choice of whose memory, for those who may open more than their own. */
async function showScopes(place, api, tab) {
  let scopes = [];
  try {
    ({ scopes } = await request("GET", "/api/memory/scopes", undefined, { signal: api.signal }));
  } catch {
    return; // the tab itself says what is wrong
  }
  if (scopes.length < 2) return;
  const name = ({ kind, label, channel }) =>
    kind === "own" ? t("memory.own") : t("memory.space", { name: label, channel: term("channel", channel) });
  const choice = select(
    scopes.map((each) => [each.kind === "own" ? "" : each.scope, name(each)]),
    api.scope,
    {
      class: "input quiet-select",
      "aria-label": t("memory.whose"),
      onchange: (event) => {
        location.hash = new MemoryApi(event.target.value, api.signal).hash(tab);
      },
    },
  );
  replace(place, choice);
}
