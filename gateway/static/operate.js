// The operators' desk: one frame, one view at a time. A view is a function `(place, context)` that fills `place` and may return actions for the head.

import { channelsView } from "./operate-channels.js";
import { configView } from "./operate-config.js";
import { jobsView } from "./operate-jobs.js";
import { logView } from "./operate-log.js";
import { overviewView } from "./operate-overview.js";
import { peopleView } from "./operate-people.js";
import { usageView } from "./operate-usage.js";
import { h } from "./dom.js";
import { t } from "./i18n.js";
import { plainPage } from "./page.js";

const VIEWS = {
  overview: overviewView,
  channels: channelsView,
  people: peopleView,
  jobs: jobsView,
  usage: usageView,
  log: logView,
  config: configView,
};

export function operatePage(wanted) {
  const name = wanted in VIEWS ? wanted : "overview";
  const end = new AbortController();
  const place = h("div", { class: "cards" });
  const title = t(`operate.${name}`);
  const find = () => place.querySelector("input[type=search]")?.focus();
  const actions = h("div", { class: "plain-actions" });
  plainPage({
    title,
    lead: t(`operate.lead.${name}`),
    current: `operate/${name}`,
    actions,
    body: place,
    wide: true,
    onFind: name === "people" ? find : undefined,
  });
  VIEWS[name](place, { signal: end.signal, actions });
  return { title, destroy: () => end.abort() };
}
