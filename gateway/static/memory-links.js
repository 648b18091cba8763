// Which other chats of one's own a chat may recall: one-way links, listed and revocable (RS-187).

import { iconButton, select } from "./controls.js";
import { h, replace } from "./dom.js";
import { t } from "./i18n.js";
import { icon } from "./icons.js";
import { chatName } from "./memory-recall.js";
import { explain } from "./states.js";
import { toast } from "./toast.js";

/** A section that loads by itself; `pane` has `api`, `chat` and `signal`. */
export function linksView(pane) {
  const body = h("div", { class: "recall-links" });
  load();
  return h("details", { class: "recall-part recall-fold" }, h("summary", {}, icon("link"), t("recall.links")), h("p", { class: "hint" }, t("recall.linksText")), body);

  async function load() {
    try {
      show(await pane.api.get("links"));
    } catch (error) {
      if (error.name !== "AbortError") replace(body, h("p", { class: "problem" }, explain(error)));
    }
  }

  function show({ links, chats }) {
    const named = new Map(chats.map((each) => [each.id, chatName(each)]));
    named.set(pane.chat.id, chatName(pane.chat));
    const open = chats.filter(({ id }) => !links.some(({ reader, source }) => reader === pane.chat.id && source === id));
    const choice = select(
      open.map(({ id }) => [id, named.get(id)]),
      open[0]?.id,
      { "aria-label": t("recall.linkWith") },
    );
    const add = h("button", { type: "button", class: "button small", onclick: () => act("POST", "links", { source: choice.value }) }, icon("plus"), t("recall.link"));
    replace(
      body,
      links.length > 0 &&
        h(
          "ul",
          { class: "rows" },
          links.map(({ reader, source, reader_title: to, source_title: from }) => {
            const names = { reader: named.get(reader) || to, source: named.get(source) || from };
            return h(
              "li",
              { class: "row" },
              h("div", { class: "row-main" }, t("recall.linkLine", names)),
              reader === pane.chat.id && iconButton("close", t("recall.unlink", names), () => act("DELETE", `links/${encodeURIComponent(source)}`)),
            );
          }),
        ),
      open.length > 0 && h("div", { class: "with-button" }, choice, add),
    );
  }

  async function act(method, tail, values) {
    try {
      await pane.api.send(method, tail, values);
      await load();
    } catch (error) {
      toast(explain(error), { tone: "warn" });
    }
  }
}
