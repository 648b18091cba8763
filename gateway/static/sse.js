// Reading `text/event-stream` from a fetch body. EventSource can neither set Last-Event-ID after a reload nor be used with POST, so we read it ourselves.

import { NetworkError } from "./api.js";

/**
 * Yields `{id, event, data}` for each event of an answer; `data` is parsed JSON. `onBytes` is called for every piece, comments included, so that a
 * caller can tell a quiet connection from a dead one. Ends when the server ends; raises NetworkError when the connection breaks.
 */
export async function* readEvents(answer, onBytes = () => {}) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let draft = { event: "", data: [], id: undefined };
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes();
      const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line !== "") {
          field(draft, line);
          continue;
        }
        const data = parsed(draft.data);
        if (data !== undefined) yield { id: draft.id, event: draft.event || "message", data };
        draft = { event: "", data: [], id: undefined };
      }
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new NetworkError(error);
  } finally {
    reader.cancel().catch(() => {}); // already broken: there is nothing left to close
  }
}

/** The data lines as JSON, or undefined: an event nobody can read is passed over rather than asked for again and again. */
function parsed(lines) {
  try {
    return lines.length ? JSON.parse(lines.join("\n")) : undefined;
  } catch {
    return undefined;
  }
}

function field(draft, line) {
  const colon = line.indexOf(":");
  if (colon === 0) return; // a comment that keeps the connection alive
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
  if (name === "event") draft.event = value;
  else if (name === "data") draft.data.push(value);
  else if (name === "id") draft.id = value;
}
