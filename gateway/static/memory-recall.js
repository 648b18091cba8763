// What the tabs about one chat share: the chats at the left, the open one at the right; on a narrow page one of the two.

import { h, replace } from "./dom.js";
import { t, term } from "./i18n.js";
import { icon } from "./icons.js";
import { RecallApi } from "./memory-recall-api.js";
import { emptyState, errorState, skeleton } from "./states.js";
import { ago } from "./when.js";

/** A tab of the memory page: `pane({place, api, chat, chats, signal})` fills the right side. */
export function recallTab(name, pane) {
  return (place, { api: address, signal, parts, alone = false }) => {
    const wanted = parts[0] ?? "";
    const nav = h("nav", { class: "recall-chats", "aria-label": t("recall.chats") }, skeleton(6));
    const side = h("section", { class: "recall-pane", "aria-label": t(`memory.tab.${name}`) }, skeleton(6));
    replace(place, nav, side);
    place.classList.add("is-recall");
    place.classList.toggle("is-open", Boolean(wanted));

    async function load() {
      try {
        const { chats } = await new RecallApi("", signal).chats();
        if (signal.aborted) return;
        const open = chats.find(({ id }) => id === wanted) ?? (wanted ? null : chats[0]);
        replace(nav, chatList(chats, open, name, address));
        if (!chats.length) {
          replace(side, emptyState("channel", t("recall.noChats"), t("recall.noChatsText")));
          return;
        }
        if (!open) {
          location.hash = address.hash(name);
          return;
        }
        const body = h("div", { class: "recall-body" }, skeleton(6));
        replace(side, head(open, name, address), body);
        pane({ place: body, api: new RecallApi(open.id, signal), chat: open, chats, signal, alone });
      } catch (error) {
        if (error.name === "AbortError" || signal.aborted) return;
        replace(nav, errorState(error, load));
        replace(side);
      }
    }

    load();
    return { find: () => nav.querySelector("a")?.focus() };
  };
}

/** What a chat is called: a part of a place by both. */
export function chatName({ title, place, channel }) {
  const names = new Set([place, title].filter(Boolean));
  return [...names].join(" › ") || t("recall.untitled", { channel: term("channel", channel) });
}

function head(chat, name, address) {
  return h(
    "header",
    { class: "saved-head" },
    h("a", { class: "text-button recall-back", href: address.hash(name) }, icon("back"), t("recall.allChats")),
    h("div", { class: "saved-title" }, h("h2", {}, h("bdi", {}, chatName(chat))), h("p", { class: "hint" }, t(`recall.about.${name}`))),
  );
}

function chatList(chats, open, name, address) {
  return h(
    "ul",
    {},
    chats.map((each) =>
      h(
        "li",
        {},
        h(
          "a",
          { class: "file-row", href: address.hash(name, each.id), "aria-current": each === open ? "page" : null },
          h("bdi", { class: "file-row-name" }, chatName(each)),
          h("span", { class: "file-row-about" }, term("channel", each.channel), " · ", ago(each.updated_at)),
        ),
      ),
    ),
  );
}
