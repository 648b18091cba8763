// File names come from strangers: direction and control characters are shown, so that the real ending is the one that is seen (WP-16).

import { h } from "./dom.js";
import { number } from "./i18n.js";

const HIDDEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udfff]/g;

const spell = (character) => `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;

/** The name as one line of honest text, for titles and `download`. */
export function plainName(name) {
  return name.replace(HIDDEN, spell);
}

/** The name as an isolated element, each hidden character visible. */
export function fileName(name) {
  const parts = [];
  let last = 0;
  for (const found of name.matchAll(HIDDEN)) {
    parts.push(name.slice(last, found.index), h("span", { class: "hidden-char" }, spell(found[0])));
    last = found.index + found[0].length;
  }
  parts.push(name.slice(last));
  return h("bdi", { class: "file-name", title: plainName(name) }, parts);
}

const STEPS = [
  [1000 ** 3, "GB"],
  [1000 ** 2, "MB"],
  [1000, "kB"],
];

/** A size in bytes as people read it. */
export function fileSize(bytes) {
  for (const [step, unit] of STEPS) {
    if (bytes >= step) return `${number(bytes / step, { maximumFractionDigits: bytes < 10 * step ? 1 : 0 })} ${unit}`;
  }
  return `${number(bytes)} B`;
}
