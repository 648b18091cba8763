// What was sent to the model for a reply, and what would be sent now, word for word (RS-78). Looking starts nothing.

import { request } from "./api.js";
import { copyButton, iconButton } from "./controls.js";
import { h } from "./dom.js";
import { number, t, term, tn } from "./i18n.js";
import { guessLang } from "./lang.js";
import { emptyState, fillWhenLoaded } from "./states.js";
import { tokenParts } from "./token-parts.js";
import { absolute } from "./when.js";

const of = (chatId) => `/api/chats/${encodeURIComponent(chatId)}`;

/** The requests of one reply, the last one first: from it the reply came. */
export function sentView(place, { chatId, turnId, signal }) {
  if (!turnId) {
    place.replaceChildren(emptyState("receipt", t("receipt.emptyTitle"), t("prompt.emptyText")));
    return;
  }
  const open = (number) =>
    fillWhenLoaded(place, {
      load: () => request("GET", `${of(chatId)}/turns/${encodeURIComponent(turnId)}/prompt${number ? `?number=${number}` : ""}`, undefined, { signal }),
      show: (found) => [sentHead(found, open), ...promptParts(found)],
      signal,
      lines: 8,
    });
  open();
}

/** The prompt of the next message, without what is only found once that is there. */
export function nextView(place, { chatId, signal }) {
  fillWhenLoaded(place, {
    load: () => request("GET", `${of(chatId)}/preview`, undefined, { signal }),
    show: (found) => [nextHead(found), roomBlock(found), ...promptParts(found)],
    signal,
    lines: 8,
  });
}

function modelLine({ model, provider }) {
  return h("p", { class: "receipt-model" }, h("bdi", { lang: "en" }, model), h("span", { class: "dim", lang: "en" }, provider));
}

function sentHead(found, open) {
  const { number: at, requests } = found;
  const step = (name, label, to, cls = "icon-button") => iconButton(name, label, () => open(to), { class: cls, disabled: to < 1 || to > requests });
  return h(
    "section",
    { class: "receipt-block" },
    modelLine(found),
    requests > 1 &&
      h(
        "div",
        { class: "prompt-steps" },
        step("back", t("prompt.earlier"), at - 1),
        h("span", { class: "num" }, t("prompt.request", { n: number(at), most: number(requests) })),
        step("back", t("prompt.later"), at + 1, "icon-button is-flipped"),
      ),
    h("p", { class: "hint" }, t("prompt.until", { time: absolute(found.until) })),
  );
}

function nextHead(found) {
  return h(
    "section",
    { class: "receipt-block" },
    modelLine(found),
    h("p", { class: "hint" }, t("prompt.nextText")),
    found.fault && faultNote(found.fault),
    found.jump && jumpNote(found.jump),
    found.left_out > 0 && h("p", { class: "receipt-plain" }, tn("receipt.trimmedSome", found.left_out)),
  );
}

/** Why nothing would be sent, as the person would be told. */
function faultNote({ message }) {
  return h("div", { class: "outcome tone-warn", role: "note" }, h("p", {}, h("strong", {}, t("prompt.fault"))), h("p", {}, message));
}

/** That the window would jump first, and where it would begin. */
function jumpNote({ messages, begins }) {
  return h(
    "div",
    { class: "outcome tone-warn", role: "note" },
    h("p", {}, tn("prompt.jump", messages)),
    begins &&
      h(
        "p",
        {},
        t("prompt.begins", { time: absolute(begins.at) }),
        " ",
        begins.text && h("q", { dir: "auto", lang: guessLang(begins.text) }, begins.text),
      ),
    h("p", {}, t("prompt.afterJump")),
  );
}

function roomBlock({ sections, tokens, room }) {
  const values = { memory: number(room.memory), budget: number(room.budget), ceiling: number(room.ceiling) };
  return h(
    "section",
    { class: "receipt-block" },
    h("h3", {}, t("receipt.tokens")),
    h("p", { class: "receipt-plain" }, t("prompt.of", { tokens: number(tokens), room: number(room.prompt) })),
    tokenParts(sections).elements,
    h("p", { class: "receipt-plain" }, t("prompt.memoryRoom", values)),
    room.advised && h("p", { class: "outcome tone-warn", role: "note" }, t("prompt.advice", values)),
    h("p", { class: "hint" }, t("receipt.estimated")),
  );
}

function promptParts(found) {
  const last = found.messages.length - 1;
  return [
    h(
      "section",
      { class: "receipt-block" },
      h("div", { class: "prompt-title" }, h("h3", {}, t("prompt.messages")), copyButton(() => asText(found))),
      h("ol", { class: "prompt-list" }, found.messages.map((message, at) => h("li", {}, messageView(message, at === last)))),
    ),
    found.tools.length > 0 &&
      h(
        "section",
        { class: "receipt-block" },
        h("h3", {}, t("prompt.tools")),
        h(
          "ul",
          { class: "prompt-list" },
          found.tools.map(({ name, description, parameters }) =>
            h(
              "li",
              {},
              folded(h("span", {}, term("tool", name)), null, false, [
                h("p", { class: "hint", lang: "en" }, description),
                h("pre", { class: "prompt-text", lang: "en" }, JSON.stringify(parameters, null, 1)),
              ]),
            ),
          ),
        ),
      ),
  ].filter(Boolean);
}

function messageView({ role, text, tokens, pictures, calls }, open) {
  const name = h("span", {}, term("prompt.role", role), pictures > 0 && h("span", { class: "dim" }, ` · ${tn("prompt.pictures", pictures)}`));
  return folded(name, tokens, open, [
    text && h("pre", { class: "prompt-text", dir: "auto", lang: guessLang(text) }, text),
    calls.map((call) => h("pre", { class: "prompt-text prompt-call", lang: "en" }, `${call.name}(${call.arguments})`)),
  ]);
}

function folded(name, tokens, open, content) {
  const size = tokens !== null && h("span", { class: "num dim", title: t("receipt.estimated") }, number(tokens));
  return h("details", { class: "prompt-part", open }, h("summary", {}, name, size), content);
}

function asText({ messages }) {
  return messages
    .map(({ role, text, calls }) => [`## ${role}`, text, ...calls.map((call) => `${call.name}(${call.arguments})`)].filter(Boolean).join("\n"))
    .join("\n\n");
}
