// The links at the side of the plain pages: memory and settings for everybody, the desk and the set-up for operators.

import { t } from "./i18n.js";
import { isOperator, person } from "./session.js";

const DESK = [
  ["overview", "desk"],
  ["channels", "channel"],
  ["people", "people"],
  ["jobs", "clock"],
  ["usage", "chart"],
  ["log", "scroll"],
  ["config", "check"],
];

/** Links for the side; `current` is "memory", "settings", "setup" or "operate/VIEW". */
export function sideLinks(current) {
  const memory = { hash: "#/memory", label: t("nav.memory"), icon: "book", current: current === "memory" };
  const settings = { hash: "#/settings", label: t("nav.settings"), icon: "gear", current: current === "settings" };
  const own = person().role === "guest" ? [] : [memory];
  if (!isOperator()) return [...own, settings];
  return [
    ...own,
    ...DESK.map(([name, icon]) => ({
      hash: `#/operate/${name}`,
      label: t(`operate.${name}`),
      icon,
      current: current === `operate/${name}`,
      group: t("nav.operate"),
    })),
    { hash: "#/setup", label: t("nav.setup"), icon: "spark", current: current === "setup", group: t("nav.more") },
    { ...settings, group: t("nav.more") },
  ];
}
