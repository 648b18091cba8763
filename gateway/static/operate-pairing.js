// People who wait to be let in: each was given a code, and only the code lets them in, for anybody can take a name (CH-113).

import { ApiError, request } from "./api.js";
import { field } from "./controls.js";
import { openDialog } from "./dialog.js";
import { h } from "./dom.js";
import { t, term } from "./i18n.js";
import { section } from "./page.js";
import { explain } from "./states.js";
import { toast } from "./toast.js";
import { ago } from "./when.js";

/** The section above the list of people; nothing when nobody waits. */
export function pairingSection({ waiting }, reload) {
  if (!waiting.length) return null;
  return section(
    t("pairing.title"),
    t("pairing.text"),
    h(
      "ul",
      { class: "rows pairings" },
      waiting.map((each) => row(each, reload)),
    ),
    h("button", { type: "button", class: "button primary", onclick: () => approve(reload) }, t("pairing.enter")),
  );
}

function row(each, reload) {
  const decline = h("button", { type: "button", class: "button", onclick: () => turnAway(each, reload) }, t("pairing.decline"));
  return h(
    "li",
    { class: "row" },
    h(
      "div",
      { class: "row-main" },
      h("p", { class: "row-line" }, h("bdi", { class: "row-title" }, each.name || each.platform_user_id)),
      h(
        "p",
        { class: "hint" },
        term("channel", each.channel),
        " ",
        h("bdi", {}, each.account),
        " · ",
        h("bdi", {}, each.platform_user_id),
        " · ",
        ago(each.told_at),
      ),
    ),
    decline,
  );
}

async function approve(reload) {
  const code = h("input", { class: "input", required: true, maxlength: 40, autocomplete: "off", autocapitalize: "characters", autofocus: true });
  const line = field({ label: t("pairing.code"), control: code, hint: t("pairing.codeHint") });
  const done = await openDialog({
    title: t("pairing.enter"),
    content: [line],
    action: t("pairing.approve"),
    submit: async () => {
      line.setError("");
      try {
        return await request("POST", "/api/operator/pairings/approve", { code: code.value });
      } catch (error) {
        if (error instanceof ApiError && error.param === "code") line.setError(explain(error));
        throw error;
      }
    },
  });
  if (!done) return;
  toast(t("pairing.approved", { name: done.name || done.id }));
  reload();
}

async function turnAway(each, reload) {
  try {
    await request("POST", `/api/operator/pairings/${each.id}/decline`, {});
    reload();
  } catch (error) {
    toast(explain(error), { tone: "warn" });
  }
}
