// The page's texts: one catalogue per language with the same keys, and numbers as the reader writes them.

const LANGUAGES = ["en", "ja", "zh"];
const KEY = "yumegate.language";

let language = "en";
let texts = {};

/** The languages the page speaks, each under its own name. */
export const LANGUAGE_NAMES = { en: "English", ja: "日本語", zh: "中文" };

/** The language in use. */
export function lang() {
  return language;
}

/** Loads the reader's language: the account's, else the one chosen in this browser, else the browser's own. */
export async function loadTexts(wanted = "") {
  language = [wanted, remembered(), ...navigator.languages.map((tag) => tag.slice(0, 2))].find((tag) => LANGUAGES.includes(tag)) ?? "en";
  const answer = await fetch(new URL(`./texts/${language}.json`, import.meta.url), { signal: AbortSignal.timeout(20_000) });
  if (!answer.ok) throw new Error(`texts/${language}.json: ${answer.status}`);
  texts = await answer.json();
  document.documentElement.lang = language;
}

/** Keeps a choice made while signed out; an account's own language wins over it. */
export function rememberLanguage(tag) {
  try {
    localStorage.setItem(KEY, tag);
  } catch {
    // without storage the choice lasts until the page is closed
  }
}

function remembered() {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

/** The text of a key, with `{name}` filled in and `{n:file|files}` as "1 file" or "2 files". A missing key shows itself, so that it is noticed. */
export function t(key, values = {}) {
  return fill(texts[key] ?? key, values);
}

/** A text that counts: `key.one` or `key.other`, with `{n}` as a number of the language. */
export function tn(key, n, values = {}) {
  const form = new Intl.PluralRules(language).select(n) === "one" ? "one" : "other";
  return t(`${key}.${form}`, { n: number(n), ...values });
}

/** The text for a word of the server (a state, a reason), or the word itself when the catalogue does not know it. */
export function term(stem, word) {
  return texts[`${stem}.${word}`] ?? String(word ?? "").replaceAll("_", " ");
}

function fill(text, values) {
  return text.replace(/\{(\w+)(?::([^|{}]*)\|([^{}]*))?\}/g, (whole, name, one, many) => {
    if (!(name in values)) return whole;
    const value = String(values[name]);
    return many === undefined ? value : `${value} ${value === "1" ? one : many}`;
  });
}

/** A number as the reader writes it. */
export function number(value, options = {}) {
  return new Intl.NumberFormat(language, options).format(value);
}

export function percent(share) {
  return number(share, { style: "percent", maximumFractionDigits: 0 });
}

/** Milliseconds as seconds or milliseconds. */
export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return t("unit.ms", { n: number(Math.round(ms)) });
  return t("unit.s", { n: number(ms / 1000, { maximumFractionDigits: 1 }) });
}

/** Seconds as the two largest units: "3 d 4 h". */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const parts = [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ];
  const first = Math.max(
    0,
    parts.findIndex(([, size]) => seconds >= size),
  );
  const large = seconds < 1 ? parts.length - 1 : first;
  let rest = Math.round(seconds);
  const out = [];
  for (const [unit, size] of parts.slice(large, large + 2)) {
    const n = Math.floor(rest / size);
    rest -= n * size;
    if (n || !out.length) out.push(t(`unit.${unit}`, { n: number(n) }));
  }
  return out.join(" ");
}
