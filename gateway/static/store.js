// What this browser keeps for a person: unsent words, per chat, and messages whose sending is not confirmed yet. Wiped when they sign out;
// for guests nothing is kept at all.

import { person } from "./session.js";

const ROOT = "yumegate.talk.";

function read(key, fallback) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? fallback;
  } catch {
    return fallback; // forbidden storage or a foreign value: start empty
  }
}

function write(key, value) {
  if (!person()) return;
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // full or forbidden storage: the words are still in the field
  }
}

const key = (kind, chatId) => `${ROOT}${person()?.id ?? ""}.${kind}.${chatId}`;

/** The words in the composer of a chat: `{text, attachments}`. */
export function loadDraft(chatId) {
  return read(key("draft", chatId), { text: "", attachments: [] });
}

export function saveDraft(chatId, draft) {
  const empty = !draft.text && !draft.attachments.length;
  write(key("draft", chatId), empty ? null : draft);
}

/** Messages on their way, oldest first: `{client_id, text, attachments, replaces}`. */
export function loadOutbox(chatId) {
  return read(key("outbox", chatId), []);
}

export function putOutbox(chatId, entry) {
  write(key("outbox", chatId), [...loadOutbox(chatId).filter((each) => each.client_id !== entry.client_id), entry]);
}

export function dropOutbox(chatId, clientId) {
  const left = loadOutbox(chatId).filter((each) => each.client_id !== clientId);
  write(key("outbox", chatId), left.length ? left : null);
}

/** Forgets a deleted chat's words. */
export function forgetChat(chatId) {
  write(key("draft", chatId), null);
  write(key("outbox", chatId), null);
}

/** Forgets everybody's unsent words in this browser. */
export function forgetAll() {
  try {
    for (const name of Object.keys(localStorage)) {
      if (name.startsWith(ROOT)) localStorage.removeItem(name);
    }
  } catch {
    // nothing is kept where storage is forbidden
  }
}

/** A new id for a message, also on pages without a secure context. */
export function newClientId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
