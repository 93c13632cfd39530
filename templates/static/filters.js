// The menus of the inbox's filters: `f` opens one, the arrow keys move through its values and the menus, and a long one has a field that
// narrows it while the reviewer types.
(() => {
  "use strict";
  const { _ } = window.sayso;
  const MOST_PLAIN = 8;
  const menus = [...document.querySelectorAll(".chips details")];
  const links = (menu) => [...menu.querySelectorAll("li > a")].filter((link) => link.checkVisibility());

  function addField(menu) {
    const options = menu.querySelector(".options");
    const field = Object.assign(document.createElement("input"), { type: "search", autocomplete: "off", placeholder: options.dataset.find });
    field.setAttribute("aria-label", options.dataset.find);
    field.addEventListener("input", () => {
      const wanted = field.value.trim().toLocaleLowerCase();
      for (const row of options.querySelectorAll("li")) row.hidden = !row.querySelector(".value").textContent.toLocaleLowerCase().includes(wanted);
    });
    options.prepend(field);
  }

  // Below its chip, and not over the end of the row of chips.
  function show(menu) {
    const options = menu.querySelector(".options"), { left } = menu.getBoundingClientRect();
    const head = options.offsetParent;
    const room = head.clientWidth - options.offsetWidth;
    options.style.left = `${Math.max(0, Math.min(left - head.getBoundingClientRect().left, room))}px`;
    options.querySelector("input:not([type=hidden]), a")?.focus({ preventScroll: true });
  }

  function move(event, menu) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const shown = links(menu), place = shown.indexOf(document.activeElement);
    const inField = document.activeElement.matches("[type=search]");
    const turn = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Enter" && inField && !event.isComposing) shown[0]?.click();
    else if (turn && !document.activeElement.value) menus[(menus.indexOf(menu) + turn + menus.length) % menus.length].open = true;
    else if (step && (inField || place >= 0)) shown[Math.min(Math.max(place + step, 0), shown.length - 1)]?.focus();
    else return;
    event.preventDefault();
  }

  for (const menu of menus) {
    if (menu.querySelectorAll("li").length > MOST_PLAIN) addField(menu);
    menu.addEventListener("toggle", () => { if (menu.open) show(menu); });
    menu.addEventListener("keydown", (event) => move(event, menu));
  }
})();
