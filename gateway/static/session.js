// Who is here and what this gate offers: the answer of `GET /api/me`, asked at the start and whenever it may have changed.

import { request, setCsrf } from "./api.js";

export const session = { me: null };

/** Asks who is here. Works signed out: then `person` is null. */
export async function refreshMe() {
  session.me = await request("GET", "/api/me");
  setCsrf(session.me.csrf);
  return session.me;
}

export const person = () => session.me?.person ?? null;
export const isOwner = () => person()?.role === "owner";
export const isOperator = () => ["admin", "owner"].includes(person()?.role);
