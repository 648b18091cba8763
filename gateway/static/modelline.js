// Which model answers: the line above the composer, plainly so when it is only the tiny demo model (WO-1). It follows a configuration that changes
// while the page is open.

import { request } from "./api.js";
import { h, replace } from "./dom.js";
import { t } from "./i18n.js";
import { icon } from "./icons.js";
import { isOperator, session } from "./session.js";

const EVERY_MS = 15_000;

let places = [];

/** An element that shows `show(model)`, and shows it anew when another model answers. */
export function withModel(show) {
  const place = h("div", { class: "with-model" }, show(session.me.model));
  places.push({ place, show });
  return place;
}

export function modelLine() {
  return withModel((model) => {
    if (!model) return h("p", { class: "model-line is-demo" }, icon("warn"), h("span", {}, t("model.none"), " ", setupLink()));
    if (!model.demo)
      return h("p", { class: "model-line" }, h("span", { class: "model-name", lang: "en", title: model.provider }, model.name));
    return h("p", { class: "model-line is-demo" }, icon("spark"), h("span", {}, t("model.demo", { name: model.name }), " ", setupLink()));
  });
}

function setupLink() {
  return isOperator() ? h("a", { href: "#/setup" }, t("model.setUp")) : h("span", { class: "dim" }, t("model.askOperator"));
}

async function look() {
  places = places.filter(({ place }) => place.isConnected);
  if (document.hidden || !places.length) return;
  let model;
  try {
    ({ model } = await request("GET", "/api/me"));
  } catch {
    return; // the page itself says what is wrong; asked again later
  }
  if (JSON.stringify(model) === JSON.stringify(session.me.model)) return;
  session.me = { ...session.me, model };
  for (const { place, show } of places) replace(place, show(model));
}

setInterval(look, EVERY_MS);
addEventListener("focus", look);
