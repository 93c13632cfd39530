// The menus of the top bar: a press elsewhere or Escape closes them.
(() => {
  "use strict";
  const menus = () => document.querySelectorAll("details.dropdown[open]");

  document.addEventListener("click", ({ target }) => {
    for (const menu of menus()) if (!menu.contains(target)) menu.open = false;
  });
  addEventListener("blur", () => { for (const menu of menus()) menu.open = false; }); // a press in the item's frame
  document.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    for (const menu of menus()) {
      const focused = menu.contains(document.activeElement);
      menu.open = false;
      if (focused) menu.querySelector("summary").focus();
    }
  });
})();
