// Small charts drawn as SVG. Each is decoration beside a list or table that says the same in words, so screen readers skip it.

import { svg } from "./dom.js";

const COLOURS = 6;

/** The class of a series' colour; the last colour serves all that follow. */
export const colour = (at) => `bar-${Math.min(at, COLOURS - 1) + 1}`;

/** One bar cut into parts, in percent of `total`. `parts` is `[{label, value}]`. */
export function stackedBar(parts, total) {
  let x = 0;
  const gap = 0.6;
  const pieces = parts.map(({ label, value }, at) => {
    const width = total ? (value / total) * 100 : 0;
    const piece = svg(
      "rect",
      { class: colour(at), x, y: 0, width: Math.max(width - gap, Math.min(width, 0.4)), height: 8, rx: 1.2 },
      svg("title", {}, label),
    );
    x += width;
    return piece;
  });
  return svg("svg", { class: "stacked-bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" }, pieces);
}

/** Columns side by side, the highest as high as the chart. `columns` is `[{label, value, title}]`. */
export function columnChart(columns, height = 96) {
  const most = Math.max(1, ...columns.map(({ value }) => value));
  const step = 100 / columns.length;
  const width = Math.min(step * 0.68, 6);
  const pieces = columns.map(({ value, title }, at) => {
    const tall = value ? Math.max((value / most) * (height - 4), 2) : 0;
    const x = at * step + (step - width) / 2;
    return svg(
      "g",
      {},
      svg("rect", { class: "bar-ground", x: at * step, y: 0, width: step, height }),
      svg("rect", { class: "bar-1", x, y: height - tall, width, height: tall, rx: 0.6 }),
      svg("title", {}, title),
    );
  });
  return svg("svg", { class: "column-chart", viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" }, pieces);
}

/** One thin horizontal bar for a share between 0 and 1. */
export function shareBar(share) {
  return svg(
    "svg",
    { class: "share-bar", viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "bar-track", x: 0, y: 0, width: 100, height: 4, rx: 2 }),
    svg("rect", { class: "bar-1", x: 0, y: 0, width: Math.max(share * 100, share ? 0.8 : 0), height: 4, rx: 2 }),
  );
}
