// The line above the composer: which model answers, and plainly so when it is only the tiny demo model (WO-1).

import { h } from "./dom.js";
import { t } from "./i18n.js";
import { icon } from "./icons.js";
import { isOperator, session } from "./session.js";

export function modelLine() {
  const model = session.me.model;
  if (!model) return h("p", { class: "model-line is-demo" }, icon("warn"), h("span", {}, t("model.none"), " ", setupLink()));
  if (!model.demo)
    return h("p", { class: "model-line" }, h("span", { class: "model-name", lang: "en", title: model.provider }, model.name));
  return h("p", { class: "model-line is-demo" }, icon("spark"), h("span", {}, t("model.demo", { name: model.name }), " ", setupLink()));
}

function setupLink() {
  return isOperator() ? h("a", { href: "#/setup" }, t("model.setUp")) : h("span", { class: "dim" }, t("model.askOperator"));
}
