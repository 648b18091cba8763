// What a person sets for themselves: name, language, zone, the look of this browser, password, and their own API tokens.

import { ApiError, request } from "./api.js";
import { copyButton, field, iconButton, segmented, select } from "./controls.js";
import { askText, confirmDialog, openDialog } from "./dialog.js";
import { h } from "./dom.js";
import { LANGUAGE_NAMES, t } from "./i18n.js";
import { icon } from "./icons.js";
import { plainPage, section } from "./page.js";
import { person, refreshMe } from "./session.js";
import { showAccounts } from "./settings-accounts.js";
import { signOut } from "./shell.js";
import { emptyState, explain, fillWhenLoaded } from "./states.js";
import { setTheme, theme, THEMES } from "./theme-choice.js";
import { toast } from "./toast.js";
import { ago } from "./when.js";

/** `again` shows everything anew, for another language. */
export function settingsPage({ again }) {
  const end = new AbortController();
  const tokens = h("div", {});
  const accounts = h("div", {});
  const body = h(
    "div",
    { class: "cards" },
    section(t("settings.you"), "", profileForm(again)),
    section(
      t("settings.look"),
      t("settings.lookAbout"),
      segmented({
        legend: t("theme.label"),
        options: THEMES.map((choice) => [choice, t(`theme.${choice}`)]),
        value: theme(),
        onchange: setTheme,
      }),
    ),
    section(t("settings.password"), person().has_password ? t("settings.passwordAbout") : t("settings.passwordNone"), passwordForm(again)),
    person().role !== "guest" && section(t("accounts.title"), t("accounts.about"), accounts),
    section(t("settings.tokens"), t("settings.tokensAbout"), tokens),
    section(
      t("account.signOut"),
      t("settings.signOutAbout"),
      h(
        "div",
        { class: "row-end" },
        h("button", { type: "button", class: "button", onclick: signOut }, icon("exit"), t("account.signOut")),
      ),
    ),
  );
  plainPage({ title: t("nav.settings"), current: "settings", body });
  showTokens(tokens, end.signal);
  if (person().role !== "guest") showAccounts(accounts, end.signal, again);
  return { title: t("nav.settings"), destroy: () => end.abort() };
}

/** A form whose button saves; refused fields are marked where the server named them. */
function saveForm({ fields, action, save, saved }) {
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const button = h("button", { type: "submit", class: "button primary" }, action);
  async function submit(event) {
    event.preventDefault();
    button.disabled = true;
    problem.hidden = true;
    for (const row of Object.values(fields)) row.setError("");
    try {
      await save();
      toast(saved);
    } catch (error) {
      const row = error instanceof ApiError && fields[error.param];
      if (row) row.setError(explain(error));
      else {
        problem.textContent = explain(error);
        problem.hidden = false;
      }
    } finally {
      button.disabled = false;
    }
  }
  return h("form", { class: "form", onsubmit: submit }, Object.values(fields), problem, h("div", { class: "row-end" }, button));
}

function profileForm(again) {
  const me = person();
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const zones = [...new Set([me.timezone || here, here, "UTC", ...(Intl.supportedValuesOf?.("timeZone") ?? [])])];
  const name = h("input", { class: "input", value: me.name, maxlength: 80, required: true, autocomplete: "name" });
  const language = select([["", t("settings.languageAuto")], ...Object.entries(LANGUAGE_NAMES)], me.language ?? "");
  const timezone = select(
    zones.map((zone) => [zone, zone === here ? t("settings.zoneHere", { zone }) : zone.replaceAll("_", " ")]),
    me.timezone || here,
  );
  return saveForm({
    fields: {
      name: field({ label: t("settings.name"), control: name }),
      language: field({ label: t("settings.language"), control: language }),
      timezone: field({ label: t("settings.timezone"), control: timezone, hint: t("settings.timezoneHint") }),
    },
    action: t("action.save"),
    saved: t("settings.saved"),
    save: async () => {
      await request("PATCH", "/api/me", { name: name.value.trim(), language: language.value, timezone: timezone.value });
      await again();
    },
  });
}

function passwordForm(again) {
  const had = person().has_password;
  const current = h("input", { class: "input", type: "password", autocomplete: "current-password", required: had });
  const fresh = h("input", { class: "input", type: "password", autocomplete: "new-password", required: true, minlength: 8 });
  const fields = {
    ...(had && { current_password: field({ label: t("settings.currentPassword"), control: current }) }),
    password: field({ label: t("settings.newPassword"), control: fresh, hint: t("settings.newPasswordHint") }),
  };
  return saveForm({
    fields,
    action: had ? t("settings.changePassword") : t("settings.setPassword"),
    saved: t("settings.passwordSaved"),
    save: async () => {
      await request("PATCH", "/api/me", { password: fresh.value, ...(had && { current_password: current.value }) });
      current.value = "";
      fresh.value = "";
      if (!had) await again();
      else await refreshMe();
    },
  });
}

function showTokens(place, signal) {
  const reload = () =>
    fillWhenLoaded(place, {
      signal,
      lines: 3,
      load: () => request("GET", "/api/tokens", undefined, { signal }),
      show: (answer) => [
        tokenList(answer.tokens ?? answer, reload),
        h(
          "div",
          { class: "row-end" },
          h("button", { type: "button", class: "button", onclick: () => makeToken(reload) }, icon("plus"), t("tokens.new")),
        ),
      ],
    });
  reload();
}

function tokenList(tokens, reload) {
  if (!tokens.length) return emptyState("key", t("tokens.none"), t("tokens.noneText"));
  return h(
    "ul",
    { class: "rows" },
    tokens.map((token) =>
      h(
        "li",
        { class: "row" },
        icon("key"),
        h(
          "div",
          { class: "row-main" },
          h("bdi", { class: "row-title" }, token.name),
          h(
            "p",
            { class: "hint" },
            t("tokens.made"),
            " ",
            ago(token.created_at),
            token.used_at && [" · ", t("tokens.used"), " ", ago(token.used_at)],
          ),
        ),
        iconButton("trash", t("tokens.delete", { name: token.name }), () => removeToken(token, reload)),
      ),
    ),
  );
}

async function makeToken(reload) {
  const made = await askText({
    title: t("tokens.new"),
    label: t("tokens.nameLabel"),
    action: t("tokens.make"),
    maxlength: 80,
    submit: (name) => request("POST", "/api/tokens", { name }),
  });
  if (!made) return;
  reload();
  await openDialog({
    title: t("tokens.once"),
    content: [
      h("p", { class: "dialog-text" }, t("tokens.onceText")),
      h("div", { class: "secret" }, h("code", {}, made.token), copyButton(made.token)),
    ],
    cancel: t("action.done"),
  });
}

async function removeToken(token, reload) {
  const done = await confirmDialog({
    title: t("tokens.deleteTitle", { name: token.name }),
    body: t("tokens.deleteText"),
    action: t("tokens.deleteAction"),
    danger: true,
    submit: async () => {
      await request("DELETE", `/api/tokens/${encodeURIComponent(token.id)}`);
      return true;
    },
  });
  if (done) reload();
}
