// The frame around every page: the side with the gate's name and the account, the stage beside it, the offline banner, the keys that work everywhere.

import { request } from "./api.js";
import { iconButton } from "./controls.js";
import { h, replace } from "./dom.js";
import { t, term } from "./i18n.js";
import { icon, mark } from "./icons.js";
import { forgetDrafts } from "./memory-drafts.js";
import { openMenu } from "./menu.js";
import { onReachChange, reachable } from "./reach.js";
import { isOperator, person, refreshMe, session } from "./session.js";
import { makeSheet } from "./sheet.js";
import { explain } from "./states.js";
import { forgetAll } from "./store.js";
import { setTheme, theme, THEMES } from "./theme-choice.js";
import { toast } from "./toast.js";

const NARROW = matchMedia("(max-width: 820px)");
const THEME_ICONS = { system: "screen", light: "sun", dark: "moon" };

let sheet = null;
let find = null;
let forgetBanner = () => {};

/** Puts a page into the frame. `side` is what stands between the name and the account; `onFind` answers Ctrl/Cmd+K. */
export function showInShell({ side, main, onFind }) {
  sheet?.destroy();
  find =
    onFind ??
    (() => {
      location.hash = "#/chat";
    });
  const stage = h("div", { class: "stage" }, offlineBanner(), main);
  const head = h(
    "header",
    { class: "side", "aria-label": "Yumegate", onclick: (event) => event.target.closest("a") && hideSide() },
    h(
      "div",
      { class: "side-head" },
      h("a", { class: "brand", href: "#/chat" }, mark(), h("span", {}, "Yumegate")),
      iconButton("close", t("action.close"), () => sheet.hide(), { class: "icon-button side-close" }),
    ),
    side,
    accountFoot(),
  );
  const skip = h("button", { type: "button", class: "skip", onclick: () => stage.querySelector("main")?.focus() }, t("nav.skip"));
  replace(document.getElementById("app"), h("div", { class: "frame" }, skip, head, stage));
  sheet = makeSheet({ panel: head, rest: () => [stage], narrow: NARROW });
}

/** A page without a side: sign in. */
export function showBare(main) {
  sheet?.destroy();
  sheet = null;
  find = null;
  replace(document.getElementById("app"), h("div", { class: "bare" }, offlineBanner(), main));
}

/** The button that opens the side where it is a sheet. */
export function sideButton() {
  return iconButton("menu", t("nav.openSide"), () => sheet?.show(), { class: "icon-button side-open" });
}

export function hideSide() {
  sheet?.hide();
}

export function showSide() {
  sheet?.show();
}

function accountFoot() {
  const who = person();
  if (!who) {
    return h(
      "div",
      { class: "side-foot" },
      h("p", { class: "side-who" }, icon("person"), h("span", {}, t("account.signedOut"))),
      themeButton(),
      h("a", { class: "button primary small", href: "#/signin" }, t("signin.action")),
    );
  }
  const button = h(
    "button",
    {
      type: "button",
      class: "account",
      "aria-haspopup": "menu",
      "aria-expanded": "false",
      onclick: () => openMenu(button, accountItems()),
    },
    h("span", { class: "sr-only" }, t("account.label")),
    h("span", { class: "account-face", "aria-hidden": "true" }, [...who.name][0] ?? "·"),
    h(
      "span",
      { class: "account-text" },
      h("bdi", { class: "account-name" }, who.name),
      h("span", { class: "account-role" }, term("role", who.role)),
    ),
    icon("more"),
  );
  return h("div", { class: "side-foot" }, button);
}

function accountItems() {
  const go = (hash) => () => {
    location.hash = hash;
  };
  return [
    { label: t("nav.settings"), icon: "gear", action: go("#/settings") },
    isOperator() && { label: t("nav.operate"), icon: "desk", action: go("#/operate/overview") },
    isOperator() && { label: t("nav.setup"), icon: "spark", action: go("#/setup") },
    null,
    ...themeItems(),
    null,
    { label: t("account.signOut"), icon: "exit", action: signOut },
  ].filter((item) => item !== false);
}

function themeItems() {
  return THEMES.map((choice) => ({
    label: t(`theme.${choice}`),
    icon: THEME_ICONS[choice],
    checked: theme() === choice,
    action: () => setTheme(choice),
  }));
}

/** A button for the theme alone, where there is no account menu. */
export function themeButton() {
  const button = iconButton("moon", t("theme.label"), () => openMenu(button, themeItems()));
  return button;
}

/** Ends the session on the server, wipes unsent words from this browser, and shows the door. */
export async function signOut() {
  try {
    await request("DELETE", "/api/session");
    session.me = { ...session.me, person: null }; // from here on nothing is stored any more
    forgetAll();
    forgetDrafts();
    await refreshMe();
    location.hash = "#/signin";
  } catch (error) {
    toast(explain(error), { tone: "warn" });
  }
}

function offlineBanner() {
  const caption = h("span", {});
  const banner = h("div", { class: "banner", role: "status" }, icon("warn"), caption);
  const update = (reachable) => {
    banner.hidden = reachable;
    caption.textContent = reachable ? "" : t(navigator.onLine ? "state.unreachable" : "state.offline");
  };
  forgetBanner();
  forgetBanner = onReachChange(update);
  update(reachable());
  return banner;
}

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || !find) return;
  if (document.querySelector("dialog[open]")) return;
  event.preventDefault();
  find();
});
