// Saved memories: the lists at the left, each with its use; the open one at the right; on a narrow page one of the two. Below the lists the switches.

import { shareBar } from "./bars.js";
import { h, replace } from "./dom.js";
import { t, term } from "./i18n.js";
import { icon } from "./icons.js";
import { SavedApi, listKey } from "./memory-saved-api.js";
import { SavedPane } from "./memory-saved-list.js";
import { listName, useText } from "./memory-saved-names.js";
import { switchesView } from "./memory-saved-switches.js";
import { errorState, skeleton } from "./states.js";

const SWITCHES = "switches";

export function savedTab(place, { api: address, signal, parts }) {
  const api = new SavedApi(signal);
  const wanted = parts.join("/");
  const nav = h("nav", { class: "saved-lists", "aria-label": t("saved.lists") }, skeleton(5));
  const pane = h("section", { class: "saved-pane", "aria-label": t("saved.none") }, skeleton(6));
  replace(place, nav, pane);
  place.classList.toggle("is-open", Boolean(wanted));
  let shown = null;

  async function load() {
    try {
      const data = await api.lists();
      if (signal.aborted) return;
      const open = data.lists.find((each) => listKey(each) === wanted) ?? (wanted ? null : data.lists[0]);
      replace(nav, navView(data, wanted === SWITCHES ? SWITCHES : open && listKey(open), address));
      if (!shown) show(data, open);
    } catch (error) {
      if (error.name === "AbortError" || signal.aborted) return;
      replace(nav, errorState(error, load));
      if (!shown) replace(pane);
    }
  }

  function show(data, open) {
    if (wanted === SWITCHES) {
      pane.setAttribute("aria-label", t("saved.switches"));
      switchesView(pane, { signal, address, spaces: spacesOf(data.lists) });
      shown = {};
      return;
    }
    if (!open) {
      location.hash = address.hash("saved");
      return;
    }
    pane.setAttribute("aria-label", listName(open));
    shown = new SavedPane({ place: pane, api, address, signal, list: open, data, onChanged: load });
  }

  load();
  return { find: () => (shown?.focusFilter ? shown.focusFilter() : nav.querySelector("a")?.focus()) };
}

function spacesOf(lists) {
  const found = new Map();
  for (const { list, space, space_title: title, manages } of lists) if (list === "space" && manages) found.set(space, title);
  return [...found];
}

function navView({ lists, limits }, open, address) {
  const own = lists.filter(({ list }) => list !== "space");
  const places = lists.filter(({ list }) => list === "space");
  return [
    group(t("saved.group.own"), own, limits, open, address),
    places.length > 0 && group(t("saved.group.places"), places, limits, open, address),
    h(
      "a",
      { class: "file-row saved-switches-link", href: address.hash("saved", SWITCHES), "aria-current": open === SWITCHES ? "page" : null },
      h("span", { class: "file-row-name with-icon" }, icon("gear"), t("saved.switches")),
    ),
    h("a", { class: "file-row", href: "#/limits" }, h("span", { class: "file-row-name with-icon" }, icon("chart"), t("saved.limitsLink"))),
  ];
}

function group(title, lists, limits, open, address) {
  return h(
    "div",
    { class: "file-group" },
    h("h2", {}, title),
    h(
      "ul",
      {},
      lists.map((each) => listRow(each, limits, listKey(each) === open, address)),
    ),
  );
}

function listRow(each, limits, current, address) {
  return h(
    "li",
    {},
    h(
      "a",
      { class: "file-row", href: address.hash("saved", listKey(each)), "aria-current": current ? "page" : null },
      h("bdi", { class: "file-row-name" }, rowName(each)),
      each.list === "space" && h("span", { class: "file-row-about" }, h("bdi", {}, each.character_name), " · ", term("channel", each.channel)),
      each.manages && h("span", { class: "file-row-about num" }, useText(each, limits)),
      each.manages && shareBar(Math.min(1, each.unpinned / limits.unpinned_max)),
      !each.manages && h("span", { class: "file-row-about" }, t("saved.taught")),
    ),
  );
}

const rowName = ({ list, character_name: name, space_title: title }) =>
  list === "global" ? t("saved.everywhere") : list === "space" ? title : name;
