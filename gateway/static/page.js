// The frame of the plain pages: a side with links, a head with the title, and a column of sections.

import { h } from "./dom.js";
import { t } from "./i18n.js";
import { icon } from "./icons.js";
import { sideLinks } from "./links.js";
import { hideSide, showInShell, sideButton } from "./shell.js";

/** Shows a plain page. `current` marks its link at the side; `actions` stand at the right of the title; `body` is filled by the caller. */
export function plainPage({ title, lead = "", current, actions = [], body, wide = false, onFind }) {
  const side = h(
    "nav",
    { class: "side-links", "aria-label": title },
    h("a", { class: "side-link", href: "#/chat" }, icon("back"), t("nav.backToChats")),
    groups(sideLinks(current)),
  );
  const main = h(
    "main",
    { class: wide ? "plain is-wide" : "plain", tabindex: -1 },
    h(
      "header",
      { class: "plain-head" },
      sideButton(),
      h("div", { class: "plain-title" }, h("h1", {}, title), lead && h("p", { class: "lead" }, lead)),
      h("div", { class: "plain-actions" }, actions),
    ),
    body,
  );
  showInShell({ side, main: h("div", { class: "plain-frame", tabindex: -1 }, main), onFind });
  hideSide();
  return main;
}

function groups(links) {
  const names = [...new Set(links.map((link) => link.group ?? ""))];
  return names.map((name) => [
    name && h("h2", { class: "side-group" }, name),
    links
      .filter((link) => (link.group ?? "") === name)
      .map((link) =>
        h("a", { class: "side-link", href: link.hash, "aria-current": link.current ? "page" : null }, icon(link.icon), link.label),
      ),
  ]);
}

/** A section with a heading, a line about it, and its content; without a heading where the page's title says it all. */
export function section(title, about, ...content) {
  return h(
    "section",
    { class: "card" },
    title && h("header", { class: "card-head" }, h("h2", {}, title), about && h("p", { class: "hint" }, about)),
    content,
  );
}
