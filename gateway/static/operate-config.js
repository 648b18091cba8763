// The configuration check: every fault with its place and the nearest known key, and the configuration in force with secrets masked (WO-32).

import { copyButton, pill } from "./controls.js";
import { h, replace } from "./dom.js";
import { t, term, tn } from "./i18n.js";
import { castSection } from "./operate-cast.js";
import { embeddingsPart } from "./operate-embeddings.js";
import { section } from "./page.js";
import { keepFresh } from "./refresh.js";
import { ago } from "./when.js";

export function configView(place, { signal }) {
  const [config, vectors, gone] = [1, 2, 3].map(() => h("div", { class: "view-part" }));
  replace(place, gone, vectors, config);
  embeddingsPart(vectors, { signal });
  keepFresh(config, { path: "/api/operator/config", show, signal });
  const reload = keepFresh(gone, { path: "/api/operator/characters", show: (answer) => castSection(answer, () => reload()), signal });
}

function show({ path, loaded_at: loaded, faults, effective, settled }) {
  const text = JSON.stringify(effective, null, 2);
  return [
    section(
      t("config.state"),
      "",
      h(
        "p",
        { class: "config-state" },
        faults.length ? pill(tn("glance.faults", faults.length), "warn") : pill(t("glance.configGood"), "good"),
        h("span", { class: "hint" }, h("bdi", { class: "mono" }, path), " · ", t("config.loaded"), " ", ago(loaded)),
      ),
      faults.length > 0 && [h("p", { class: "hint" }, t("operate.faultsAbout")), faultList(faults)],
    ),
    settled.length > 0 && section(t("config.settled"), t("config.settledAbout"), settledList(settled)),
    section(
      t("config.effective"),
      t("config.effectiveAbout"),
      h(
        "div",
        { class: "code-block" },
        h("div", { class: "code-head" }, h("span", { class: "code-lang" }, "config.json"), copyButton(text)),
        h("pre", { class: "is-tall", tabindex: 0, role: "group", "aria-label": t("config.effective") }, h("code", {}, text)),
      ),
    ),
  ];
}

/** Keys that somebody set: their value, where it comes from, and the default that it stands in place of. */
function settledList(settled) {
  return h(
    "ul",
    { class: "rows settled", "aria-label": t("config.settled") },
    settled.map((each) =>
      h(
        "li",
        { class: "row is-top" },
        h(
          "div",
          { class: "row-main" },
          h("p", { class: "row-line" }, h("bdi", { class: "mono" }, each.key), pill(term("configSource", each.source))),
          h("p", { class: "hint" }, h("bdi", { class: "mono" }, each.value), " · ", t("config.default"), " ", h("bdi", { class: "mono" }, each.default)),
        ),
      ),
    ),
  );
}

/** Faults as rows: where, what, and what to do. */
export function faultList(faults) {
  return h(
    "ul",
    { class: "rows", "aria-label": t("operate.faults") },
    faults.map((fault) =>
      h(
        "li",
        { class: "row is-top" },
        h("div", { class: "row-main" }, h("p", {}, fault.message), fault.hint && h("p", { class: "hint" }, fault.hint)),
        h(
          "p",
          { class: "row-side hint" },
          h("bdi", { class: "mono" }, fault.path),
          fault.line > 0 && h("span", {}, t("config.place", { line: fault.line, column: fault.column ?? 1 })),
        ),
      ),
    ),
  );
}
