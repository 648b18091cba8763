// Logging an account in by a code that a phone scans: each step as it comes, in one dialog (WO-30). Closing the dialog gives up.

import { request } from "./api.js";
import { openDialog } from "./dialog.js";
import { h, replace, svg } from "./dom.js";
import { t, term } from "./i18n.js";
import { explain } from "./states.js";
import { toast } from "./toast.js";

const ASK_MS = 1_000;
const ENDED = new Set(["done", "failed"]);

export async function logIn(channel, reload) {
  const path = `/api/operator/logins/${encodeURIComponent(channel.channel)}/${encodeURIComponent(channel.account)}`;
  const place = h("div", { class: "login", "aria-live": "polite" });
  let shown = "";
  let open = true;
  let ended = false;

  const show = (view) => {
    const key = JSON.stringify(view);
    if (key === shown) return;
    shown = key;
    ended = ENDED.has(view.state);
    if (ended) reload(); // the account behind the dialog has started anew
    replace(place, h("p", { class: "dialog-text" }, view.text || t("login.starting")), picture(view), number(view, path), mine(view, path));
  };

  const follow = async () => {
    try {
      show(await request("POST", path, {}));
      while (open && !ended) {
        await new Promise((resolve) => setTimeout(resolve, ASK_MS));
        if (open) show(await request("GET", path));
      }
    } catch (error) {
      if (open) replace(place, h("p", { class: "problem", role: "alert" }, explain(error)));
    }
  };

  const closed = openDialog({ title: t("login.title", { channel: term("channel", channel.channel) }), content: [place], cancel: t("action.close") });
  follow();
  await closed;
  open = false;
  if (!ended) await request("DELETE", path).catch(() => {}); // nothing ran
  reload();
}

function picture({ picture: drawn, link }) {
  if (!drawn) return null;
  const code = svg(
    "svg",
    { viewBox: `0 0 ${drawn.size} ${drawn.size}`, class: "login-code", role: "img", "aria-label": t("login.code"), "shape-rendering": "crispEdges" },
    svg("rect", { width: drawn.size, height: drawn.size, class: "login-paper" }),
    svg("path", { d: drawn.path, class: "login-ink" }),
  );
  return [code, h("p", { class: "hint login-link" }, h("code", {}, link))];
}

function number(view, path) {
  if (view.state !== "number") return null;
  const input = h("input", { class: "input", inputmode: "numeric", maxlength: 16, autocomplete: "off", "aria-label": t("login.number") });
  const send = async () => {
    if (!input.value.trim()) return;
    try {
      await request("POST", `${path}/number`, { number: input.value });
      input.value = "";
    } catch (error) {
      toast(explain(error), { tone: "warn" });
    }
  };
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    send();
  });
  return h("div", { class: "row-line" }, input, h("button", { type: "button", class: "button primary", onclick: send }, t("login.send")));
}

function mine(view, path) {
  if (!view.mine) return null;
  const button = h("button", { type: "button", class: "button" }, t("login.mine"));
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await request("POST", `${path}/mine`, {});
      button.replaceWith(h("p", { class: "hint" }, t("login.mineDone")));
    } catch (error) {
      button.disabled = false;
      toast(explain(error), { tone: "warn" });
    }
  });
  return [h("p", { class: "hint" }, t("login.mineText")), button];
}
