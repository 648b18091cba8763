// Adding memories: one typed, some drafted from a description, some taken out of a talk. Drafts are looked at before any is saved.

import { ApiError, request } from "./api.js";
import { field, segmented, select } from "./controls.js";
import { openDialog } from "./dialog.js";
import { h, replace } from "./dom.js";
import { number, t, tn } from "./i18n.js";
import { guessLang } from "./lang.js";
import { countInto, listName } from "./memory-saved-names.js";
import { explain, skeleton } from "./states.js";
import { toast } from "./toast.js";
import { absolute } from "./when.js";

const DESCRIPTION_MAX = 1_000;
const PICKED_MAX = 20;
const MESSAGES_SHOWN = 100;

/** One memory, in the list that is open or another of one's own. */
export async function askAdd(pane) {
  const lists = pane.data.lists.filter((each) => each.manages && (pane.list.list === "space") === (each.list === "space"));
  const area = h("textarea", { class: "input", rows: 4, required: true, autofocus: true });
  const count = h("p", { class: "hint num field-count" });
  const which = select(
    lists.map((each, at) => [String(at), listName(each)]),
    String(Math.max(0, lists.findIndex((each) => listName(each) === listName(pane.list)))),
  );
  const full = h("div", { class: "saved-full", role: "status" });
  let evict = null;
  countInto(count, area, pane.limits.content_max);
  const done = await openDialog({
    title: t("saved.add"),
    content: [
      h("p", { class: "dialog-text" }, t("saved.addText")),
      field({ label: t("saved.text"), control: area }),
      count,
      lists.length > 1 && field({ label: t("saved.list"), control: which, hint: t("saved.listHint") }),
      full,
    ],
    action: t("saved.addAction"),
    submit: async () => {
      const list = lists[Number(which.value)] ?? pane.list;
      const agreed = evict?.box.checked && evict.list === list ? evict.id : undefined;
      try {
        return { list, ...(await pane.api.add(list, area.value, agreed)) };
      } catch (error) {
        evict = offerEvict(full, error, list, evict);
        if (error instanceof ApiError && error.code === "duplicate") pane.reveal(error.details.memory.id);
        throw error;
      }
    },
  });
  if (!done) return;
  toast(done.forgotten ? t("saved.addedForgot") : t("saved.added"));
  if (done.forgotten) pane.put(done.forgotten.id, null);
  pane.put(done.memory.id, done.memory, { focus: true });
}

/**
 * A full list names the sleeping memory that could go; nothing goes without a yes, and a changed list asks again (SM-49). A yes to the same one that was
 * given `before`, while the answer was on its way, stands.
 */
function offerEvict(place, error, list, before) {
  replace(place);
  const candidate = error instanceof ApiError && error.code === "list_full" && error.details.candidate;
  if (!candidate) return null;
  if (before?.id === candidate.id && before.list === list) {
    replace(place, before.shown);
    return before;
  }
  const box = h("input", { type: "checkbox" });
  const shown = [
    h("p", { class: "hint" }, t("saved.couldGo")),
    h("blockquote", { class: "memory-quote", lang: guessLang(candidate.content) }, candidate.content),
    h("label", { class: "check-line" }, box, h("span", {}, t("saved.letGo"))),
  ];
  replace(place, shown);
  return { id: candidate.id, box, list, shown };
}

/** Drafts from a description; no chat is read for it (SM-57). */
export async function askGenerate(pane) {
  const area = h("textarea", { class: "input", rows: 6, required: true, autofocus: true });
  const count = h("p", { class: "hint num field-count" });
  const wait = h("p", { class: "hint", role: "status" });
  countInto(count, area, DESCRIPTION_MAX);
  const made = await openDialog({
    title: t("saved.generate"),
    content: [
      h("p", { class: "dialog-text" }, t("saved.generateText", { list: listName(pane.list) })),
      field({ label: t("saved.describe"), control: area, hint: t("saved.describeHint") }),
      count,
      wait,
    ],
    action: t("saved.generateAction"),
    submit: () => waiting(wait, pane.api.generate(pane.list, area.value)),
  });
  if (made) await review(pane, made, { origin: "generate" });
}

/** Drafts from messages of one talk, by the model or word for word; they arrive pinned (SM-58). `chatId` is chosen already, where given. */
export async function askFromChat(pane, chatId = "") {
  const place = h("div", { class: "picks" }, skeleton(4));
  const wait = h("p", { class: "hint", role: "status" });
  const chosen = h("p", { class: "hint num", role: "status" });
  const picked = new Set();
  let chat = chatId;
  let how = "extract";
  const count = () => {
    chosen.textContent = t("saved.picked", { n: number(picked.size), most: number(PICKED_MAX) });
    chosen.classList.toggle("tone-warn", picked.size > PICKED_MAX);
  };
  const show = async (id) => {
    chat = id;
    picked.clear();
    count();
    replace(place, skeleton(4));
    try {
      replace(place, await messagesView(id, picked, count, pane.signal));
    } catch (error) {
      if (error.name !== "AbortError") replace(place, h("p", { class: "problem", role: "alert" }, explain(error)));
    }
  };
  const { chats } = await request("GET", "/api/chats");
  const own = chats.filter((each) => each.kind !== "challenge");
  if (!own.length) {
    toast(t("saved.noChats"));
    return;
  }
  show(chat || own[0].id);
  const made = await openDialog({
    title: t("saved.fromChat"),
    content: [
      h("p", { class: "dialog-text" }, t("saved.fromChatText")),
      field({
        label: t("saved.chat"),
        control: select(
          own.map((each) => [each.id, each.title]),
          chat,
          { onchange: (event) => show(event.target.value), autofocus: true },
        ),
      }),
      chosen,
      place,
      segmented({
        legend: t("saved.how"),
        options: [
          ["extract", t("saved.how.extract")],
          ["verbatim", t("saved.how.verbatim")],
        ],
        value: how,
        onchange: (value) => {
          how = value;
        },
      }),
      wait,
    ],
    action: t("saved.generateAction"),
    submit: () => waiting(wait, pane.api.extract(pane.list, chat, [...picked], how)),
  });
  if (made) await review(pane, made, { origin: "from_chat", chat, messages: [...picked] });
}

async function messagesView(chatId, picked, count, signal) {
  const path = `/api/chats/${encodeURIComponent(chatId)}/messages?limit=${MESSAGES_SHOWN}`;
  const { messages } = await request("GET", path, undefined, { signal });
  const picks = messages.filter(({ spoken, text }) => spoken && text.trim()); // no commands, nor what was said to them
  if (!picks.length) return h("p", { class: "hint" }, t("saved.noMessages"));
  return h(
    "ul",
    { class: "pick-list", "aria-label": t("saved.messages"), tabindex: 0 },
    picks.map((message) => {
      const box = h("input", {
        type: "checkbox",
        onchange: () => {
          if (box.checked) picked.add(message.id);
          else picked.delete(message.id);
          count();
        },
      });
      return h(
        "li",
        {},
        h(
          "label",
          { class: `pick is-${message.role}` },
          box,
          h(
            "span",
            {},
            h("span", { class: "hint" }, message.name || t(`chat.by.${message.role}`), " · ", absolute(message.created_at)),
            h("span", { class: "pick-text", lang: guessLang(message.text) }, message.text),
          ),
        ),
      );
    }),
  );
}

async function waiting(place, work) {
  place.textContent = t("saved.writing");
  try {
    return await work;
  } finally {
    place.textContent = "";
  }
}

/** The drafts to be edited or left out; what is kept is saved together or not at all (SM-60). */
async function review(pane, { drafts, found, limit }, source) {
  if (!drafts.length) {
    await openDialog({ title: t("saved.noDrafts"), content: [h("p", { class: "dialog-text" }, t("saved.noDraftsText"))], cancel: t("action.close") });
    return;
  }
  const rows = drafts.map((text, at) => {
    const box = h("input", { type: "checkbox", checked: true, "aria-label": t("saved.draft", { n: number(at + 1) }) });
    const area = h("textarea", { class: "input", rows: 3, value: text, lang: guessLang(text), "aria-label": t("saved.draftText", { n: number(at + 1) }) });
    const count = h("span", { class: "hint num" });
    countInto(count, area, pane.limits.content_max);
    box.addEventListener("change", () => {
      area.disabled = !box.checked;
    });
    return { box, area, element: h("li", { class: "draft" }, box, h("div", {}, area, count)) };
  });
  const pinned = source.origin === "from_chat";
  const saved = await openDialog({
    title: tn("saved.drafts", drafts.length),
    content: [
      h("p", { class: "dialog-text" }, t(pinned ? "saved.draftsPinned" : "saved.draftsText", { list: listName(pane.list) })),
      found > drafts.length && h("p", { class: "hint" }, t("saved.draftsMore", { found: number(found), limit: number(limit) })),
      h(
        "ul",
        { class: "draft-list" },
        rows.map(({ element }) => element),
      ),
    ],
    action: t("saved.addAction"),
    submit: () => {
      const texts = rows.filter(({ box }) => box.checked).map(({ area }) => area.value);
      return pane.api.saveDrafts(pane.list, texts, source);
    },
  });
  if (!saved) return;
  toast(tn("saved.addedMany", saved.added.length));
  for (const each of saved.added) pane.put(each.id, each);
}
