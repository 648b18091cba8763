// One message of the talk as a list item: its words, its files, what became of it, and what can be done with it.

import { copyButton, iconButton } from "./controls.js";
import { h } from "./dom.js";
import { t } from "./i18n.js";
import { icon } from "./icons.js";
import { guessLang } from "./lang.js";
import { fileName, fileSize, plainName } from "./names.js";
import { Prose } from "./prose.js";
import { ago } from "./when.js";

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const FOR = {
  user: ["copy", "edit", "fork"],
  assistant: ["copy", "regenerate", "fork", "receipt"],
  notice: [],
};

/**
 * The view of a stored message. `actions` holds the functions this talk offers (`edit`, `regenerate`, `fork`, `receipt`), each called with the message;
 * what is missing is not shown. A `passing` message is not in the log of the server (a command): it can only be copied.
 */
export function messageView(message, actions = {}) {
  const item = h("li", {
    class: `message is-${message.role}`,
    dataset: { id: message.id, turn: message.turn_id ?? "", state: message.state ?? "done" },
  });
  item.append(
    h(
      "article",
      { "aria-label": t(`chat.by.${message.role}`) },
      message.role === "assistant" && message.name && h("p", { class: "message-name" }, message.name),
      body(message),
      files(message.attachments ?? []),
      outcome(message, actions),
      message.role !== "notice" && foot(message, actions),
    ),
  );
  return item;
}

function body(message) {
  const element = h("div", { class: message.role === "user" ? "bubble" : "prose" });
  if (message.role === "user" || !message.html) {
    element.classList.add("as-typed");
    element.append(message.text);
    element.lang = guessLang(message.text);
  } else {
    new Prose(element).show(message.html);
  }
  return message.text || message.html ? element : "";
}

function foot(message, actions) {
  const make = {
    copy: () => copyButton(message.text, t("action.copy"), "icon-button"),
    edit: () => iconButton("edit", t("action.edit"), () => actions.edit(message)),
    regenerate: () => iconButton("again", t("action.regenerate"), () => actions.regenerate(message), { class: "icon-button only-last" }),
    fork: () => iconButton("fork", t("action.fork"), () => actions.fork(message)),
    receipt: () => iconButton("receipt", t("action.receipt"), () => actions.receipt(message), { dataset: { receipt: message.turn_id } }),
  };
  const offered = FOR[message.role].filter((name) => name === "copy" || (actions[name] && !message.passing));
  return h(
    "footer",
    { class: "message-foot" },
    offered.map((name) => make[name]()),
    h("span", { class: "message-time" }, ago(message.created_at)),
  );
}

function outcome(message, actions) {
  if (message.state === "waiting" && message.turn_id) return note("clock", t("message.waiting")); // a command has no turn and never waits
  if (message.state === "stopped" && message.role === "assistant") return note("stop", t("message.stopped"));
  if (message.state === "failed") {
    const again =
      actions.regenerate &&
      message.turn_id &&
      h("button", { type: "button", class: "text-button", onclick: () => actions.regenerate(message) }, t("action.retry"));
    return message.role === "notice" ? again && h("p", { class: "message-note" }, again) : note("warn", t("message.failed"), again);
  }
  return "";
}

/** A quiet line under a message; with the icon "warn" it is amber. */
export function note(iconName, text, ...more) {
  return h("p", { class: iconName === "warn" ? "message-note tone-warn" : "message-note" }, icon(iconName), h("span", {}, text), more);
}

/** Files of a message: pictures as small views, others as chips to save. */
export function files(attachments) {
  if (!attachments.length) return "";
  return h(
    "ul",
    { class: "files", "aria-label": t("attach.list") },
    attachments.map((file) => h("li", {}, PICTURES.has(file.mime) ? picture(file) : chip(file))),
  );
}

function picture(file) {
  const address = `/api/attachments/${encodeURIComponent(file.id)}`;
  const image = h("img", { src: address, alt: plainName(file.name), loading: "lazy" });
  const link = h("a", { class: "picture", href: address, target: "_blank", rel: "noopener noreferrer" }, image);
  image.addEventListener("error", () => link.replaceWith(chip(file)));
  return link;
}

function chip(file) {
  return h(
    "a",
    { class: "chip", href: `/api/attachments/${encodeURIComponent(file.id)}`, download: plainName(file.name) },
    icon("file"),
    fileName(file.name),
    h("span", { class: "dim" }, fileSize(file.size)),
  );
}
