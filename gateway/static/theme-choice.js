// Light, dark, or as the system says. `theme.js` applies the choice before the first paint; this changes it.

const KEY = "yumegate.theme";

export const THEMES = ["system", "light", "dark"];

export function theme() {
  return document.documentElement.dataset.theme ?? "system";
}

export function setTheme(choice) {
  document.documentElement.dataset.theme = choice;
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // without storage the choice lasts until the page is closed
  }
}
