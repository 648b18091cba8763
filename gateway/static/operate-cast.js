// Characters that left the configuration while people still have memories with them: nothing moves before somebody confirms here that one is deleted.

import { request } from "./api.js";
import { confirmDialog } from "./dialog.js";
import { h } from "./dom.js";
import { number, t } from "./i18n.js";
import { section } from "./page.js";
import { toast } from "./toast.js";

/** The section below the configuration; nothing when no character waits. */
export function castSection({ characters }, reload) {
  const waiting = characters.filter((each) => each.waits);
  if (!waiting.length) return null;
  return section(
    t("gone.title"),
    t("gone.text"),
    h(
      "ul",
      { class: "rows" },
      waiting.map((each) => row(each, reload)),
    ),
  );
}

function row(each, reload) {
  return h(
    "li",
    { class: "row" },
    h(
      "div",
      { class: "row-main" },
      h("p", { class: "row-line" }, h("bdi", { class: "row-title" }, each.name), " ", h("bdi", { class: "mono hint" }, each.id)),
      h("p", { class: "hint" }, t("gone.counts", counts(each))),
    ),
    h("button", { type: "button", class: "button danger", onclick: () => remove(each, reload) }, t("gone.delete", { name: each.name })),
  );
}

const counts = (each) => ({ rows: number(each.rows), people: number(each.people), spaces: number(each.space_rows) });

async function remove(each, reload) {
  const done = await confirmDialog({
    title: t("gone.ask", { name: each.name }),
    body: t("gone.askText", counts(each)),
    action: t("gone.delete", { name: each.name }),
    danger: true,
    submit: () => request("DELETE", `/api/operator/characters/${encodeURIComponent(each.id)}`),
  });
  if (!done) return;
  toast(t("gone.done", { name: each.name }));
  reload();
}
