// A person's accounts in other apps, and linking one more: a code from either side, then a yes in both (WD-13).

import { request } from "./api.js";
import { copyButton } from "./controls.js";
import { askText, openDialog } from "./dialog.js";
import { h } from "./dom.js";
import { t, term } from "./i18n.js";
import { icon } from "./icons.js";
import { emptyState, explain, fillWhenLoaded } from "./states.js";
import { toast } from "./toast.js";

const LOOK_AGAIN_MS = 3_000; // while the other side has something to do

/** Fills `place`, and follows a link until it is made or dropped. `joined` is called when this person has become another. */
export function showAccounts(place, signal, joined) {
  let timer = 0;
  let shown = "";
  signal.addEventListener("abort", () => clearTimeout(timer));

  const load = () => request("GET", "/api/me/accounts", undefined, { signal });
  const show = (found) => {
    clearTimeout(timer);
    shown = JSON.stringify(found);
    if (found.pending) timer = setTimeout(look, LOOK_AGAIN_MS);
    return [accountList(found.accounts, Boolean(found.pending)), found.pending ? pendingLink(found.pending, reload, joined) : ways(reload)];
  };
  const reload = () => fillWhenLoaded(place, { signal, lines: 2, load, show });
  const look = async () => {
    try {
      const found = await load();
      if (signal.aborted) return;
      if (JSON.stringify(found) === shown) timer = setTimeout(look, LOOK_AGAIN_MS);
      else if (JSON.parse(shown).pending?.agreed && !found.pending) joined(); // the other side said yes, or no
      else place.replaceChildren(...show(found));
    } catch {
      if (!signal.aborted) timer = setTimeout(look, LOOK_AGAIN_MS);
    }
  };
  reload();
}

function accountList(accounts, pending) {
  if (!accounts.length) return pending ? "" : emptyState("link", t("accounts.none"), t("accounts.noneText"));
  return h(
    "ul",
    { class: "rows" },
    accounts.map((each) =>
      h(
        "li",
        { class: "row" },
        icon("link"),
        h(
          "div",
          { class: "row-main" },
          h("bdi", { class: "row-title" }, each.name || each.platform_user_id),
          h("p", { class: "hint" }, term("channel", each.channel), " · ", h("bdi", {}, each.platform_user_id)),
        ),
      ),
    ),
  );
}

function ways(reload) {
  const button = (label, action) => h("button", { type: "button", class: "button", onclick: action }, label);
  return h("div", { class: "row-end" }, button(t("accounts.giveCode"), () => giveCode(reload)), button(t("accounts.getCode"), () => getCode(reload)));
}

async function getCode(reload) {
  try {
    const made = await request("POST", "/api/me/accounts/code", {});
    reload();
    await openDialog({
      title: t("accounts.codeTitle"),
      content: [
        h("p", { class: "dialog-text" }, t("accounts.codeText")),
        h("div", { class: "secret" }, h("code", {}, made.command), copyButton(made.command)),
      ],
      cancel: t("action.done"),
    });
  } catch (error) {
    toast(explain(error), { tone: "warn" });
  }
}

async function giveCode(reload) {
  const given = await askText({
    title: t("accounts.codeTitle"),
    label: `${t("accounts.codeLabel")} (${t("accounts.codeHint")})`,
    action: t("accounts.giveCode"),
    maxlength: 40,
    submit: (code) => request("POST", "/api/me/accounts/link", { code }),
  });
  if (given) reload();
}

function pendingLink(pending, reload, joined) {
  const decide = async (agree) => {
    try {
      const { state } = await request("POST", "/api/me/accounts/decision", { agree, id: pending.id });
      if (state === "joined") {
        toast(t("accounts.joined"));
        joined();
        return;
      }
      if (state === "dropped") toast(t("accounts.dropped"));
    } catch (error) {
      toast(explain(error), { tone: "warn" });
    }
    reload();
  };
  const { other, agreed } = pending;
  const text = !other ? t("accounts.codeOut") : t(agreed ? "accounts.waits" : "accounts.offer", other);
  const no = h("button", { type: "button", class: "button", onclick: () => decide(false) }, t(other && !agreed ? "accounts.no" : "accounts.drop"));
  const yes =
    other && !agreed && h("button", { type: "button", class: "button primary", onclick: () => decide(true) }, icon("link"), t("accounts.yes"));
  return h("div", { class: "account-link", role: "status" }, h("p", { class: "dialog-text" }, text), h("div", { class: "row-end" }, no, yes));
}
