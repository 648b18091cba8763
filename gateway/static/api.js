// All talk with the server: JSON in and out, the CSRF token on writes, errors that a person can read, and event streams.

const TIMEOUT_MS = 30_000;
const UPLOAD_TIMEOUT_MS = 300_000;

/** The server answered and refused. `message` is a sentence for the person, `param` names the field, `details` is what else the answer holds. */
export class ApiError extends Error {
  constructor(status, { code = "", message = "", param = "" } = {}, retryAfterS = 0, details = {}) {
    super(message || `HTTP ${status}`);
    Object.assign(this, { status, code, param, retryAfterS, details });
  }

  /** Worth trying again as it is. */
  get passing() {
    return this.status === 429 || this.status >= 500;
  }
}

/** No answer came: offline, a broken connection, or too late. Whether the server acted is unknown, so only idempotent calls are repeated. */
export class NetworkError extends Error {
  constructor(cause) {
    super("network", { cause });
  }

  get passing() {
    return true;
  }
}

let csrf = "";
let onSignedOut = () => {};
let onReach = () => {};

export function setCsrf(token) {
  csrf = token ?? "";
}

/** Called when a call finds that the session is over. */
export function whenSignedOut(callback) {
  onSignedOut = callback;
}

/** Called with true after each answer and with false when none came. */
export function whenReached(callback) {
  onReach = callback;
}

/** One call. `body` is an object (sent as JSON), FormData, or nothing. Returns the parsed answer, or null for an empty one. */
export async function request(method, path, body, { signal, timeoutMs = body instanceof FormData ? UPLOAD_TIMEOUT_MS : TIMEOUT_MS } = {}) {
  const answer = await send(method, path, body, signal, {}, timeoutMs);
  if (answer.status === 204) return null;
  try {
    return await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new NetworkError(error);
  }
}

/** Opens an event stream and returns the answer, its body unread. */
export function openStream(method, path, { body, signal, lastEventId } = {}) {
  const headers = { Accept: "text/event-stream" };
  if (lastEventId) headers["Last-Event-ID"] = lastEventId;
  return send(method, path, body, signal, headers, null);
}

async function send(method, path, body, signal, extra, timeout) {
  const attempt = () => fetchOnce(method, path, body, signal, extra, timeout);
  let answer = await attempt();
  if (answer.status === 403 && method !== "GET" && (await renewCsrf())) answer = await attempt();
  if (answer.ok) return answer;
  const error = await toError(answer);
  if (error.status === 401 && path !== "/api/session") onSignedOut();
  throw error;
}

async function fetchOnce(method, path, body, signal, extra, timeout) {
  const headers = { Accept: "application/json", ...extra };
  if (method !== "GET") headers["X-CSRF-Token"] = csrf;
  if (body !== undefined && !(body instanceof FormData)) {
    headers["Content-Type"] = "application/json";
    body = JSON.stringify(body);
  }
  const limits = [signal, timeout && AbortSignal.timeout(timeout)].filter(Boolean);
  try {
    const answer = await fetch(path, {
      method,
      headers,
      body,
      credentials: "same-origin",
      cache: "no-store",
      signal: AbortSignal.any(limits),
    });
    onReach(true);
    return answer;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    onReach(false);
    throw new NetworkError(error);
  }
}

/** Another tab may have signed in anew: true when the token changed, so that the refused write deserves one more try. */
async function renewCsrf() {
  const answer = await fetchOnce("GET", "/api/me", undefined, undefined, {}, TIMEOUT_MS);
  if (!answer.ok) return false;
  const before = csrf;
  setCsrf((await answer.json()).csrf);
  return csrf !== before;
}

async function toError(answer) {
  const retryAfter = Number(answer.headers.get("Retry-After")) || 0;
  try {
    const { error, ...details } = await answer.json();
    return new ApiError(answer.status, error, retryAfter, details);
  } catch {
    return new ApiError(answer.status, {}, retryAfter); // not our JSON: a proxy in between, or a page of the server
  }
}
