// Dreams as a diary: the date, the story, then what was added, changed and let go. What waits for a yes stands above; undo names its count.

import { field, pill } from "./controls.js";
import { confirmDialog, openDialog } from "./dialog.js";
import { h, replace, serverHtml } from "./dom.js";
import { number, t, term, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { guessLang, markLang } from "./lang.js";
import { proposalCards, refusalText } from "./memory-proposals.js";
import { emptyState, explain, fillWhenLoaded } from "./states.js";
import { toast } from "./toast.js";
import { ago, day as dayText } from "./when.js";

const TONES = { refused: "warn", failed: "warn", applying: "good" };
const RUNNING_MS = 4_000; // how often it is asked whether a dream has ended
const QUIET_STATES = new Set(["done"]);

export function dreamsTab(place, { api, signal }) {
  const bar = h("div", { class: "dream-bar" });
  const waiting = h("div", { class: "proposals" });
  const diary = h("div", { class: "dreams" });
  const rest = h("div", { class: "row-end" });
  replace(place, bar, waiting, diary, rest);
  let timer = 0;
  let shownSince = null;

  const load = () =>
    fillWhenLoaded(diary, {
      signal,
      lines: 8,
      load: () => api.get("dreams"),
      show: (data) => {
        showBar(data);
        replace(waiting, proposalCards(data.proposals, { api, reload: load }));
        showMore(data);
        watch(data.running_since);
        return data.dreams.length ? data.dreams.map(dreamView) : emptyState("moon", t("dreams.none"), t(data.at_night ? "dreams.noneText" : "dreams.notAtNight"));
      },
    });

  function showBar({ running_since: since, last, undo, at_night: atNight }) {
    replace(
      bar,
      !atNight && h("p", { class: "hint" }, t("dreams.notAtNight")),
      h("p", { class: "hint", role: "status" }, since ? [t("dreams.running"), " ", ago(since)] : last && [lastText(last), " · ", ago(last.at)]),
      undo &&
        h(
          "button",
          { type: "button", class: "button", onclick: () => askUndo(undo, api, load) },
          icon("undo"),
          t("dreams.undo"),
        ),
      h(
        "button",
        { type: "button", class: "button primary", disabled: Boolean(since), onclick: () => askDream(api, load) },
        icon("moon"),
        t("dreams.now"),
      ),
    );
  }

  function showMore({ dreams, more }) {
    replace(
      rest,
      more &&
        h(
          "button",
          { type: "button", class: "button", onclick: (event) => older(event.currentTarget, dreams.at(-1).id) },
          t("dreams.older"),
        ),
    );
  }

  async function older(button, before) {
    button.disabled = true;
    try {
      const data = await api.get("dreams", { before });
      diary.append(...data.dreams.map(dreamView));
      showMore(data);
    } catch (error) {
      button.disabled = false;
      if (!signal.aborted) toast(explain(error), { tone: "warn" });
    }
  }

  /** While a dream runs, asks now and then whether it has ended; the page is shown anew only then. */
  function watch(since) {
    clearTimeout(timer);
    shownSince = since;
    if (!since || signal.aborted) return;
    timer = setTimeout(async () => {
      try {
        const { running_since: now } = await api.get("dreams", { limit: 1 });
        if (now === shownSince) watch(now);
        else load();
      } catch {
        if (!signal.aborted) watch(since); // unreachable: the banner says so
      }
    }, RUNNING_MS);
  }

  load();
  return { destroy: () => clearTimeout(timer) };
}

/** How the newest run went, where the list alone does not say it. */
function lastText({ state, skipped }) {
  return skipped ? term("dreamSkipped", skipped) : t(`dreamLast.${state}`);
}

// --- one dream ---

function dreamView(dream) {
  return h(
    "article",
    { class: `dream is-${dream.state}` },
    h(
      "header",
      { class: "dream-head" },
      h("h2", {}, dayText(dream.date, { dateStyle: "full" })),
      !QUIET_STATES.has(dream.state) && pill(term("dreamState", dream.state), TONES[dream.state] ?? "calm"),
      h("p", { class: "hint" }, term("dreamTrigger", dream.trigger), " · ", ago(dream.created_at)),
    ),
    dream.refusal && h("p", { class: "dream-reason" }, refusalText(dream.refusal)),
    dream.story && markLang(serverHtml(h("div", { class: "prose dream-story" }), dream.story)),
    dream.state === "refused" && dream.changes.length > 0
      ? h("details", {}, h("summary", {}, t("dreams.wanted")), changesView(dream.changes))
      : changesView(dream.changes),
  );
}

const GROUPS = [
  ["added", ["added"]],
  ["changed", ["changed", "merged"]],
  ["dropped", ["dropped"]],
  ["left", ["candidate", "left_out"]],
];

/** Added, changed, let go: a quiet difference in three parts; then what was looked at and not taken. */
function changesView(changes) {
  const groups = GROUPS.map(([name, kinds]) => [name, changes.filter(({ kind }) => kinds.includes(kind))]).filter(
    ([, rows]) => rows.length,
  );
  if (!groups.length) return null;
  return h(
    "div",
    { class: "dream-changes" },
    groups.map(([name, rows]) =>
      h(
        "section",
        {},
        h("h3", {}, t(`dreams.${name}`), h("span", { class: "num dim" }, number(rows.length))),
        h("ul", {}, rows.map(changeView)),
      ),
    ),
  );
}

function changeView({ kind, before, after, reason }) {
  const tag = kind === "candidate" || kind === "left_out" ? "span" : "ins";
  const why = kind === "candidate" ? t("dreams.yours") : reason && term("dropReason", reason);
  return h(
    "li",
    { class: `change is-${kind}` },
    before.map((text) => h("del", { lang: guessLang(text) }, text)),
    after && h(tag, { lang: guessLang(after) }, after),
    why && h("span", { class: "hint" }, why),
  );
}

// --- what one can do ---

async function askDream(api, reload) {
  const days = h("input", { class: "input", type: "number", min: 1, max: 30, value: 3, required: true, autofocus: true });
  const force = h("input", { type: "checkbox" });
  const started = await openDialog({
    title: t("dreams.now"),
    content: [
      h("p", { class: "dialog-text" }, t("dreams.nowText")),
      field({ label: t("dreams.days"), control: days, hint: t("dreams.daysHint") }),
      h("label", { class: "check-line" }, force, h("span", {}, t("dreams.force"))),
    ],
    action: t("dreams.start"),
    submit: () => api.send("POST", "dreams", { days: Number(days.value) || 3, force: force.checked }),
  });
  if (!started) return;
  if (started.running_since) toast(t("dreams.runsAlready"));
  else toast(tn(started.clamped ? "dreams.startedClamped" : "dreams.started", started.days));
  reload();
}

async function askUndo(undo, api, reload) {
  const done = await confirmDialog({
    title: tn("dreams.undoTitle", undo.lines, { path: undo.path }),
    body: t(`dreams.undoText.${undo.cause === "tool" ? "tool" : "dream"}`, { path: undo.path }),
    action: t("dreams.undoAction"),
    submit: () => api.send("POST", "dreams/undo", {}),
  });
  if (!done) return;
  reload();
  await openDialog({ title: t("dreams.undone"), content: [reversal(done)], cancel: t("action.done") });
}

/** What undoing did, line by line. */
function reversal({ whole, removed, restored, forgotten }) {
  const parts = [
    ["undoneRemoved", removed, "del"],
    ["undoneRestored", restored, "ins"],
  ].filter(([, lines]) => lines.length);
  if (!parts.length) return h("p", { class: "dialog-text" }, t("dreams.undoneNothing"));
  return h(
    "div",
    { class: "dream-changes" },
    parts.map(([name, lines, tag]) =>
      h(
        "section",
        {},
        h("h3", {}, t(`dreams.${name}`)),
        h("ul", {}, lines.map((text) => h("li", { class: "change" }, h(tag, { lang: guessLang(text) }, text)))),
      ),
    ),
    !whole && h("p", { class: "hint" }, t("dreams.undoneApart")),
    forgotten > 0 && h("p", { class: "hint" }, tn("dreams.undoneForgotten", forgotten)),
  );
}
