// When a memory counts: only with certain words in the talk, only in certain chats (SM-17, SM-18).

import { field } from "./controls.js";
import { openDialog } from "./dialog.js";
import { h } from "./dom.js";
import { number, t, term } from "./i18n.js";
import { toast } from "./toast.js";

const SPLIT = /[,，、\n]/;

/** Asks for the words and chats of a memory. */
export async function askLimits(item, pane) {
  const most = pane.limits.tags_max;
  const words = h("input", { class: "input", value: item.tags.join(", "), autofocus: true, autocomplete: "off" });
  const known = new Map(pane.data.channels.map((each) => [each.id, each]));
  const ids = [...new Set([...item.channel_ids, ...known.keys()])];
  const boxes = ids.map((id) => [id, h("input", { type: "checkbox", checked: item.channel_ids.includes(id) })]);
  const done = await openDialog({
    title: t("saved.limits"),
    content: [
      h("p", { class: "dialog-text" }, t("saved.limitsText")),
      field({ label: t("saved.tags"), control: words, hint: t("saved.tagsText", { most: number(most) }) }),
      boxes.length > 0 &&
        h(
          "fieldset",
          { class: "check-list" },
          h("legend", { class: "label" }, t("saved.channels")),
          boxes.map(([id, box]) => h("label", { class: "check-line" }, box, h("bdi", {}, channelName(known.get(id), id)))),
          h("p", { class: "hint" }, t("saved.channelsText")),
        ),
    ],
    action: t("action.save"),
    submit: () =>
      pane.api.change(item.id, {
        tags: words.value.split(SPLIT).map((word) => word.trim()).filter(Boolean),
        channel_ids: boxes.filter(([, box]) => box.checked).map(([id]) => id),
        based_on: item.revision,
      }),
  });
  if (!done) return;
  pane.put(done.memory.id, done.memory, { focus: true });
  toast(t("saved.saved"));
}

function channelName(known, id) {
  if (!known) return id;
  const channel = term("channel", known.channel);
  return known.label ? `${known.label} · ${channel}` : channel;
}
