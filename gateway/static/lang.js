// Which language a text is in, so that Japanese and Chinese get their own glyphs: kana means Japanese, Han alone Chinese, anything else English.

const KANA = /[\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f]/;
const HAN = /[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[\ud840-\ud87f][\udc00-\udfff]/;
const BLOCKS = "p, li, h1, h2, h3, h4, h5, h6, td, th, blockquote, dd, dt";

const HEADING_MAX = 12; // a Japanese line without kana is a heading or a name, never a sentence

/** "ja", "zh" or "en". A short line of Han alone is Japanese where what stands around it is (`around`), as a heading in a Japanese text. */
export function guessLang(text, around = "") {
  if (KANA.test(text)) return "ja";
  if (!HAN.test(text)) return "en";
  return around === "ja" && text.trim().length <= HEADING_MAX && !/[。，；！？]/.test(text) ? "ja" : "zh";
}

/** Marks an element and each block inside it with its own language. */
export function markLang(element, around = "") {
  const whole = guessLang(element.textContent ?? "", around);
  element.lang = whole;
  for (const block of element.querySelectorAll(BLOCKS)) block.lang = guessLang(block.textContent ?? "", whole);
  return element;
}
