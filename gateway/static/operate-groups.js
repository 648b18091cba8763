// Groups: whether each is answered, whether a mention is needed there, and where both come from (CH-115, CH-116).

import { pill } from "./controls.js";
import { h } from "./dom.js";
import { t, term } from "./i18n.js";
import { section } from "./page.js";

/** The section below the list of people; nothing before a group is known. */
export function groupsSection({ groups }) {
  if (!groups.length) return null;
  return section(t("groups.title"), t("groups.text"), h("ul", { class: "rows groups" }, groups.map(row)));
}

function row(each) {
  return h(
    "li",
    { class: "row" },
    h(
      "div",
      { class: "row-main" },
      h(
        "p",
        { class: "row-line" },
        h("bdi", { class: "row-title" }, each.title || each.platform_space_id),
        pill(term("groupAnswered", each.answered), each.answered === "no" ? "calm" : "good"),
      ),
      h(
        "p",
        { class: "hint" },
        term("channel", each.channel),
        " ",
        h("bdi", {}, each.account),
        " · ",
        h("bdi", {}, each.platform_space_id),
        each.answered !== "no" && [" · ", t(each.mention ? "groups.mention" : "groups.noMention"), " ", term("groupMention", each.mention_from)],
      ),
    ),
  );
}
