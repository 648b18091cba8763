// Building elements. Text is always text: the one place where HTML is parsed is `serverHtml`, for fields that the server has sanitised.

/**
 * An element with properties and children: `h("button", {class: "quiet", onclick: save}, "Save")`.
 * Functions named `on…` listen, true sets a bare attribute, null and false leave it out; children may be nodes, strings, nested lists or null.
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) setProp(element, name, value);
  append(element, children);
  return element;
}

const LIVE = new Set(["value", "checked", "disabled", "selected", "hidden", "indeterminate"]);

function setProp(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "dataset") Object.assign(element.dataset, value);
  else if (LIVE.has(name)) element[name] = value;
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** Appends nodes, strings and nested lists; skips what is empty. */
export function append(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    parent.append(child instanceof Node ? child : String(child));
  }
  return parent;
}

export function replace(parent, ...children) {
  parent.replaceChildren();
  return append(parent, children);
}

/** An SVG element; colours come from classes and `currentColor`, never from style attributes. */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  append(element, children);
  return element;
}

/** Shows a `html` field of the API: rendered and sanitised on the server (WO-13). Nothing else may be passed here. */
export function serverHtml(element, html) {
  element.innerHTML = html;
  return element;
}

let counter = 0;

/** An id that is new on this page, to tie labels and descriptions to their fields. */
export function freshId(stem) {
  counter += 1;
  return `${stem}-${counter}`;
}
