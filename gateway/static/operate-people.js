// People: who may talk, with which role, under which names on which platforms; one-time links to sign in (WO-30); and the groups.

import { ApiError, request } from "./api.js";
import { copyButton, field, iconButton, pill, select } from "./controls.js";
import { confirmDialog, openDialog } from "./dialog.js";
import { h, replace } from "./dom.js";
import { t, term, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { openMenu } from "./menu.js";
import { groupsSection } from "./operate-groups.js";
import { pairingSection } from "./operate-pairing.js";
import { section } from "./page.js";
import { keepFresh } from "./refresh.js";
import { isOwner, person } from "./session.js";
import { emptyState, explain, fillWhenLoaded } from "./states.js";
import { toast } from "./toast.js";
import { ago, day } from "./when.js";

const ROLES = ["guest", "user", "admin", "owner"];
const path = (id) => `/api/operator/people/${encodeURIComponent(id)}`;

export function peopleView(place, { signal, actions }) {
  const content = h("div", {});
  const [waiting, groups] = [1, 2].map(() => h("div", { class: "if-any" }));
  let people = [];
  const search = h("input", {
    type: "search",
    class: "input",
    placeholder: t("people.search"),
    "aria-label": t("people.search"),
    oninput: () => show(),
  });
  const show = () => replace(content, list(people, search.value.trim().toLowerCase(), load));
  const load = () =>
    fillWhenLoaded(content, {
      signal,
      lines: 6,
      load: () => request("GET", "/api/operator/people", undefined, { signal }),
      show: (answer) => {
        people = answer.people;
        return list(people, search.value.trim().toLowerCase(), load);
      },
    });
  actions.append(h("button", { type: "button", class: "button primary", onclick: () => edit(null, load) }, icon("plus"), t("people.new")));
  const askWaiting = keepFresh(waiting, {
    path: "/api/operator/pairings",
    show: (answer) =>
      pairingSection(answer, () => {
        load();
        askWaiting();
      }),
    signal,
    everyMs: 10_000,
  });
  keepFresh(groups, { path: "/api/operator/groups", show: groupsSection, signal });
  place.append(waiting, section("", "", search, content), groups);
  load();
}

function list(people, query, reload) {
  const found = people.filter(
    (each) =>
      !query ||
      [each.name, each.role, ...each.identities.flatMap((id) => [id.name, id.channel, id.platform_user_id])].some((word) =>
        String(word ?? "")
          .toLowerCase()
          .includes(query),
      ),
  );
  if (!found.length) return emptyState("people", query ? t("people.noneFound") : t("people.none"), query ? "" : t("people.noneText"));
  return h(
    "ul",
    { class: "rows" },
    found.map((each) => row(each, reload)),
  );
}

function row(each, reload) {
  const more = iconButton("more", t("people.menu", { name: each.name }), () => openMenu(more, items(each, reload)), {
    "aria-haspopup": "menu",
    "aria-expanded": "false",
  });
  return h(
    "li",
    { class: "row is-top" },
    h("span", { class: "account-face", "aria-hidden": "true" }, [...(each.name || "·")][0]),
    h(
      "div",
      { class: "row-main" },
      h(
        "p",
        { class: "row-line" },
        h("bdi", { class: "row-title" }, each.name),
        pill(term("role", each.role), each.role === "owner" || each.role === "admin" ? "good" : "calm"),
        each.blocked && pill(t("people.blocked"), "warn"),
      ),
      each.identities.length > 0 &&
        h(
          "ul",
          { class: "identities" },
          each.identities.map((id) =>
            h(
              "li",
              { class: "hint", title: id.platform_user_id },
              term("channel", id.channel),
              ": ",
              h("bdi", {}, id.name || id.platform_user_id),
            ),
          ),
        ),
      h(
        "p",
        { class: "hint" },
        t("people.since"),
        " ",
        ago(each.created_at),
        each.subscriber_until && ` · ${t("people.subscriber", { day: day(each.subscriber_until, { dateStyle: "medium" }) })}`,
        !each.has_password && ` · ${t("people.noPassword")}`,
      ),
    ),
    more,
  );
}

function items(each, reload) {
  return [
    { label: t("people.edit"), icon: "edit", action: () => edit(each, reload) },
    { label: t("people.link"), icon: "link", action: () => loginLink(each) },
    ...(each.id === person().id
      ? []
      : [
          null,
          each.blocked
            ? { label: t("people.unblock"), icon: "check", action: () => setBlocked(each, false, reload) }
            : { label: t("people.block"), icon: "block", danger: true, action: () => block(each, reload) },
        ]),
  ];
}

/** Makes a new person or changes one; only an owner sees roles of someone who exists. */
async function edit(each, reload) {
  const name = h("input", { class: "input", value: each?.name ?? "", required: true, maxlength: 80, autocomplete: "off", autofocus: true });
  const role = select(
    (isOwner() ? ROLES : ROLES.slice(0, 2)).map((key) => [key, term("role", key)]),
    each?.role ?? "user",
  );
  const password = h("input", { class: "input", type: "password", autocomplete: "new-password", minlength: 8 });
  const until = h("input", { class: "input", type: "date", value: (each?.subscriber_until ?? "").slice(0, 10) });
  const rows = {
    name: field({ label: t("people.name"), control: name }),
    ...((!each || isOwner()) && { role: field({ label: t("people.role"), control: role }) }),
    password: field({
      label: each?.has_password ? t("people.newPassword") : t("people.password"),
      control: password,
      hint: t("people.passwordHint"),
    }),
    ...(each && { subscriber_until: field({ label: t("people.until"), control: until, hint: t("people.untilHint") }) }),
  };
  const done = await openDialog({
    title: each ? t("people.editTitle", { name: each.name }) : t("people.new"),
    content: Object.values(rows),
    action: each ? t("action.save") : t("people.make"),
    submit: () => {
      for (const line of Object.values(rows)) line.setError("");
      return save(each, { name: name.value.trim(), role: role.value, password: password.value, until: until.value }, rows);
    },
  });
  if (done) reload();
}

async function save(each, values, rows) {
  const body = { name: values.name, ...(values.password && { password: values.password }) };
  if (!each || (rows.role && values.role !== each.role)) body.role = values.role;
  if (each && values.until !== (each.subscriber_until ?? "").slice(0, 10))
    body.subscriber_until = values.until || null;
  try {
    await request(each ? "PATCH" : "POST", each ? path(each.id) : "/api/operator/people", body);
    return true;
  } catch (error) {
    if (error instanceof ApiError) rows[error.param]?.setError(explain(error));
    throw error;
  }
}

async function loginLink(each) {
  try {
    const { url } = await request("POST", `${path(each.id)}/login-link`, {});
    await openDialog({
      title: t("people.linkTitle", { name: each.name }),
      content: [h("p", { class: "dialog-text" }, t("people.linkText")), h("div", { class: "secret" }, h("code", {}, url), copyButton(url))],
      cancel: t("action.done"),
    });
  } catch (error) {
    toast(explain(error), { tone: "warn" });
  }
}

async function block(each, reload) {
  const done = await confirmDialog({
    title: t("people.blockTitle", { name: each.name }),
    body: tn("people.blockText", each.identities.length),
    action: t("people.blockAction"),
    danger: true,
    submit: () => request("PATCH", path(each.id), { blocked: true }),
  });
  if (!done) return;
  toast(t("people.blockDone", { name: each.name }), { action: { label: t("action.undo"), run: () => setBlocked(each, false, reload) } });
  reload();
}

async function setBlocked(each, blocked, reload) {
  try {
    await request("PATCH", path(each.id), { blocked });
    reload();
  } catch (error) {
    toast(explain(error), { tone: "warn" });
  }
}
