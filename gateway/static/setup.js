// Setting a real model, one question at a time: where it answers, whether it does, and what to write down (WO-3).

import { request } from "./api.js";
import { copyButton, field, pill } from "./controls.js";
import { h, replace } from "./dom.js";
import { t, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { guessLang } from "./lang.js";
import { withModel } from "./modelline.js";
import { plainPage } from "./page.js";
import { isOwner } from "./session.js";
import { emptyState, explain, fillWhenLoaded } from "./states.js";
import { toast } from "./toast.js";

const SECRET_NAME = "YUMEGATE_MODEL_KEY";
const TEST_TIMEOUT_MS = 75_000; // the server gives a slow model a minute
const WAYS = [
  ["endpoint", "link"],
  ["local", "screen"],
  ["demo", "spark"],
];

export function setupPage() {
  const end = new AbortController();
  const place = h("div", { class: "setup-step" });
  const open = (way) =>
    replace(
      place,
      {
        endpoint: () => endpointStep({}),
        local: () => localStep(end.signal, (found) => replace(place, endpointStep(found))),
        demo: demoStep,
      }[way](),
    );
  const body = h(
    "div",
    { class: "cards setup" },
    nowCard(),
    h("section", { class: "card" }, h("header", { class: "card-head" }, h("h2", {}, t("setup.question"))), wayChoice(open)),
    place,
  );
  plainPage({ title: t("nav.setup"), lead: t("setup.lead"), current: "setup", body });
  return { title: t("nav.setup"), destroy: () => end.abort() };
}

/** Says by itself when the lines that were put into the file have taken effect. */
function nowCard() {
  return withModel((model) => {
    const words = !model ? t("model.none") : model.demo ? t("setup.nowDemo") : t("setup.nowReal");
    return h(
      "section",
      { class: "card now-card" },
      icon(model && !model.demo ? "check" : "spark"),
      h("div", {}, h("p", { class: "row-title" }, h("bdi", { lang: "en" }, model?.name ?? "–")), h("p", { class: "hint" }, words)),
    );
  });
}

function wayChoice(open) {
  return h(
    "fieldset",
    { class: "ways" },
    h("legend", { class: "sr-only" }, t("setup.question")),
    WAYS.map(([way, iconName]) =>
      h(
        "label",
        { class: "way" },
        h("input", { type: "radio", name: "way", value: way, onchange: () => open(way) }),
        icon(iconName),
        h(
          "span",
          { class: "way-text" },
          h("span", { class: "way-title" }, t(`setup.way.${way}`)),
          h("span", { class: "hint" }, t(`setup.wayAbout.${way}`)),
        ),
      ),
    ),
  );
}

function demoStep() {
  return h(
    "section",
    { class: "card" },
    h("header", { class: "card-head" }, h("h2", {}, t("setup.demoTitle")), h("p", { class: "hint" }, t("setup.demoText"))),
    linesBlock(`"model": ${JSON.stringify({ provider: "demo" }, null, 2)}`),
  );
}

function localStep(signal, choose) {
  const place = h("div", {});
  fillWhenLoaded(place, {
    signal,
    lines: 3,
    load: () => request("GET", "/api/operator/model/local", undefined, { signal }),
    show: ({ servers }) =>
      servers.length
        ? servers.map((server) => localServer(server, choose))
        : emptyState("search", t("setup.localNone"), t("setup.localNoneText")),
  });
  return h("section", { class: "card" }, h("header", { class: "card-head" }, h("h2", {}, t("setup.localTitle"))), place);
}

function localServer({ base_url: address, models }, choose) {
  return h(
    "div",
    { class: "local-server" },
    h("p", { class: "row-title" }, h("code", {}, address)),
    h("p", { class: "hint" }, tn("setup.localModels", models.length)),
    h(
      "ul",
      { class: "model-choices" },
      models.map((name) =>
        h("li", {}, h("button", { type: "button", class: "button small", lang: "en", onclick: () => choose({ address, name }) }, name)),
      ),
    ),
  );
}

/** Address, key and model; a test; and once it has worked, the lines to write down. */
function endpointStep({ address = "", name = "" }) {
  const inputs = {
    base_url: h("input", {
      class: "input",
      type: "url",
      required: true,
      placeholder: "https://api.example.com/v1",
      value: address,
      inputmode: "url",
      autocomplete: "off",
      spellcheck: "false",
      lang: "en",
    }),
    api_key: h("input", { class: "input", type: "password", autocomplete: "off", spellcheck: "false", lang: "en" }),
    name: h("input", { class: "input", required: true, value: name, autocomplete: "off", spellcheck: "false", lang: "en" }),
  };
  const outcome = h("div", { class: "test-outcome", "aria-live": "polite" });
  const lines = h("div", {});
  const values = () => ({ base_url: inputs.base_url.value.trim(), api_key: inputs.api_key.value.trim(), name: inputs.name.value.trim() });
  const button = h("button", { type: "submit", class: "button primary" }, icon("play"), t("setup.test"));

  async function test(event) {
    event.preventDefault();
    const tested = values();
    button.disabled = true;
    later();
    replace(outcome, pill(t("setup.testing"), "calm"));
    try {
      const found = await request("POST", "/api/operator/model/test", tested, { timeoutMs: TEST_TIMEOUT_MS });
      replace(outcome, testOutcome(found));
      if (found.ok && same(tested, values())) replace(lines, linesCard(tested));
    } catch (error) {
      replace(outcome, testOutcome({ ok: false, advice: refused(error) }));
    } finally {
      button.disabled = false;
    }
  }

  const later = () => replace(lines, h("p", { class: "hint" }, t("setup.linesLater")));
  const form = h(
    "form",
    { class: "form card", onsubmit: test, oninput: later },
    h("header", { class: "card-head" }, h("h2", {}, t("setup.endpointTitle"))),
    field({ label: t("setup.address"), control: inputs.base_url, hint: t("setup.addressHint") }),
    field({ label: t("setup.key"), control: inputs.api_key, hint: t("setup.keyHint") }),
    field({ label: t("setup.model"), control: inputs.name, hint: t("setup.modelHint") }),
    h("div", { class: "row-end" }, button),
    outcome,
  );
  later();
  return [form, lines];
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** What the gateway itself does not take, in the words of the form. */
function refused(error) {
  const field = { base_url: "setup.badAddress", api_key: "setup.badKey", name: "setup.badName" }[error.param];
  return field ? t(field) : explain(error);
}

/** `advice`: in plain words; `error`: what was said, word for word. */
function testOutcome({ ok, answer, error, advice }) {
  return h(
    "div",
    { class: ok ? "outcome" : "outcome tone-warn" },
    pill(ok ? t("setup.testGood") : t("setup.testBad"), ok ? "good" : "warn"),
    advice && h("p", {}, advice),
    (ok ? answer : error) && h("blockquote", { lang: ok ? guessLang(answer) : "en" }, ok ? answer : error),
  );
}

function configLines({ base_url, api_key, name }) {
  const model = { provider: "openai", base_url, name, ...(api_key && { api_key: `\${${SECRET_NAME}}` }) };
  return `"model": ${JSON.stringify(model, null, 2)}`;
}

function linesCard(values) {
  const shown = h("div", {}, linesBlock(configLines(values)));
  const after = h("div", {});
  return h(
    "section",
    { class: "card" },
    h("header", { class: "card-head" }, h("h2", {}, t("setup.linesTitle")), h("p", { class: "hint" }, t("setup.linesText"))),
    shown,
    values.api_key && h("p", { class: "hint" }, t("setup.secretText", { name: SECRET_NAME })),
    values.api_key && isOwner() && h("div", { class: "row-end" }, writeButton(values, shown, after)),
    after,
  );
}

function writeButton(values, shown, after) {
  const button = h("button", { type: "button", class: "button", onclick: write }, icon("key"), t("setup.write"));
  async function write() {
    button.disabled = true;
    try {
      const answer = await request("POST", "/api/operator/model/write", values);
      replace(shown, linesBlock([answer.lines].flat().join("\n")));
      replace(
        after,
        h(
          "p",
          { class: "outcome" },
          pill(t("setup.written"), "good"),
          h("span", {}, t("setup.writtenText", { name: answer.secret_name, path: answer.path })),
        ),
      );
    } catch (error) {
      button.disabled = false;
      toast(explain(error), { tone: "warn" });
    }
  }
  return button;
}

function linesBlock(lines) {
  return h(
    "div",
    { class: "code-block" },
    h("div", { class: "code-head" }, h("span", { class: "code-lang" }, "config.json"), copyButton(lines, t("action.copy"))),
    h("pre", { tabindex: 0, role: "group", "aria-label": "config.json" }, h("code", {}, lines)),
  );
}
