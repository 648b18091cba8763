// The start: load who and which language, then show the page that the address names. Each page is `{title, destroy}` and mounts itself.

import { whenSignedOut } from "./api.js";
import { chatPage } from "./chat.js";
import { h } from "./dom.js";
import { guestPage } from "./guest.js";
import { loadTexts } from "./i18n.js";
import { limitsPage } from "./limits.js";
import { memoryPage } from "./memory.js";
import { operatePage } from "./operate.js";
import { isOperator, person, refreshMe, session } from "./session.js";
import { settingsPage } from "./settings.js";
import { setupPage } from "./setup.js";
import { signinPage } from "./signin.js";
import { skeleton } from "./states.js";
import { setTitle } from "./title.js";

let page = null;
let shown = "";

/** The address after `#`, as path parts and query. */
function address() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { parts: path.split("/").filter(Boolean).map(decodePart), query: new URLSearchParams(query) };
}

function decodePart(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a stray % in a typed address
  }
}

function choose({ parts, query }) {
  const [name = "chat", detail = "", ...more] = parts;
  if (name === "signin" && !person()) return () => signinPage({ error: query.get("error") ?? "", again: render });
  if (!person()) return session.me.guests && name === "chat" ? () => guestPage() : () => signinPage({ again: render, next: location.hash });
  if (name === "limits") return () => limitsPage();
  if (name === "settings") return () => settingsPage({ again: restart });
  if (name === "memory" && person().role !== "guest") return () => memoryPage([detail, ...more], query);
  if (name === "setup" && isOperator()) return () => setupPage();
  if (name === "operate" && isOperator()) return () => operatePage(detail || "overview");
  return () => chatPage(name === "chat" ? detail : "");
}

/** Shows the page of the address. */
function render() {
  page?.destroy();
  page = choose(address())();
  shown = location.hash;
  setTitle(page.title);
}

/** Everything anew: after signing in or out, or with another language. */
async function restart() {
  await refreshMe();
  await loadTexts(person()?.language ?? "");
  render();
}

async function start() {
  const app = document.getElementById("app");
  app.replaceChildren(skeleton(3));
  try {
    await loadTexts();
    await restart();
  } catch (error) {
    console.error(error);
    app.replaceChildren(unreachable());
  }
}

/** Without the gate there is no catalogue either, so this one text is in every language at once. */
function unreachable() {
  const lines = [
    ["en", "The gate does not answer. Try again in a moment."],
    ["ja", "ゲートから応答がありません。少し待ってからお試しください。"],
    ["zh", "网关没有回应，请稍后再试。"],
  ];
  const button = h("button", { type: "button", class: "button", onclick: start }, "↻");
  button.setAttribute("aria-label", "Try again");
  return h(
    "div",
    { class: "state", role: "alert" },
    lines.map(([lang, text]) => h("p", { class: "state-text", lang }, text)),
    button,
  );
}

whenSignedOut(async () => {
  const had = person();
  try {
    await refreshMe();
    if (had && !person()) render();
  } catch (error) {
    console.warn(error); // unreachable as well: the banner says so, and the next call asks again
  }
});
addEventListener("hashchange", async () => {
  if (location.hash === shown) return;
  if (shown.startsWith("#/setup")) await refreshMe().catch(console.warn); // the model may be another now
  render();
});
start();
