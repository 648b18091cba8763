// The door: name and password in one column; a one-time link signs in by itself and lands here only when it was used or too old.

import { ApiError, request } from "./api.js";
import { field } from "./controls.js";
import { h } from "./dom.js";
import { lang, LANGUAGE_NAMES, loadTexts, rememberLanguage, t } from "./i18n.js";
import { icon, mark } from "./icons.js";
import { refreshMe, session } from "./session.js";
import { showBare, themeButton } from "./shell.js";
import { explain } from "./states.js";

/** `error` is "link" after a dead one-time link; `again` shows the page anew; `next` is where to go afterwards. */
export function signinPage({ error = "", again, next = "" }) {
  const name = h("input", {
    class: "input",
    name: "username",
    autocomplete: "username",
    autocapitalize: "none",
    required: true,
    autofocus: true,
  });
  const password = h("input", { class: "input", name: "password", type: "password", autocomplete: "current-password", required: true });
  const problem = h("p", { class: "problem", role: "alert", hidden: error !== "link" }, error === "link" ? t("signin.linkDead") : "");
  const button = h("button", { type: "submit", class: "button primary wide" }, t("signin.action"));

  async function submit(event) {
    event.preventDefault();
    button.disabled = true;
    problem.hidden = true;
    try {
      await request("POST", "/api/session", { name: name.value.trim(), password: password.value });
      const me = await refreshMe();
      await loadTexts(me.person?.language ?? "");
      location.hash = next && !next.startsWith("#/signin") ? next : "#/chat";
      again();
    } catch (failure) {
      problem.textContent = failure instanceof ApiError && failure.status === 401 ? t("signin.wrong") : explain(failure);
      problem.hidden = false;
      password.select();
    } finally {
      button.disabled = false;
    }
  }

  const form = h(
    "form",
    { class: "column", onsubmit: submit },
    h("div", { class: "column-mark" }, mark()),
    h("h1", {}, t("signin.title")),
    h("p", { class: "lead" }, t("signin.lead")),
    problem,
    field({ label: t("signin.name"), control: name }),
    field({ label: t("signin.password"), control: password }),
    button,
    h("p", { class: "hint" }, t("signin.help")),
    session.me.guests && h("a", { class: "text-button", href: "#/chat" }, icon("channel"), t("signin.guest")),
    h("footer", { class: "column-foot" }, languageChoice(again), themeButton()),
  );
  showBare(h("main", { class: "door", tabindex: -1 }, form));
  name.focus();
  return { title: t("signin.title"), destroy() {} };
}

function languageChoice(again) {
  const choose = async (event) => {
    rememberLanguage(event.target.value);
    await loadTexts(event.target.value);
    again();
  };
  return h(
    "select",
    { class: "input quiet-select", "aria-label": t("settings.language"), onchange: choose },
    Object.entries(LANGUAGE_NAMES).map(([tag, label]) => h("option", { value: tag, lang: tag, selected: tag === lang() }, label)),
  );
}
