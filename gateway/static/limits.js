// Every limit of the product on one page, each with its present value and the key by which it is set (WO-21).

import { request } from "./api.js";
import { h } from "./dom.js";
import { number, t } from "./i18n.js";
import { plainPage, section } from "./page.js";
import { isOperator } from "./session.js";
import { fillWhenLoaded } from "./states.js";

export function limitsPage() {
  const end = new AbortController();
  const body = h("div", { class: "cards" });
  plainPage({ title: t("limits.title"), lead: t("limits.lead"), current: "limits", body });
  fillWhenLoaded(body, {
    signal: end.signal,
    lines: 8,
    load: () => request("GET", "/api/limits", undefined, { signal: end.signal }),
    show: ({ groups }) => groups.map(({ name, rows }) => section(name, "", table(name, rows))),
  });
  return { title: t("limits.title"), destroy: () => end.abort() };
}

/** The key stands there for those who may change it. */
function table(name, rows) {
  const keys = isOperator();
  return h(
    "table",
    { class: "table limits", "aria-label": name },
    h(
      "thead",
      { class: "sr-only" },
      h("tr", {}, h("th", { scope: "col" }, t("limits.what")), h("th", { scope: "col" }, t("limits.value"))),
    ),
    h(
      "tbody",
      {},
      rows.map(({ what, key, value }) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, what, keys && key && h("span", { class: "hint mono", lang: "en" }, key)),
          h("td", { class: "num" }, value === null ? t("limits.none") : number(value)),
        ),
      ),
    ),
  );
}
