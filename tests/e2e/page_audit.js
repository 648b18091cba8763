// What a checker of accessibility looks at, in our own words. `page_audit.py` wraps this in a function and calls one of those below.

const shown = (node) => node.checkVisibility({ visibilityProperty: true }) && !node.closest("[inert]") && node.getClientRects().length > 0;
const where = (node) => {
  const name = node.tagName.toLowerCase() + (node.id ? `#${node.id}` : "") + [...node.classList].map((each) => `.${each}`).join("");
  return `${name} “${(node.textContent || node.value || "").trim().slice(0, 30)}”`;
};
const byId = (ids) => ids.trim().split(/\s+/).map((id) => document.getElementById(id)?.textContent ?? "").join(" ").trim();
const words = (node) => {
  const copy = node.cloneNode(true);
  for (const each of copy.querySelectorAll("[aria-hidden=true], svg")) each.remove();
  return copy.textContent.trim();
};
const nameOf = (node) =>
  (node.getAttribute("aria-labelledby") && byId(node.getAttribute("aria-labelledby"))) ||
  node.getAttribute("aria-label")?.trim() ||
  (node.labels?.length && [...node.labels].map(words).join(" ").trim()) ||
  (["BUTTON", "A", "SUMMARY", "LI"].includes(node.tagName) && (words(node) || [...node.querySelectorAll("img")].map((image) => image.alt).join(" "))) ||
  "";
const rgba = (() => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const known = new Map();
  return (colour) => {
    if (!known.has(colour)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = colour;
      pen.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
})();
const over = (front, back) => front.slice(0, 3).map((value, at) => value * front[3] + back[at] * (1 - front[3]));
const ground = (node) => {
  const layers = [];
  for (let up = node; up; up = up.parentElement) {
    const colour = rgba(getComputedStyle(up).backgroundColor);
    layers.push(colour);
    if (colour[3] === 1) break;
  }
  return layers.reverse().reduce((back, layer) => over(layer, back), matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0] : [255, 255, 255]);
};
const light = (colour) => {
  const [r, g, b] = colour.map((value) => value / 255).map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ratio = (one, other) => {
  const [high, low] = [light(one), light(other)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
};
const seen = (node) => {
  let opacity = 1;
  for (let up = node; up; up = up.parentElement) opacity *= Number(getComputedStyle(up).opacity);
  return opacity;
};
const TABBABLE = "a[href], button, input, select, textarea, summary, [tabindex]";
const ofGroup = (node) => [...document.getElementsByName(node.name)];
const tabbable = () =>
  [...document.querySelectorAll(TABBABLE)].filter(
    (node) =>
      node.tabIndex >= 0 && !node.disabled && shown(node) &&
      (node.type !== "radio" || node === (ofGroup(node).find((each) => each.checked) ?? ofGroup(node)[0])),
  );

function structure() {
  const faults = [];
  const say = (node, text) => faults.push(`${where(node)}: ${text}`);
  const all = (selector) => [...document.querySelectorAll(selector)].filter(shown);

  const controls = "button, a[href], input:not([type=hidden]), select, textarea, summary, [role=button], [role=menuitem], [role=option], [role=menuitemradio], dialog, [role=dialog], [role=menu], [role=listbox]";
  for (const node of all(controls)) if (!nameOf(node) && node.getAttribute("aria-hidden") !== "true") say(node, "has no name");
  for (const node of all("nav, aside, form, [role=region], [role=log], [role=group]")) if (node.tagName !== "FORM" && !nameOf(node)) say(node, "is a landmark or group without a name");

  const modal = document.querySelector("dialog[open]") ?? all("[role=dialog][aria-modal=true]")[0];
  const mains = all("main");
  if (mains.length !== 1 && !modal) faults.push(`${mains.length} main landmarks`);
  for (const node of tabbable()) if (!node.closest("main, header, nav, aside, dialog, [role=menu], .skip, .toasts, .banner")) say(node, "stands outside every landmark");

  const heads = all("h1, h2, h3, h4, h5, h6").filter((node) => !node.closest(".prose, dialog"));
  if (heads.filter((node) => node.tagName === "H1").length > 1) faults.push("more than one h1");
  if (!modal && !heads.some((node) => node.tagName === "H1") && !all("main .chat-heading").length) faults.push("no h1");
  if (heads.some((node) => !node.textContent.trim())) faults.push("an empty heading");

  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  for (const id of new Set(ids)) if (ids.filter((each) => each === id).length > 1) faults.push(`the id ${id} is given twice`);
  for (const name of ["aria-labelledby", "aria-describedby", "aria-controls", "aria-activedescendant", "for"])
    for (const node of document.querySelectorAll(`[${name}]`))
      for (const id of node.getAttribute(name).split(" ").filter(Boolean)) if (!document.getElementById(id)) say(node, `${name} points at nothing (${id})`);

  for (const node of all("img")) if (!node.hasAttribute("alt")) say(node, "is a picture without words");
  for (const node of all("svg")) if (node.getAttribute("aria-hidden") !== "true" && !node.querySelector("title")) say(node, "is a drawing without words");
  for (const node of document.querySelectorAll("[tabindex]")) if (node.tabIndex > 0) say(node, "has a tab order of its own");
  for (const node of document.querySelectorAll("[aria-hidden=true]")) for (const each of [node, ...node.querySelectorAll(TABBABLE)]) if (each.matches(TABBABLE) && each.tabIndex >= 0 && shown(each)) say(each, "can have the focus but is hidden from screen readers");
  for (const node of all("li")) if (!node.matches("[role]") && !node.parentElement.matches("ul, ol, menu")) say(node, "is an item of no list");
  for (const node of all("[role=option]")) if (!node.closest("[role=listbox]") || !node.hasAttribute("aria-selected")) say(node, "is an option of no list, or says not whether it is chosen");
  for (const node of all("[role^=menuitem]")) if (!node.closest("[role=menu]")) say(node, "is an item of no menu");
  for (const node of all("[aria-haspopup=menu]")) if (!["true", "false"].includes(node.getAttribute("aria-expanded"))) say(node, "opens a menu and says not whether it is open");
  for (const node of all("button button, a a, a button, button a")) say(node, "is a control within a control");
  for (const node of all("button, select, input:not([type=radio]):not([type=checkbox]), summary")) {
    const { width, height } = node.getBoundingClientRect();
    if (node.getAttribute("aria-hidden") !== "true" && !node.closest("p, .skip") && (width < 24 || height < 24)) say(node, `is a target of ${Math.round(width)} × ${Math.round(height)} pixels`);
  }
  if (!["en", "ja", "zh"].includes(document.documentElement.lang)) faults.push("the page does not say its language");
  if (!document.title.trim()) faults.push("the page has no title");
  return faults;
}

function contrast() {
  const faults = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let count = 0;
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const node = text.parentElement;
    if (!text.data.trim() || !shown(node) || node.closest(".sr-only, :disabled, script, style, noscript, option, .skip")) continue;
    const opacity = seen(node);
    if (opacity < 0.05) continue;
    const style = getComputedStyle(node);
    const back = ground(node);
    const front = rgba(style.color);
    const drawn = over([...front.slice(0, 3), front[3] * opacity], back);
    const size = parseFloat(style.fontSize);
    const needed = size >= 24 || (size >= 18.6 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    const found = ratio(drawn, back);
    count += 1;
    if (found < needed) faults.add(`${where(node)}: ${found.toFixed(2)} where ${needed} is needed`);
  }
  for (const field of document.querySelectorAll("input[placeholder], textarea[placeholder]")) {
    if (!shown(field)) continue;
    const found = ratio(over(rgba(getComputedStyle(field, "::placeholder").color), ground(field)), ground(field));
    if (found < 4.5) faults.add(`${where(field)}: its hint has ${found.toFixed(2)}`);
  }
  if (!count) faults.add("no text was found");
  return [...faults];
}

function width() {
  const wide = document.documentElement.clientWidth;
  const kept = (node) => {
    for (let up = node.parentElement; up; up = up.parentElement) {
      const { overflowX } = getComputedStyle(up);
      if (up.matches("pre")) return true;
      if (overflowX !== "visible") return up.getBoundingClientRect().right <= wide + 1;
    }
    return false;
  };
  const faults = [];
  if (document.scrollingElement.scrollWidth > wide) faults.push(`the page is ${document.scrollingElement.scrollWidth} wide`);
  for (const node of document.querySelectorAll("body *")) {
    if (!shown(node) || node.closest(".sr-only, .skip, svg *")) continue;
    const box = node.getBoundingClientRect();
    if (box.width && box.height && (box.right > wide + 1 || box.left < -1) && !kept(node))
      faults.push(`${where(node)} reaches from ${Math.round(box.left)} to ${Math.round(box.right)}`);
    const { overflowX } = getComputedStyle(node);
    if (["auto", "scroll"].includes(overflowX) && node.scrollWidth > node.clientWidth + 1 && !node.matches("pre")) faults.push(`${where(node)} scrolls sideways`);
  }
  return faults;
}

function tabStops() {
  window.tabStops = tabbable();
  return window.tabStops.map(where);
}

function focused() {
  const node = document.activeElement;
  if (!node || node === document.body) return null;
  const style = getComputedStyle(node);
  const beside = node.type === "radio" ? getComputedStyle(node.nextElementSibling ?? node.closest("label")) : style;
  const ring = [style, beside, getComputedStyle(node.closest("label") ?? node)].some((each) => each.outlineStyle !== "none" && parseFloat(each.outlineWidth) > 0);
  return { at: window.tabStops.indexOf(node), name: where(node), ring: ring || Boolean(node.closest(".composer-box")), seen: seen(node) > 0.5 || node.type === "radio" };
}

/** Where somebody is who has just opened the page: before its first control. */
function leave() {
  document.activeElement?.blur();
  document.body.tabIndex = -1;
  document.body.focus();
  document.body.removeAttribute("tabindex");
}
