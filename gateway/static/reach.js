// Whether the gate can be reached. Judged by real calls, not by the browser's word: a gate on this machine answers without any network.

import { request, whenReached } from "./api.js";

const FIRST_PROBE_MS = 2_000;
const LONGEST_PROBE_MS = 15_000;

const listeners = new Set();
let up = true;
let timer = 0;
let wait = FIRST_PROBE_MS;

export function reachable() {
  return up;
}

/** `callback(reachable)` at each change; returns a function that ends it. */
export function onReachChange(callback) {
  listeners.add(callback);
  return () => listeners.delete(callback);
}

function probe() {
  clearTimeout(timer);
  request("GET", "/api/me").catch(() => {}); // the outcome arrives through `whenReached`
}

whenReached((answered) => {
  clearTimeout(timer);
  if (answered) wait = FIRST_PROBE_MS;
  else {
    timer = setTimeout(probe, wait);
    wait = Math.min(wait * 2, LONGEST_PROBE_MS);
  }
  if (answered === up) return;
  up = answered;
  for (const listener of [...listeners]) listener(up);
});

addEventListener("online", probe);
addEventListener("offline", probe);
