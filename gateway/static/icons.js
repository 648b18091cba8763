// A few line icons, drawn here so that nothing is fetched. Each stands beside a text or inside a labelled button, so all are hidden from readers.

import { svg } from "./dom.js";

const SHAPES = {
  moon: ["M20 14.2A8.2 8.2 0 0 1 9.8 4a8.2 8.2 0 1 0 10.2 10.2z"],
  sun: [
    "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z",
    "M12 2.8v1.9M12 19.3v1.9M2.8 12h1.9M19.3 12h1.9M5.5 5.5l1.3 1.3M17.2 17.2l1.3 1.3M5.5 18.5l1.3-1.3M17.2 6.8l1.3-1.3",
  ],
  screen: ["M4 5h16v11H4z", "M9 20h6M12 16v4"],
  plus: ["M12 5v14M5 12h14"],
  search: ["M11 4.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z", "M15.8 15.8 20 20"],
  menu: ["M4 7h16M4 12h16M4 17h10"],
  more: ["M6 12h.01M12 12h.01M18 12h.01"],
  close: ["M6 6l12 12M18 6 6 18"],
  send: ["M12 19V5.5M6 11l6-6 6 6"],
  stop: ["M7.5 7.5h9v9h-9z"],
  attach: ["M19 11.2l-7.3 7.3a4.6 4.6 0 0 1-6.5-6.5l7.9-7.9a3.1 3.1 0 0 1 4.4 4.4l-7.8 7.8a1.5 1.5 0 0 1-2.2-2.2l7.1-7.1"],
  copy: ["M9 9h10v11H9z", "M5 15V4h10"],
  check: ["M5 12.5l4.5 4.5L19 7"],
  edit: ["M4.5 19.5l.9-4L16 4.9a1.7 1.7 0 0 1 2.4 0l.7.7a1.7 1.7 0 0 1 0 2.4L8.5 18.6z", "M14 7l3 3"],
  again: ["M19.5 12a7.5 7.5 0 1 1-2.2-5.3L19.5 9", "M19.5 4.5V9H15"],
  fork: ["M7 20V4M4 7l3-3 3 3", "M7 16c0-4.5 10-3.5 10-8V4.5M14 7.5l3-3 3 3"],
  trash: ["M5 7h14M10 7V4.5h4V7M7 7l.8 12.5h8.4L17 7M10.5 10.5v6M13.5 10.5v6"],
  receipt: ["M6 3.5h12v17l-2.4-1.6-2.4 1.6-2.4-1.6-2.4 1.6L6 20.5z", "M9 8h6M9 11.5h6M9 15h3.5"],
  flag: ["M6 21V4M6 4.5h11l-2 3.8 2 3.8H6"],
  gear: [
    "M4 8h8M17 8h3M4 16h3M12 16h8",
    "M14.5 5.8a2.2 2.2 0 1 0 0 4.4 2.2 2.2 0 0 0 0-4.4zM9.5 13.8a2.2 2.2 0 1 0 0 4.4 2.2 2.2 0 0 0 0-4.4z",
  ],
  desk: ["M4 13a8 8 0 1 1 16 0", "M12 13l3.5-4.5", "M4 17h16"],
  spark: ["M12 4.5l1.7 5.3 5.3 1.7-5.3 1.7L12 18.5l-1.7-5.3L5 11.5l5.3-1.7z"],
  person: ["M12 4.5a3.6 3.6 0 1 0 0 7.2 3.6 3.6 0 0 0 0-7.2z", "M5 20c.6-3.7 3.4-5.6 7-5.6s6.4 1.9 7 5.6"],
  people: [
    "M9.2 5.5a3.2 3.2 0 1 0 0 6.4 3.2 3.2 0 0 0 0-6.4z",
    "M3 19.5c.5-3.3 3-5 6.2-5s5.7 1.7 6.2 5",
    "M15.5 6a3 3 0 0 1 0 5.8M17.4 14.8c2 .6 3.3 2.2 3.6 4.7",
  ],
  link: ["M10 14a4 4 0 0 0 5.7 0l3-3a4 4 0 0 0-5.7-5.7l-1 1", "M14 10a4 4 0 0 0-5.7 0l-3 3A4 4 0 0 0 11 18.7l1-1"],
  exit: ["M14 4.5H5.5v15H14", "M10 12h10.5M17 8.5l3.5 3.5-3.5 3.5"],
  down: ["M12 5v13.5M6 13l6 6 6-6"],
  back: ["M19 12H5.5M11 6l-6 6 6 6"],
  warn: ["M12 4.5 21 20H3z", "M12 10.5v4M12 17.2h.01"],
  file: ["M6.5 3.5h7L18 8v12.5H6.5z", "M13.5 3.5V8H18"],
  clock: ["M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16z", "M12 8v4.5l3 1.8"],
  chart: ["M4.5 20h15M7 16.5v-5M12 16.5V6M17 16.5v-8"],
  channel: ["M4 6h16v10H9.5L5.5 19.5V16H4z"],
  scroll: ["M6 4h12v16H6z", "M9 8.5h6M9 12h6M9 15.5h4"],
  block: ["M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16z", "M6.4 6.4l11.2 11.2"],
  key: ["M8 11a4 4 0 1 0 0 8 4 4 0 0 0 0-8z", "M11 12.2 20 4M16.5 7l2.5 2.8"],
  play: ["M8 5.5v13l10.5-6.5z"],
  book: ["M5 5.5c2.4-.9 4.8-.7 7 .8 2.2-1.5 4.6-1.7 7-.8v12.8c-2.4-.9-4.8-.7-7 .8-2.2-1.5-4.6-1.7-7-.8z", "M12 6.3v12.8"],
  calendar: ["M4.5 6h15v13.5h-15z", "M4.5 10h15M8.5 3.5V7M15.5 3.5V7"],
  history: ["M4.8 9.2a8 8 0 1 1-.6 4.4", "M4.5 4.8v4.6h4.6", "M12 8v4.5l3 1.8"],
  undo: ["M5 10h9a5 5 0 0 1 0 10h-3", "M9 5.5 4.5 10 9 14.5"],
  left: ["M14.5 6l-6 6 6 6"],
  right: ["M9.5 6l6 6-6 6"],
  detach: ["M13 4.5h6.5V11M19.5 4.5l-8 8", "M16.5 13.5v6h-12v-12h6"],
  tag: ["M4.5 4.5h7l8 8-7 7-8-8z", "M8.5 8.5h.01"],
  pin: ["M9 4h6l-.8 6.2 3.3 3.3v1.5H6.5v-1.5l3.3-3.3z", "M12 15v5.5"],
  wave: ["M4 12h2l2-5 3.5 11L15 8l1.8 4H20"],
};

/** An icon by name, 20 px unless the stylesheet says otherwise. */
export function icon(name) {
  const paths = SHAPES[name].map((d) => svg("path", { d }));
  return svg("svg", { class: `icon icon-${name}`, viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" }, ...paths);
}

/** The gate's own mark: a crescent with one star. */
export function mark() {
  return svg(
    "svg",
    { class: "mark", viewBox: "0 0 32 32", "aria-hidden": "true", focusable: "false" },
    svg("path", { class: "mark-moon", d: "M20.6 6.6a10 10 0 1 0 5.2 13.9A8.4 8.4 0 0 1 20.6 6.6z" }),
    svg("circle", { class: "mark-star", cx: 23.4, cy: 10.6, r: 1.3 }),
  );
}
