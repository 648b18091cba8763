// The desk at a glance: one card per part, whose colour says the same as its words.

import { pill } from "./controls.js";
import { h } from "./dom.js";
import { number, span, t, term, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { faultList } from "./operate-config.js";
import { errorList } from "./operate-log.js";
import { section } from "./page.js";
import { keepFresh } from "./refresh.js";
import { emptyState } from "./states.js";
import { ago } from "./when.js";

export function overviewView(place, { signal }) {
  keepFresh(place, { path: "/api/operator/overview", show, signal, everyMs: 10_000 });
}

function show(data) {
  return [
    h(
      "div",
      { class: "glance" },
      gateCard(data),
      channelsCard(data.channels),
      modelCard(data.model),
      jobsCard(data.jobs),
      mailCard(data.inbox, data.outbox),
      configCard(data.config),
    ),
    data.config.faults.length > 0 && section(t("operate.faults"), t("operate.faultsAbout"), faultList(data.config.faults)),
    section(
      t("operate.errors"),
      "",
      data.errors.length ? errorList(data.errors) : emptyState("check", t("operate.noErrors"), t("operate.noErrorsText")),
    ),
  ];
}

function card({ title, iconName, tone, state, href, lines }) {
  return h(
    href ? "a" : "div",
    { class: `glance-card tone-${tone}`, href },
    h("h2", {}, icon(iconName), title),
    h("p", { class: "glance-state" }, pill(state, tone)),
    h(
      "ul",
      {},
      lines.filter(Boolean).map((line) => h("li", {}, line)),
    ),
  );
}

function gateCard({ version, uptime_s: uptime, ready }) {
  return card({
    title: t("glance.gate"),
    iconName: "moon",
    tone: ready ? "good" : "warn",
    state: ready ? t("glance.ready") : t("glance.notReady"),
    lines: [t("glance.up", { time: span(uptime) }), t("glance.version", { version })],
  });
}

function channelsCard(channels) {
  const well = channels.filter((channel) => channel.state === "ready").length;
  const ill = channels
    .filter((channel) => channel.state !== "ready" && channel.state !== "starting")
    .map((channel) => term("channel", channel.channel));
  return card({
    title: t("operate.channels"),
    iconName: "channel",
    href: "#/operate/channels",
    tone: ill.length ? "warn" : "good",
    state: t("glance.channels", { well: number(well), all: number(channels.length) }),
    lines: [ill.length > 0 && t("glance.look", { names: [...new Set(ill)].join(", ") })],
  });
}

function modelCard({ name, provider, ok, reason }) {
  return card({
    title: t("glance.model"),
    iconName: "spark",
    href: "#/setup",
    tone: ok ? "good" : "warn",
    state: ok ? t("glance.modelGood") : t("glance.modelBad"),
    lines: [h("bdi", { lang: "en" }, name), provider, reason],
  });
}

function jobsCard({ waiting, running, parked }) {
  return card({
    title: t("operate.jobs"),
    iconName: "clock",
    href: "#/operate/jobs",
    tone: parked ? "warn" : "good",
    state: parked ? tn("glance.parked", parked) : t("glance.jobsGood"),
    lines: [tn("glance.running", running), tn("glance.waiting", waiting)],
  });
}

function mailCard(inbox, outbox) {
  const bad = inbox.dead + outbox.failed + outbox.unknown;
  return card({
    title: t("glance.messages"),
    iconName: "wave",
    tone: bad ? "warn" : "good",
    state: bad ? tn("glance.mailBad", bad) : t("glance.mailGood"),
    lines: [
      t("glance.inbox", { fresh: number(inbox.new), running: number(inbox.running), dead: number(inbox.dead) }),
      t("glance.outbox", { queued: number(outbox.queued), unknown: number(outbox.unknown), failed: number(outbox.failed) }),
    ],
  });
}

function configCard({ loaded_at: loaded, faults }) {
  return card({
    title: t("operate.config"),
    iconName: "check",
    href: "#/operate/config",
    tone: faults.length ? "warn" : "good",
    state: faults.length ? tn("glance.faults", faults.length) : t("glance.configGood"),
    lines: [h("span", {}, t("config.loaded"), " ", ago(loaded))],
  });
}
