// What lists of saved memories are called, and how full they are in words.

import { number, t } from "./i18n.js";

/** What a list is called where its group is not in sight. */
export function listName({ list, character_name: name, space_title: title }) {
  if (list === "global") return t("saved.everywhere");
  return list === "space" ? t("saved.inSpace", { name, title }) : t("saved.with", { name });
}

/** "87 of 100, 12 of 20 pinned" (WO-21). */
export function useText({ unpinned, pinned }, limits) {
  return t("saved.use", {
    unpinned: number(unpinned),
    unpinnedMax: number(limits.unpinned_max),
    pinned: number(pinned),
    pinnedMax: number(limits.pinned_max),
  });
}

/** Keeps `place` at "120 of 500"; code points, as the server counts. */
export function countInto(place, area, most) {
  const show = () => {
    const length = [...area.value.normalize("NFC").trim()].length;
    place.textContent = t("saved.count", { n: number(length), most: number(most) });
    place.classList.toggle("tone-warn", length > most);
  };
  area.addEventListener("input", show);
  show();
}
