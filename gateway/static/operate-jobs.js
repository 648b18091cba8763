// Background work: what runs, waits or is parked and why, with "run now"; and when each schedule comes round next, in its own zone.

import { request } from "./api.js";
import { pill, segmented } from "./controls.js";
import { h, replace } from "./dom.js";
import { number, t, term, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { section } from "./page.js";
import { keepFresh } from "./refresh.js";
import { emptyState, explain } from "./states.js";
import { toast } from "./toast.js";
import { absolute, ago, day } from "./when.js";

const STATES = ["", "waiting", "running", "parked", "done", "cancelled"];
const QUIET = ["file", "told"];
const TONES = { running: "good", parked: "warn" };

export function jobsView(place, { signal }) {
  let state = "";
  const jobs = h("div", {});
  const schedule = h("div", {});
  const answer = h("div", { hidden: true });
  const again = keepFresh(answer, {
    path: () => `/api/operator/jobs${state ? `?state=${state}` : ""}`,
    signal,
    show: (data) => {
      replace(
        jobs,
        data.jobs.length
          ? h(
              "ul",
              { class: "rows" },
              data.jobs.map((job) => jobRow(job, data.names, () => again())),
            )
          : emptyState("clock", t("jobs.none"), t("jobs.noneText")),
      );
      replace(
        schedule,
        data.schedule.length
          ? h("ul", { class: "rows" }, data.schedule.map((run) => scheduleRow(run, data.names)))
          : emptyState("clock", t("jobs.noSchedule"), t("jobs.noScheduleText")),
      );
      return [];
    },
  });
  const filter = segmented({
    legend: t("jobs.filter"),
    options: STATES.map((each) => [each, each ? term("jobState", each) : t("jobs.all")]),
    value: "",
    onchange: (chosen) => {
      state = chosen;
      again();
    },
  });
  place.append(section("", "", filter, answer, jobs), section(t("jobs.schedule"), t("jobs.scheduleAbout"), schedule));
  answer.hidden = false;
}

function jobRow(job, names, again) {
  const startable = ["waiting", "parked"].includes(job.state);
  const about = [names[job.scope] ?? job.scope, dateOf(job.key)].filter(Boolean).join(" · ");
  const why = [job.error, resultText(job)].filter(Boolean).join(": ");
  return h(
    "li",
    { class: "row is-top" },
    h(
      "div",
      { class: "row-main" },
      h(
        "p",
        { class: "row-line" },
        h("span", { class: "row-title" }, term("jobKind", job.kind)),
        pill(term("jobState", job.state), TONES[job.state] ?? "calm"),
      ),
      about && h("p", { class: "hint", title: [job.scope, job.key].filter(Boolean).join(" · ") }, h("bdi", {}, about)),
      why && h("p", { class: "hint" }, why),
      h(
        "p",
        { class: "hint" },
        ago(job.updated_at),
        job.attempts > 0 && [" · ", tn("jobs.attempts", job.attempts)],
        job.state === "waiting" && job.not_before && [" · ", t("jobs.notBefore"), " ", ago(job.not_before)],
      ),
    ),
    startable &&
      h(
        "button",
        { type: "button", class: "button small", onclick: (event) => runNow(event.currentTarget, job, again) },
        icon("play"),
        t("jobs.run"),
      ),
  );
}

/** The local date at the end of a key, as people write it. */
function dateOf(key) {
  const found = /(?:^|:)(\d{4}-\d\d-\d\d)$/.exec(key);
  return found ? day(found[1], { dateStyle: "medium" }) : "";
}

/** What came of a job: why nothing was to be done, or its facts in a row. Keys of files and of commands say nothing to people. */
function resultText({ kind, state, result }) {
  if (result === null || typeof result !== "object") return String(result ?? "");
  if (result.skipped) return term("jobSkipped", result.skipped.replace(/[^A-Za-z]+/g, "_"));
  const found = facts(result).join(", ");
  if (!found) return state === "done" ? t("jobs.nothing") : "";
  return kind === "housekeeping" ? t("jobs.cleared", { what: found }) : found;
}

function facts(result) {
  return Object.entries(result).flatMap(([name, value]) => {
    if (!value || (Array.isArray(value) && !value.length) || QUIET.includes(name)) return [];
    if (typeof value === "object" && !Array.isArray(value)) return facts(value);
    return [[term("jobResult", name), value === true ? "" : factText(value)].filter(Boolean).join(" ")];
  });
}

const factText = (value) => (Array.isArray(value) ? value.map(factText).join(", ") : typeof value === "number" ? number(value) : String(value));

async function runNow(button, job, again) {
  button.disabled = true;
  try {
    await request("POST", `/api/operator/jobs/${encodeURIComponent(job.id)}/run`, {});
    toast(t("jobs.started", { kind: term("jobKind", job.kind) }));
    await again();
  } catch (error) {
    button.disabled = false;
    toast(explain(error), { tone: "warn" });
  }
}

function scheduleRow({ kind, scope, next_run: next, zone }, names) {
  return h(
    "li",
    { class: "row" },
    h(
      "div",
      { class: "row-main" },
      h("p", { class: "row-title" }, term("jobKind", kind)),
      scope && h("p", { class: "hint", title: scope }, h("bdi", {}, names[scope] ?? scope)),
    ),
    h("p", { class: "row-side hint" }, ago(next), next && h("span", {}, [absolute(next, zone || undefined), zone.replaceAll("_", " ")].filter(Boolean).join(" · "))),
  );
}
