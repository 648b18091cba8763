// What waits for a person's yes: refused dreams, lines that rest on other people's words, changes a tool wanted (WD-68, WD-81, WD-105).

import { diffLines } from "./difflines.js";
import { h } from "./dom.js";
import { number, t, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { confirmDialog } from "./dialog.js";
import { explain } from "./states.js";
import { toast } from "./toast.js";
import { ago, day as dayText } from "./when.js";

const MANY = 6; // lines of a difference that are shown unasked

/** A heading and a card for each; nothing when nothing waits. `reload` shows the tab anew. */
export function proposalCards(proposals, { api, reload }) {
  if (!proposals.length) return null;
  return [
    h("h2", { class: "proposals-title" }, tn("proposals.waiting", proposals.length)),
    h(
      "ul",
      { class: "proposal-list" },
      proposals.map((each) => card(each, api, reload)),
    ),
  ];
}

function card(proposal, api, reload) {
  const { kind, path, refusal, origin, difference, created_at: at, expires_at: until } = proposal;
  const changed = difference.filter((line) => line.kind !== "same").length;
  const lines = diffLines(difference, t("proposals.difference"));
  return h(
    "li",
    { class: "card proposal" },
    h(
      "div",
      { class: "proposal-head" },
      h("h3", {}, icon(kind === "dream" ? "warn" : "spark"), t(`proposals.kind.${kind}`)),
      h("p", { class: "hint" }, h("bdi", { lang: "en" }, path), " · ", ago(at), " · ", t("proposals.until", { day: dayText(until) })),
    ),
    refusal && h("p", { class: "hint" }, refusalText(refusal)),
    origin && h("p", { class: "hint" }, t(`originHint.${origin}`)),
    changed > MANY ? h("details", {}, h("summary", {}, tn("proposals.lines", changed)), lines) : lines,
    h(
      "div",
      { class: "row-end" },
      h(
        "button",
        { type: "button", class: "button small", onclick: (event) => decide(event.currentTarget, "discard", proposal, api, reload) },
        t("proposals.discard"),
      ),
      h(
        "button",
        { type: "button", class: "button small primary", onclick: (event) => accept(event.currentTarget, proposal, changed, api, reload) },
        icon("check"),
        t("proposals.apply"),
      ),
    ),
  );
}

/** Why a dream was not written. */
export function refusalText({ kind, lost, total, limit }) {
  return t(`refusal.${kind}`, { lost: number(lost), total: number(total), limit: number(limit) });
}

/** A refused dream takes many lines at once, so it asks once more and names the count; a single line does not. */
async function accept(button, proposal, changed, api, reload) {
  if (proposal.kind !== "dream") {
    await decide(button, "apply", proposal, api, reload);
    return;
  }
  const done = await confirmDialog({
    title: tn("proposals.applyTitle", changed, { path: proposal.path }),
    body: t("proposals.applyText"),
    action: t("proposals.apply"),
    submit: () => api.send("POST", `proposals/${encodeURIComponent(proposal.id)}/apply`, {}),
  });
  if (!done) return;
  toast(t("proposals.applied"));
  reload();
}

async function decide(button, what, proposal, api, reload) {
  button.disabled = true;
  try {
    await api.send("POST", `proposals/${encodeURIComponent(proposal.id)}/${what}`, {});
    toast(t(what === "apply" ? "proposals.applied" : "proposals.discarded"));
    reload();
  } catch (error) {
    button.disabled = false;
    toast(explain(error), { tone: "warn" });
  }
}
