// Where vectors of texts come from: how far each kind has got, the yes to a change that costs money, and the lines for another source (RS-25, RS-29).

import { request } from "./api.js";
import { copyButton, field, pill, select } from "./controls.js";
import { confirmDialog } from "./dialog.js";
import { h, replace } from "./dom.js";
import { number, t } from "./i18n.js";
import { section } from "./page.js";
import { keepFresh } from "./refresh.js";
import { isOwner } from "./session.js";
import { explain } from "./states.js";
import { toast } from "./toast.js";

const PATH = "/api/operator/embeddings";
const GOOGLE = "https://generativelanguage.googleapis.com/v1beta/openai";
const TONES = { ok: "good", building: "calm", waits: "warn", failed: "warn", off: "calm" };
const SOURCES = {
  builtin: { label: "embeddings.builtin", provider: "builtin" },
  better: { label: "embeddings.builtinBetter", provider: "builtin", model: "e5" },
  openai: { label: "embeddings.openai", provider: "openai" },
  google: { label: "embeddings.google", provider: "openai", address: GOOGLE },
  none: { label: "embeddings.none", provider: "none" },
};

export function embeddingsPart(place, { signal }) {
  const [state, choice] = [h("div", { class: "view-part" }), h("div", { class: "view-part" })];
  replace(place, state, choice);
  const reload = keepFresh(state, { path: PATH, show: (view) => show(view, () => reload()), signal });
  if (isOwner()) replace(choice, chooseSection());
}

function show(view, reload) {
  return section(
    t("embeddings.title"),
    view.source === "none" ? t("embeddings.textOff") : t("embeddings.text", { model: view.model }),
    view.restart && h("p", { class: "hint" }, t("embeddings.restart")),
    view.english_only && h("p", { class: "outcome tone-warn" }, t("embeddings.english")),
    view.source !== "none" && h("ul", { class: "rows" }, view.kinds.map(kindRow)),
    view.waits_for && waiting(view, reload),
  );
}

function kindRow({ kind, state, embedded, texts, former, reason }) {
  return h(
    "li",
    { class: "row" },
    h(
      "div",
      { class: "row-main" },
      h("p", { class: "row-title" }, t(`embeddings.${kind}`)),
      h("p", { class: "hint" }, t("embeddings.progress", { done: number(embedded), texts: number(texts) })),
      former && h("p", { class: "hint" }, t("embeddings.former", { model: former })),
      reason && h("p", { class: "hint", lang: "en" }, reason),
    ),
    pill(t(`embeddings.state.${state}`), TONES[state]),
  );
}

function waiting({ waits_for: name, estimate }, reload) {
  const cost = { texts: number(estimate.texts), tokens: number(estimate.tokens) };
  const confirm = async () => {
    const done = await confirmDialog({
      title: t("embeddings.confirm"),
      body: t("embeddings.waits", cost),
      action: t("embeddings.confirm"),
      submit: () => request("POST", `${PATH}/confirm`, { waits_for: name }),
    });
    if (!done) return;
    toast(t("embeddings.confirmed"));
    reload();
  };
  return [
    h("p", { class: "outcome tone-warn" }, t("embeddings.waits", cost)),
    h("div", { class: "row-end" }, h("button", { type: "button", class: "button primary", onclick: confirm }, t("embeddings.confirm"))),
  ];
}

/** A source and what it needs; the answer is what to write down, for the configuration is never written here. */
function chooseSection() {
  const lines = h("div", { "aria-live": "polite" });
  const input = (props) => h("input", { class: "input", autocomplete: "off", spellcheck: "false", lang: "en", ...props });
  const address = input({ type: "url", inputmode: "url", placeholder: "https://api.example.com/v1" });
  const [key, model] = [input({ type: "password" }), input({})];
  const kind = select(
    Object.entries(SOURCES).map(([value, { label }]) => [value, t(label)]),
    "builtin",
    { onchange: follow },
  );
  const endpoint = h(
    "div",
    { hidden: true },
    field({ label: t("embeddings.address"), control: address }),
    field({ label: t("embeddings.key"), control: key }),
    field({ label: t("embeddings.model"), control: model }),
  );

  function follow() {
    const chosen = SOURCES[kind.value];
    endpoint.hidden = chosen.provider !== "openai";
    address.required = model.required = !endpoint.hidden;
    button.textContent = t(endpoint.hidden ? "embeddings.lines" : "embeddings.write"); // only an endpoint has a key
    address.value = chosen.address ?? "";
  }

  async function write(event) {
    event.preventDefault();
    const { provider, model: fixed = "" } = SOURCES[kind.value];
    const asked = provider === "openai" && { base_url: address.value.trim(), api_key: key.value.trim(), model: model.value.trim() };
    try {
      const answer = await request("POST", `${PATH}/write`, { provider, model: fixed, ...asked });
      replace(lines, codeBlock(answer.lines.join("\n")));
    } catch (error) {
      toast(explain(error), { tone: "warn" });
    }
  }

  const button = h("button", { type: "submit", class: "button" });
  const form = h(
    "form",
    { class: "form", onsubmit: write },
    field({ label: t("embeddings.kind"), control: kind }),
    endpoint,
    h("div", { class: "row-end" }, button),
  );
  follow();
  return section(t("embeddings.choose"), t("embeddings.chooseText"), form, lines);
}

function codeBlock(text) {
  return h(
    "div",
    { class: "code-block" },
    h("div", { class: "code-head" }, h("span", { class: "code-lang" }, "config.json"), copyButton(text)),
    h("pre", { tabindex: 0, role: "group", "aria-label": "config.json" }, h("code", {}, text)),
  );
}
