// The talk of a guest: signed out, one answer at a time, nothing kept anywhere (WO-17). The page holds the words and sends them all along.

import { openStream } from "./api.js";
import { Composer } from "./composer.js";
import { h } from "./dom.js";
import { t } from "./i18n.js";
import { mark } from "./icons.js";
import { modelLine } from "./modelline.js";
import { showInShell, sideButton } from "./shell.js";
import { readEvents } from "./sse.js";
import { emptyState, explain } from "./states.js";
import { newClientId } from "./store.js";
import { Talk } from "./talk.js";

export function guestPage() {
  return new GuestPage();
}

class GuestPage {
  #said = []; // {role, text}
  #answer = null;

  constructor() {
    this.title = t("guest.title");
    this.talk = new Talk({});
    this.talk.setLead(
      h(
        "div",
        { class: "welcome" },
        h("div", { class: "welcome-moon" }, mark()),
        h("h1", {}, t("guest.greeting")),
        h("p", {}, t("guest.lead")),
      ),
    );
    this.composer = new Composer({
      onSend: ({ text }) => this.#send(text),
      onStop: () => this.#answer?.abort(),
      loadDraft: () => ({ text: "", attachments: [] }),
      saveDraft: () => {},
      withFiles: false,
      commands: [], // they belong to a chat that is kept
      above: modelLine(),
    });
    const main = h(
      "main",
      { class: "chat", tabindex: -1 },
      h(
        "header",
        { class: "chat-head" },
        sideButton(),
        h("div", { class: "chat-name" }, h("span", { class: "chat-heading" }, t("guest.title"))),
      ),
      this.talk.element,
      h("div", { class: "chat-bottom" }, this.composer.element),
    );
    const side = h("div", { class: "chats" }, emptyState("moon", t("guest.sideTitle"), t("guest.sideText")));
    showInShell({ side, main: h("div", { class: "chat-frame" }, main), onFind: () => this.composer.field.focus() });
    this.composer.focus();
  }

  destroy() {
    this.#answer?.abort();
    this.composer.destroy();
    this.talk.destroy();
  }

  #send(text) {
    if (this.#answer) return false;
    this.#said.push({ role: "user", text });
    this.talk.upsert(local("user", text));
    this.talk.follow.jump();
    this.#ask();
    return true;
  }

  async #ask() {
    const turnId = newClientId();
    const draft = this.talk.openDraft(turnId);
    this.#answer = new AbortController();
    this.composer.setRunning(true);
    const heard = { text: "", html: "", whole: false };
    try {
      const answer = await openStream("POST", "/api/guest", { body: { messages: this.#said }, signal: this.#answer.signal });
      for await (const { event, data } of readEvents(answer)) this.#show(event, data, draft, heard);
    } catch (error) {
      if (error.name !== "AbortError")
        draft.problem(explain(error), () => {
          this.talk.dropDraft(turnId);
          this.#ask();
        });
    }
    if (heard.text) this.#said.push({ role: "assistant", text: heard.text });
    if (heard.whole && heard.text) this.talk.upsert({ ...local("assistant", heard.text), html: heard.html, turn_id: turnId });
    draft.settle();
    this.talk.speaker.flush();
    this.#answer = null;
    this.composer.setRunning(false);
  }

  #show(event, data, draft, heard) {
    if (event === "delta") {
      heard.text += data.text;
      draft.delta(data.text);
      this.talk.speaker.feed(data.text);
    } else if (event === "snapshot") {
      heard.html = data.html;
      draft.snapshot(data.html);
    } else if (event === "reset") {
      heard.text = "";
      draft.reset();
      this.talk.speaker.reset();
    } else if (event === "done") heard.whole = data.outcome === "answered";
    else if (event === "error") draft.problem(data.message);
    this.talk.follow.grown();
  }
}

function local(role, text) {
  return {
    id: newClientId(),
    role,
    text,
    html: "",
    turn_id: "",
    created_at: new Date().toISOString(),
    attachments: [],
    state: "done",
    attempt: 1,
  };
}
