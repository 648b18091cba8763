// Rendered Markdown of the server on the page: code blocks get a copy button, every block its language. While an answer grows, blocks that did not
// change keep their nodes, so that a selection or a focused button survives the next snapshot.

import { copyButton } from "./controls.js";
import { h, serverHtml } from "./dom.js";
import { t } from "./i18n.js";
import { guessLang, markLang } from "./lang.js";

export class Prose {
  #keys = [];

  constructor(element) {
    this.element = element;
  }

  /** Shows sanitised HTML in place of what was shown. */
  show(html) {
    const fresh = [...serverHtml(document.createElement("template"), html).content.childNodes].filter(
      (node) => node.nodeType !== Node.TEXT_NODE || node.data.trim(),
    );
    const keys = fresh.map((node) => node.outerHTML ?? node.data);
    const same = keys.findIndex((key, at) => key !== this.#keys[at]);
    const keep = same < 0 ? keys.length : same;
    while (this.element.childNodes.length > keep) this.element.lastChild.remove();
    const whole = guessLang(fresh.map((node) => node.textContent).join(" "));
    this.element.lang = whole;
    for (const node of fresh.slice(keep)) this.element.append(dress(node, whole));
    this.#keys = keys;
  }

  clear() {
    this.element.replaceChildren();
    this.#keys = [];
  }
}

function dress(node, whole) {
  if (node.nodeType !== Node.ELEMENT_NODE) return node;
  markLang(node, whole);
  for (const pre of node.querySelectorAll("pre")) pre.replaceWith(codeBlock(pre.cloneNode(true)));
  for (const table of node.tagName === "TABLE" ? [node] : node.querySelectorAll("table")) nameCells(table);
  return node.tagName === "PRE" ? codeBlock(node) : node;
}

/** A table with more columns than fit is shown as cards (in the stylesheet); then each cell names its column. */
function nameCells(table) {
  const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent);
  if (heads.length < 4) return;
  table.dataset.columns = heads.length > 8 ? "many" : heads.length > 5 ? "more" : "some";
  for (const row of table.querySelectorAll("tbody tr"))
    [...row.cells].forEach((cell, at) => {
      cell.dataset.head = heads[at] ?? "";
    });
}

function codeBlock(pre) {
  const code = pre.querySelector("code") ?? pre;
  const language = [...code.classList].find((name) => name.startsWith("language-"))?.slice("language-".length) ?? code.dataset.lang ?? "";
  pre.tabIndex = 0; // it scrolls sideways, so the keyboard must reach it
  pre.setAttribute("aria-label", language ? t("code.labelled", { language }) : t("code.label"));
  pre.setAttribute("role", "group");
  return h(
    "div",
    { class: "code-block" },
    h(
      "div",
      { class: "code-head" },
      h("span", { class: "code-lang", lang: "en" }, language),
      copyButton(() => code.textContent, t("action.copyCode")),
    ),
    pre,
  );
}

/** Where text goes on after the last snapshot: inside its last block, as a reader expects. */
export function growingPoint(element) {
  let host = element;
  while (host.lastElementChild && host.lastElementChild === lastVisible(host)) {
    if (host.lastElementChild.matches("hr, br, img, table, svg, button, input")) return host;
    host = host.lastElementChild;
  }
  return host;
}

function lastVisible(element) {
  let node = element.lastChild;
  while (node && node.nodeType === Node.TEXT_NODE && !node.data.trim()) node = node.previousSibling;
  return node;
}
