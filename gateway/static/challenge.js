// Challenges: the list that one is chosen from, and the bar above the composer that says how the attempt stands.

import { request } from "./api.js";
import { pill } from "./controls.js";
import { confirmDialog } from "./dialog.js";
import { h, replace } from "./dom.js";
import { lang, number, t, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { guessLang } from "./lang.js";
import { emptyState, errorState, explain, skeleton } from "./states.js";
import { toast } from "./toast.js";

const TONES = { open: "calm", judging: "calm", won: "good", lost: "warn", given_up: "calm" };

const open = (id) => {
  location.hash = `#/chat/${encodeURIComponent(id)}`;
};

const words = (text) => h("span", { lang: guessLang(text, lang()), dir: "auto" }, text);

/** What may be played. Each has a button that begins an attempt. */
export class ChallengeList {
  /** `onshow(count)` hears how many there are to choose from. */
  constructor({ onshow = () => {} } = {}) {
    this.onshow = onshow;
    this.element = h("section", { class: "challenges", "aria-label": t("challenge.list") }, skeleton(3));
    this.load();
  }

  async load() {
    try {
      const { challenges, faults } = await request("GET", "/api/challenges");
      this.onshow(challenges.length);
      replace(
        this.element,
        challenges.length
          ? h(
              "ul",
              { class: "challenge-cards" },
              challenges.map((each) => this.#card(each)),
            )
          : emptyState("flag", t("challenge.noneTitle"), t("challenge.noneText")),
        faults.length > 0 &&
          h(
            "div",
            { class: "challenge-faults", role: "note" },
            h("p", {}, t("challenge.faults")),
            h(
              "ul",
              {},
              faults.map((fault) => h("li", {}, fault)),
            ),
          ),
      );
    } catch (error) {
      replace(
        this.element,
        errorState(error, () => {
          replace(this.element, skeleton(3));
          this.load();
        }),
      );
    }
  }

  #card(challenge) {
    const begin = h("button", { type: "button", class: "button primary small", "aria-label": t("challenge.begin", { title: challenge.title }) });
    begin.append(t("challenge.start"));
    begin.addEventListener("click", async () => {
      begin.disabled = true;
      try {
        open((await request("POST", "/api/chats", { kind: "challenge", challenge: challenge.id })).id);
      } catch (error) {
        toast(explain(error), { tone: "warn" });
        begin.disabled = false;
      }
    });
    return h(
      "li",
      { class: "challenge-card" },
      h("h3", {}, words(challenge.title)),
      challenge.scenario && h("p", {}, words(challenge.scenario)),
      h("p", { class: "challenge-goal" }, icon("flag"), h("span", { class: "sr-only" }, t("challenge.goal")), words(challenge.goal)),
      h("p", { class: "challenge-facts dim" }, facts(challenge)),
      h("footer", {}, begin),
    );
  }
}

const STEP = { open: 0, judging: 1, won: 2, lost: 2, given_up: 2 };

/** Of two tellings of one attempt the later one, whichever came first: an answer may be slower than the stream. */
export function laterAttempt(known, told) {
  return known && told && STEP[told.state] < STEP[known.state] ? known : (told ?? known ?? null);
}

/** A challenge's mark in few words: its turns, or how it ended. */
export function challengeMark(chat) {
  const state = chat.attempt?.state ?? "open";
  if (state !== "open") return t(`challenge.state.${state}`);
  return chat.turns_left === null ? t("challenge.label") : tn("challenge.left", chat.turns_left);
}

function facts(challenge) {
  return [
    challenge.character_name,
    t(`challenge.difficulty.${challenge.difficulty}`),
    tn("challenge.turns", challenge.turns),
    challenge.attempts > 0 && tn("challenge.tries", challenge.attempts),
    challenge.best !== null && challenge.best !== undefined && t("challenge.best", { n: number(challenge.best) }),
  ]
    .filter(Boolean)
    .join(" · ");
}

/** How the attempt in this talk stands. `show(chat)` follows every change; `over` says that nothing more may be written. */
export class ChallengeBar {
  /** `onChange(chat)` is called with what the server answered. */
  constructor({ onChange }) {
    this.onChange = onChange;
    this.element = h("section", { class: "challenge-bar", hidden: true, "aria-label": t("challenge.label") });
  }

  get over() {
    return Boolean(this.chat?.challenge) && this.chat.turns_left === 0;
  }

  show(chat) {
    const key = JSON.stringify([chat.challenge, chat.attempt, chat.turns_left]);
    if (key === this.key) return;
    this.key = key;
    this.chat = chat;
    const { challenge, attempt } = chat;
    this.element.hidden = !challenge;
    if (!challenge) return;
    const state = attempt?.state ?? "given_up";
    replace(
      this.element,
      h(
        "div",
        { class: "challenge-words" },
        challenge.scenario && state === "open" && h("p", { class: "dim" }, words(challenge.scenario)),
        h("p", { class: "challenge-goal" }, icon("flag"), h("strong", {}, t("challenge.goal")), words(challenge.goal)),
        h("p", { class: "challenge-state", role: "status" }, pill(t(`challenge.state.${state}`), TONES[state]), h("span", {}, this.#detail(chat, state))),
        attempt?.verdict && h("p", { class: "challenge-verdict" }, words(attempt.verdict)),
      ),
      h(
        "div",
        { class: "challenge-actions" },
        state === "open" && h("button", { type: "button", class: "button small", onclick: () => this.#finish() }, t("challenge.finish")),
        h("button", { type: "button", class: "button small", onclick: () => this.#again(state) }, icon("again"), t("challenge.again")),
      ),
    );
  }

  #detail({ challenge, attempt, turns_left: left }, state) {
    const tried = attempt && t("challenge.attempt", { n: number(attempt.number) });
    const points = attempt?.score !== null && attempt?.score !== undefined;
    return [
      t(`challenge.difficulty.${challenge.difficulty}`),
      tried,
      state === "open" && tn("challenge.left", left),
      points && t("challenge.score", { n: number(attempt.score), needed: number(attempt.needed) }),
    ]
      .filter(Boolean)
      .join(" · ");
  }

  async #finish() {
    const chat = await confirmDialog({
      title: t("challenge.finishTitle"),
      body: t("challenge.finishText"),
      action: t("challenge.finish"),
      submit: () => request("POST", `/api/chats/${encodeURIComponent(this.chat.id)}/finish`, {}),
    });
    if (chat) this.onChange(chat);
  }

  async #again(state) {
    const begin = () => request("POST", `/api/chats/${encodeURIComponent(this.chat.id)}/again`, {});
    try {
      const made =
        state === "open"
          ? await confirmDialog({ title: t("challenge.againTitle"), body: t("challenge.againText"), action: t("challenge.again"), submit: begin })
          : await begin();
      if (made) open(made.id);
    } catch (error) {
      toast(explain(error), { tone: "warn" });
    }
  }
}
