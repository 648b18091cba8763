// A menu of actions at a button: arrow keys, Home, End, Esc; the focus goes back to the button.

import { h } from "./dom.js";
import { icon } from "./icons.js";

/**
 * Opens a menu at `anchor`. An item is `{label, icon, action, danger, checked}` or `null` for a line between.
 * `checked` true or false makes it one choice of several.
 */
export function openMenu(anchor, items) {
  const buttons = [];
  const menu = h(
    "div",
    { class: "menu", role: "menu", popover: "auto", "aria-label": anchor.getAttribute("aria-label") ?? anchor.textContent },
    items.map((item) => {
      if (!item) return h("hr", { class: "menu-line", role: "separator" });
      const choice = item.checked !== undefined;
      const button = h(
        "button",
        {
          type: "button",
          class: item.danger ? "menu-item is-danger" : "menu-item",
          role: choice ? "menuitemradio" : "menuitem",
          "aria-checked": choice ? String(item.checked) : null,
          tabindex: -1,
          onclick: () => {
            menu.hidePopover();
            item.action();
          },
        },
        icon(item.icon),
        h("span", { class: "menu-label" }, item.label),
        item.checked && icon("check"),
      );
      buttons.push(button);
      return button;
    }),
  );
  menu.addEventListener("keydown", (event) => steer(event, buttons));
  menu.addEventListener("toggle", (event) => {
    if (event.newState !== "closed") return;
    anchor.setAttribute("aria-expanded", "false");
    const hadFocus = menu.contains(document.activeElement) || document.activeElement === document.body;
    menu.remove();
    if (hadFocus && anchor.isConnected) anchor.focus();
  });

  (anchor.closest("dialog") ?? document.body).append(menu);
  anchor.setAttribute("aria-haspopup", "menu");
  anchor.setAttribute("aria-expanded", "true");
  menu.showPopover();
  place(menu, anchor);
  buttons[0]?.focus();
}

function steer(event, buttons) {
  const at = buttons.indexOf(document.activeElement);
  const next = {
    ArrowDown: (at + 1) % buttons.length,
    ArrowUp: (at + buttons.length - 1) % buttons.length,
    Home: 0,
    End: buttons.length - 1,
  }[event.key];
  if (next !== undefined) {
    event.preventDefault();
    buttons[next].focus();
  } else if (event.key === "Tab") {
    event.preventDefault();
    event.currentTarget.hidePopover();
  }
}

/** Below the button and in line with its nearer edge; above it when there is no room. */
function place(menu, anchor) {
  const gap = 6;
  const box = anchor.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const left = box.left + width > innerWidth - gap ? box.right - width : box.left;
  const top = box.bottom + gap + height > innerHeight - gap ? box.top - gap - height : box.bottom + gap;
  menu.style.left = `${Math.max(gap, Math.min(left, innerWidth - width - gap))}px`;
  menu.style.top = `${Math.max(gap, top)}px`;
}
