// The files of a memory: the list at the left, the open file at the right; on a narrow page one of the two.

import { askText } from "./dialog.js";
import { shareBar } from "./bars.js";
import { h, replace } from "./dom.js";
import { number, t, tn } from "./i18n.js";
import { icon } from "./icons.js";
import { draftOf } from "./memory-drafts.js";
import { FilePane } from "./memory-file.js";
import { fileSize } from "./names.js";
import { emptyState, fillWhenLoaded } from "./states.js";

const GROUPS = [
  ["about", ["system", "about", "rules"]],
  ["memory", ["curated"]],
  ["knowledge", ["knowledge", "public"]],
  ["days", ["daily", "diary"]],
  ["other", ["other"]],
];
const NEWEST_FIRST = new Set(["days"]);
const FOLDED = new Set(["days", "other"]); // long, and seldom what somebody comes for

export function filesTab(place, { api, signal, parts }) {
  const open = parts.join("/");
  const list = h("nav", { class: "file-list", "aria-label": t("files.list") });
  const pane = h("section", { class: "file-pane", "aria-label": open || t("files.none") });
  replace(place, list, pane);
  place.classList.toggle("is-open", Boolean(open));
  let file = null;
  const load = () =>
    fillWhenLoaded(list, {
      signal,
      lines: 6,
      load: () => api.get("files"),
      show: (data) => {
        if (!file) show(data);
        file?.setShare(data.prompt);
        return listView(data, open, api);
      },
    });

  function show(data) {
    if (!open) {
      replace(pane, emptyState("file", t("files.choose"), t("files.chooseText")));
      return;
    }
    const known = data.files.find((each) => each.path === open);
    file = new FilePane({ api, signal, path: open, known, prompt: data.prompt, onChanged: load });
    replace(pane, file.element);
  }

  load();
  return {
    destroy: () => file?.destroy(),
    find: () => list.querySelector("a, button")?.focus(),
  };
}

function listView(data, open, api) {
  const groups = GROUPS.map(([name, roles]) => [name, data.files.filter((each) => roles.includes(each.role))]);
  return [
    data.problems.length > 0 && problems(data.problems),
    groups
      .filter(([, files]) => files.length)
      .map(([name, files]) => group(name, NEWEST_FIRST.has(name) ? [...files].reverse() : files, open, api, data.prompt)),
    h(
      "button",
      { type: "button", class: "button small new-page", onclick: () => newPage(api) },
      icon("plus"),
      t("files.newPage"),
    ),
  ]
    .flat(2)
    .filter(Boolean);
}

function group(name, files, open, api, prompt) {
  const rows = h(
    "ul",
    {},
    files.map((file) => row(file, open, api, prompt)),
  );
  if (!FOLDED.has(name)) return h("div", { class: "file-group" }, h("h2", {}, t(`files.group.${name}`)), rows);
  return h(
    "details",
    { class: "file-group", open: files.some(({ path }) => path === open) },
    h("summary", {}, h("h2", {}, t(`files.group.${name}`)), h("span", { class: "num dim" }, number(files.length))),
    rows,
  );
}

function row(file, open, api, prompt) {
  const curated = file.role === "curated";
  return h(
    "li",
    {},
    h(
      "a",
      { class: "file-row", href: api.hash("files", file.path), "aria-current": file.path === open ? "page" : null },
      h("bdi", { class: "file-row-name", lang: "en" }, shortName(file)),
      draftOf(api.scope, file.path) &&
        h("span", { class: "unsaved", title: t("files.unsaved") }, h("span", { class: "sr-only" }, t("files.unsaved"))),
      h("span", { class: "file-row-about" }, about(file, prompt)),
      curated && file.exists && prompt.max_tokens > 0 && shareBar(Math.min(1, prompt.tokens / prompt.max_tokens)),
    ),
  );
}

function about(file, prompt) {
  if (!file.exists) return t("files.missing");
  const what = file.path === "space.md" ? t("files.role.group") : t(`files.role.${file.role}`);
  if (prompt.pages_left_out.includes(file.path)) return [what, t("files.noRoom")].join(" · ");
  return [what, file.in_prompt ? t("files.inPrompt") : fileSize(file.size)].join(" · ");
}

/** The name without what its group says already. */
function shortName({ path, role }) {
  if (role === "daily") return path.replace(/^memory\//, "").replace(/\.md$/, "");
  if (role === "diary") return path.replace(/^memory\/dreams\//, "").replace(/\.md$/, "");
  return path.replace(/^knowledge\//, "");
}

function problems(list) {
  return h(
    "details",
    { class: "file-problems" },
    h("summary", {}, icon("warn"), tn("files.problems", list.length)),
    h("p", { class: "hint" }, t("files.problemsText")),
    h(
      "ul",
      {},
      list.map(({ path, reason }) => h("li", { class: "hint" }, h("bdi", { lang: "en" }, path), ": ", h("span", { lang: "en" }, reason))),
    ),
  );
}

/** Asks for a name; the page exists once it is saved. */
async function newPage(api) {
  const name = await askText({
    title: t("files.newPage"),
    label: t("files.newPageLabel"),
    action: t("files.newPageAction"),
    maxlength: 120,
    submit: async (given) => given,
  });
  if (!name) return;
  const path = name.includes("/") || name.endsWith(".md") ? name : `knowledge/${name}`;
  location.hash = api.hash("files", path.endsWith(".md") ? path : `${path}.md`);
}
