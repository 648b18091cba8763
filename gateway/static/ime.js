// Enter while composing (WP-02): a Japanese or Chinese input method uses Enter to take over a word, and that must never send.
//
// Three orders exist. Most browsers send keydown with `isComposing` before `compositionend`. Others mark the key only with the code 229.
// Safari ends the composition first and sends keydown afterwards, sometimes without any mark; the key's release then comes last, so a keydown
// between `compositionend` and the next release, within a blink, still belongs to the composition.

const BLINK_MS = 60;
let endedAt = -Infinity;

document.addEventListener(
  "compositionend",
  (event) => {
    endedAt = event.timeStamp;
  },
  true,
);
document.addEventListener(
  "keyup",
  () => {
    endedAt = -Infinity;
  },
  true,
);

/** True when this keydown belongs to the input method, not to the page. */
export function isComposing(event) {
  return event.isComposing || event.keyCode === 229 || event.timeStamp - endedAt < BLINK_MS;
}

/** Enter that means "do it": not composing, and without a modifier. */
export function isPlainEnter(event) {
  return event.key === "Enter" && !event.shiftKey && !event.altKey && !isComposing(event);
}
