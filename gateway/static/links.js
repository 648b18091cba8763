// The links at the side of the plain pages: settings for everybody, the desk and the set-up for operators.

import { t } from "./i18n.js";
import { isOperator } from "./session.js";

const DESK = [
  ["overview", "desk"],
  ["channels", "channel"],
  ["people", "people"],
  ["jobs", "clock"],
  ["usage", "chart"],
  ["log", "scroll"],
  ["config", "check"],
];

/** Links for the side; `current` is "settings", "setup" or "operate/VIEW". */
export function sideLinks(current) {
  const links = [{ hash: "#/settings", label: t("nav.settings"), icon: "gear", current: current === "settings" }];
  if (!isOperator()) return links;
  return [
    ...DESK.map(([name, icon]) => ({
      hash: `#/operate/${name}`,
      label: t(`operate.${name}`),
      icon,
      current: current === `operate/${name}`,
      group: t("nav.operate"),
    })),
    { hash: "#/setup", label: t("nav.setup"), icon: "spark", current: current === "setup", group: t("nav.more") },
    { ...links[0], group: t("nav.more") },
  ];
}
