// The menus of the top bar: a press elsewhere or Escape closes them. The theme is kept in a cookie, so that the server
// draws the page in it.
(() => {
  "use strict";
  const YEAR_S = 31536000;
  const menus = () => document.querySelectorAll("details.menu[open]");

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

  const theme = document.getElementById("theme");
  theme.closest("label").hidden = false; // it needs this script
  theme.addEventListener("change", () => {
    const age = theme.value ? YEAR_S : 0;
    document.cookie = `theme=${theme.value}; path=/; max-age=${age}; samesite=lax`;
    document.documentElement.dataset.theme = theme.value;
  });
})();
