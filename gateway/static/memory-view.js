// A memory file to be read: rendered on the server, block by block, with the origin of each line beside it.

import { h, serverHtml } from "./dom.js";
import { guessLang, markLang } from "./lang.js";
import { originLegend, originMark } from "./origin.js";

const DEEPEST = 6;
const UNDER = 2; // headings of a file stand below the page's and the file's own

/** The blocks of a file; null when nothing but headings and hints stands there. */
export function fileView({ blocks, lines, content }) {
  if (!blocks.some(({ kind }) => kind === "line" || kind === "text")) return null;
  const around = guessLang(content);
  const marked = lines.some(({ origin }) => origin !== "human");
  return h(
    "div",
    { class: marked ? "file-view" : "file-view is-unmarked" },
    blocks.map((block) => blockView(block, lines, around)),
    marked && originLegend(),
  );
}

function blockView(block, lines, around) {
  if (block.kind === "heading")
    return h(`h${Math.min(DEEPEST, block.level + UNDER)}`, { class: "file-heading", lang: guessLang(block.text, around) }, block.text);
  if (block.kind === "hint") return h("p", { class: "file-hint", lang: guessLang(block.text, around) }, block.text);
  const marks = lines.filter((line) => line.first >= block.first && line.last <= block.last);
  return lineView(block.html, distinct(marks), block.level, around);
}

/** One line as HTML of the server with its marks; `level` counts its indents. */
export function lineView(html, marks, level = 0, around = "") {
  return h(
    "div",
    { class: `file-line level-${level}` },
    markLang(serverHtml(h("div", { class: "prose" }), html), around),
    h("div", { class: "file-marks" }, marks.map(originMark)),
  );
}

/** A paragraph of several lines says each origin once. */
function distinct(marks) {
  const seen = new Set();
  return marks.filter(({ origin, author }) => !seen.has(`${origin} ${author}`) && seen.add(`${origin} ${author}`));
}
