// The switches over saved memories: learning with each character, privacy and sharing in shared places; of a space for those who manage all (SM-13 to SM-15, SM-87).

import { request } from "./api.js";
import { iconButton, segmented } from "./controls.js";
import { h, replace } from "./dom.js";
import { t, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { isOperator } from "./session.js";
import { explain, fillWhenLoaded } from "./states.js";
import { toast } from "./toast.js";

const MINE = "/api/memory/switches";
const LEVELS = ["normal", "partial", "full"];

export function switchesView(place, { signal, address, spaces }) {
  const own = h("div", { class: "saved-body" });
  const others = isOperator() ? spaces.map(([id, title]) => [id, title, h("div", { class: "saved-body" })]) : [];
  replace(
    place,
    h(
      "header",
      { class: "saved-head" },
      h("a", { class: "text-button file-back", href: address.hash("saved") }, icon("back"), t("saved.back")),
      h("div", { class: "saved-title" }, h("h2", {}, t("saved.switches")), h("p", { class: "hint" }, t("saved.switchesText"))),
    ),
    own,
    others.map(([, title, body]) => h("section", { class: "switch-space" }, h("h3", {}, h("bdi", {}, title)), body)),
  );
  fillWhenLoaded(own, { signal, lines: 5, load: () => request("GET", MINE, undefined, { signal }), show: (data) => ownView(data, own, signal) });
  for (const [id, , body] of others) {
    const path = `/api/operator/spaces/${encodeURIComponent(id)}/switches`;
    fillWhenLoaded(body, { signal, lines: 3, load: () => request("GET", path, undefined, { signal }), show: (data) => spaceView(data, path, body) });
  }
}

let last = Promise.resolve(); // the change that was sent last

/** Sends a change, after those before it: what was flipped last stands. What did not work is shown as it was before. */
function send(path, values, told, again) {
  last = last.then(async () => {
    try {
      again(await request("PATCH", path, values));
      toast(told);
    } catch (error) {
      toast(explain(error), { tone: "warn" });
      again(null);
    }
  });
}

/** Shows a view anew; the focus goes on to the control that stands where it was. */
function redraw(place, view) {
  const controls = () => [...place.querySelectorAll("input, button")];
  const at = controls().indexOf(document.activeElement);
  replace(place, view);
  controls()[at]?.focus();
}

function ownView(data, place, signal) {
  const again = (fresh) => redraw(place, ownView(fresh ?? data, place, signal));
  return [
    h("h3", {}, t("saved.learning")),
    h("p", { class: "hint" }, t("saved.learningText")),
    characters(data.characters, (id, on, name) =>
      send(MINE, { characters: { [id]: { learn: on, use: on } } }, t(on ? "saved.learnsNow" : "saved.learnsNoMore", { name }), again),
    ),
    data.characters
      .filter(({ returnable }) => returnable > 0)
      .map(({ id, name, returnable }) =>
        h(
          "p",
          { class: "switch-return" },
          h("span", {}, tn("saved.returnable", returnable, { name })),
          h("button", { type: "button", class: "button small", onclick: (event) => takeBack(event.currentTarget, id, place, signal) }, icon("undo"), t("saved.takeBack")),
        ),
      ),
    h("h3", {}, t("saved.privacy")),
    h("p", { class: "hint" }, t("saved.privacyText")),
    segmented({
      legend: t("saved.privacy"),
      options: LEVELS.map((level) => [level, t(`saved.privacy.${level}`)]),
      value: data.privacy,
      onchange: (level) => send(MINE, { privacy: level }, t("saved.saved"), again),
    }),
    h("p", { class: "hint" }, t(`saved.privacyHint.${data.privacy}`)),
    switchLine(t("saved.share"), t("saved.shareText"), data.share_private, (on) => send(MINE, { share_private: on }, t("saved.saved"), again)),
  ];
}

async function takeBack(button, id, place, signal) {
  button.disabled = true;
  try {
    const { moved } = await request("POST", `${MINE}/${encodeURIComponent(id)}/take-back`, {});
    toast(tn("saved.tookBack", moved));
    fillWhenLoaded(place, { signal, lines: 5, load: () => request("GET", MINE, undefined, { signal }), show: (data) => ownView(data, place, signal) });
  } catch (error) {
    button.disabled = false;
    toast(explain(error), { tone: "warn" });
  }
}

function spaceView(data, path, place) {
  const again = (fresh) => redraw(place, spaceView(fresh ?? data, path, place));
  return [
    h("p", { class: "hint" }, t("saved.spaceLearningText")),
    characters(data.characters, (id, on, name) =>
      send(path, { characters: { [id]: { learn: on, use: on } } }, t(on ? "saved.learnsNow" : "saved.learnsNoMore", { name }), again),
    ),
    h("h4", {}, t("saved.blacklist")),
    data.blacklist.length
      ? h(
          "ul",
          { class: "rows" },
          data.blacklist.map(({ id, name }) =>
            h(
              "li",
              { class: "row" },
              h("div", { class: "row-main" }, h("bdi", {}, name || id)),
              iconButton("close", t("saved.unblacklist", { name: name || id }), () => send(path, { blacklist: { [id]: false } }, t("saved.saved"), again)),
            ),
          ),
        )
      : h("p", { class: "hint" }, t("saved.blacklistNone")),
  ];
}

function characters(list, flip) {
  return h(
    "ul",
    { class: "switches" },
    list.map(({ id, name, learn, use }) => {
      const half = learn !== use;
      const hint = half ? t(use ? "saved.onlyReads" : "saved.onlyLearns") : "";
      return h("li", {}, switchLine(name, hint, learn || use, (on) => flip(id, on, name)));
    }),
  );
}

function switchLine(label, hint, on, flip) {
  const box = h("input", { type: "checkbox", role: "switch", class: "switch", checked: on, onchange: () => flip(box.checked) });
  return h("label", { class: "switch-line" }, box, h("span", {}, h("bdi", {}, label), hint && h("span", { class: "hint" }, hint)));
}
