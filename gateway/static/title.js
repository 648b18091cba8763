// The tab's title; a dot before it says that a reply came while nobody looked.

let current = "";

export function setTitle(title) {
  current = `${title ? `${title} · ` : ""}Yumegate`;
  document.title = current;
}

export function nudgeTitle() {
  if (document.hidden) document.title = `● ${current}`;
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && current) document.title = current;
});
