/* Runs before the first paint, so that a chosen theme never flashes in the other one. Not a module on purpose. */
(() => {
  let choice = "system";
  try {
    choice = localStorage.getItem("yumegate.theme") || "system";
  } catch {
    /* storage may be forbidden; the system's theme is a fine answer */
  }
  document.documentElement.dataset.theme = choice;
})();
