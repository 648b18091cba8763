// Background work: what runs, waits or is parked and why, with "run now"; and when each schedule comes round next, in its own zone.

import { request } from "./api.js";
import { pill, segmented } from "./controls.js";
import { h, replace } from "./dom.js";
import { t, term, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { section } from "./page.js";
import { keepFresh } from "./refresh.js";
import { emptyState, explain } from "./states.js";
import { toast } from "./toast.js";
import { absolute, ago } from "./when.js";

const STATES = ["", "waiting", "running", "parked", "done", "cancelled"];
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
              data.jobs.map((job) => jobRow(job, () => again())),
            )
          : emptyState("clock", t("jobs.none"), t("jobs.noneText")),
      );
      replace(
        schedule,
        data.schedule.length
          ? h("ul", { class: "rows" }, data.schedule.map(scheduleRow))
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

function jobRow(job, again) {
  const startable = ["waiting", "parked"].includes(job.state);
  const about = [job.scope, job.key].filter(Boolean).join(" · ");
  const why = [job.error_class, resultText(job.result)].filter(Boolean).join(": ");
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
      about && h("p", { class: "hint" }, h("bdi", {}, about)),
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

/** What came of a job: a sentence, or its facts in a row. */
function resultText(result) {
  if (result === null || typeof result !== "object") return String(result ?? "");
  return Object.entries(result)
    .filter(([, value]) => value !== null && value !== "")
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join(", ");
}

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

function scheduleRow({ kind, scope, next_run: next, zone }) {
  return h(
    "li",
    { class: "row" },
    h(
      "div",
      { class: "row-main" },
      h("p", { class: "row-title" }, term("jobKind", kind)),
      scope && h("p", { class: "hint" }, h("bdi", {}, scope)),
    ),
    h("p", { class: "row-side hint" }, ago(next), next && h("span", {}, [absolute(next, zone || undefined), zone.replaceAll("_", " ")].filter(Boolean).join(" · "))),
  );
}
