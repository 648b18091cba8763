// Recent errors with their correlation ids, and the audit: who did what, before and after (WO-30, WO-64).

import { request } from "./api.js";
import { copyButton } from "./controls.js";
import { openDialog } from "./dialog.js";
import { h } from "./dom.js";
import { t, term } from "./i18n.js";
import { section } from "./page.js";
import { emptyState, fillWhenLoaded } from "./states.js";
import { ago } from "./when.js";

const STEP = 100;
const MOST = 1000; // what the server gives at once

export function logView(place, { signal }) {
  const errors = h("div", {});
  const audit = h("div", {});
  place.append(section(t("operate.errors"), t("log.errorsAbout"), errors), section(t("log.audit"), t("log.auditAbout"), audit));
  fillWhenLoaded(errors, {
    signal,
    load: () => request("GET", "/api/operator/overview", undefined, { signal }),
    show: (data) => (data.errors.length ? errorList(data.errors) : emptyState("check", t("operate.noErrors"), t("operate.noErrorsText"))),
  });
  showAudit(audit, signal, STEP);
}

function showAudit(place, signal, limit) {
  fillWhenLoaded(place, {
    signal,
    lines: 6,
    load: async () => {
      const [{ entries, places }, { people }] = await Promise.all([
        request("GET", `/api/operator/audit?limit=${limit}`, undefined, { signal }),
        request("GET", "/api/operator/people", undefined, { signal }),
      ]);
      return { entries, names: new Map([...people.map((each) => [each.id, each.name]), ...Object.entries(places)]) };
    },
    show: ({ entries, names }) => {
      if (!entries.length) return emptyState("scroll", t("log.auditNone"), t("log.auditNoneText"));
      const more =
        entries.length >= limit &&
        limit < MOST &&
        h("button", { type: "button", class: "text-button", onclick: () => showAudit(place, signal, limit + STEP) }, t("log.more"));
      return [
        h(
          "ul",
          { class: "rows" },
          entries.map((entry) => auditRow(entry, names)),
        ),
        more,
      ].filter(Boolean);
    },
  });
}

const whence = (address, names) => (names.has(address) ? h("bdi", { title: address }, names.get(address)) : h("bdi", { lang: "en" }, address));

/** One entry; people and places are told by name, as the log itself holds only ids. */
function auditRow(entry, names) {
  const name = (id) => names.get(id) ?? term("actor", id);
  const changed = (entry.before ?? entry.after ?? null) !== null;
  return h(
    "li",
    { class: "row is-top" },
    h(
      "div",
      { class: "row-main" },
      h(
        "p",
        {},
        h("bdi", { class: "row-title" }, name(entry.actor)),
        " ",
        term("audit", entry.action),
        entry.target && [" ", h("bdi", {}, names.get(entry.target) ?? entry.target)],
      ),
      changed &&
        h(
          "details",
          {},
          h("summary", {}, t("log.change")),
          h("div", { class: "diff" }, value(t("log.before"), entry.before), value(t("log.after"), entry.after)),
        ),
    ),
    h("p", { class: "row-side hint" }, ago(entry.at), entry.address && whence(entry.address, names)),
  );
}

function value(label, content) {
  const text = content === null || content === undefined ? "–" : typeof content === "string" ? content : JSON.stringify(content, null, 2);
  return h("div", {}, h("p", { class: "hint" }, label), h("pre", { tabindex: 0, role: "group", "aria-label": label }, h("code", {}, text)));
}

/** Errors as rows; each leads to its delivery. */
export function errorList(errors) {
  return h(
    "ul",
    { class: "rows" },
    errors.map((error) =>
      h(
        "li",
        { class: "row is-top" },
        h(
          "div",
          { class: "row-main" },
          h("p", {}, error.message),
          h("p", { class: "hint" }, term("where", error.where), error.delivery_id && [" · ", deliveryLink(error.delivery_id)]),
        ),
        h("p", { class: "row-side hint" }, ago(error.at)),
      ),
    ),
  );
}

/** A delivery id that opens the way of its message. */
export function deliveryLink(id) {
  return h("button", { type: "button", class: "text-button mono", title: t("log.delivery"), onclick: () => showDelivery(id) }, id);
}

function showDelivery(id) {
  const place = h("div", {});
  fillWhenLoaded(place, {
    load: () => request("GET", `/api/operator/deliveries/${encodeURIComponent(id)}`),
    show: (delivery) => {
      const text = JSON.stringify(delivery, null, 2);
      return h(
        "div",
        { class: "code-block" },
        h("div", { class: "code-head" }, h("span", { class: "code-lang" }, id), copyButton(text)),
        h("pre", { tabindex: 0, role: "group", "aria-label": t("log.delivery") }, h("code", {}, text)),
      );
    },
  });
  openDialog({ title: t("log.delivery"), content: [place], cancel: t("action.close") });
}
