// Channels: what each account last proved, what waits, and what went wrong (WO-30).

import { pill } from "./controls.js";
import { h } from "./dom.js";
import { number, span, t, term } from "./i18n.js";
import { deliveryLink } from "./operate-log.js";
import { logIn } from "./operate-login.js";
import { keepFresh } from "./refresh.js";
import { emptyState } from "./states.js";
import { ago } from "./when.js";

const REFRESH_MS = 10_000;
const REFRESH_STARTING_MS = 1_500; // whoever has just logged an account in looks at it

const TONES = { ready: "good", starting: "calm", stopped: "calm", degraded: "warn", auth_required: "warn" };

export function channelsView(place, { signal }) {
  const reload = keepFresh(place, {
    path: "/api/operator/overview",
    show: ({ channels }) =>
      channels.length ? channels.map((channel) => channelCard(channel, () => reload())) : emptyState("channel", t("channels.none"), t("channels.noneText")),
    signal,
    everyMs: (overview) => (overview?.channels.some(({ state }) => state === "starting") ? REFRESH_STARTING_MS : REFRESH_MS),
  });
}

function channelCard(channel, reload) {
  return h(
    "section",
    { class: "card channel" },
    h(
      "header",
      { class: "channel-head" },
      h("h2", {}, term("channel", channel.channel)),
      channel.account && h("bdi", { class: "dim" }, channel.account),
      pill(term("channelState", channel.state), TONES[channel.state] ?? "warn"),
      channel.login && h("button", { type: "button", class: "button", onclick: () => logIn(channel, reload) }, t("channels.logIn")),
    ),
    channel.reason && h("p", { class: "channel-reason" }, channel.reason),
    channel.login && channel.state === "starting" && h("p", { class: "channel-reason" }, t("channels.loggedIn")),
    h(
      "dl",
      { class: "facts is-wide" },
      fact(t("channels.proven"), ago(channel.proven_at)),
      fact(t("channels.lastIn"), ago(channel.last_in)),
      fact(t("channels.lastOut"), ago(channel.last_out)),
      fact(t("channels.backlog"), number(channel.backlog ?? 0)),
      channel.oldest_waiting_s > 0 && fact(t("channels.oldest"), span(channel.oldest_waiting_s)),
      channel.gate_until && fact(t("channels.gate"), ago(channel.gate_until)),
    ),
    channel.last_error !== channel.reason && lastError(channel.last_error, channel.last_error_delivery),
  );
}

function fact(label, value) {
  return h("div", { class: "fact" }, h("dt", {}, label), h("dd", {}, value));
}

/** The last error, with the delivery that it was about, if any (CH-213). */
function lastError(message, id) {
  if (!message) return null;
  return h(
    "p",
    { class: "channel-error" },
    h("span", { class: "dim" }, t("channels.lastError"), " "),
    message,
    id && [" · ", deliveryLink(id)],
  );
}
