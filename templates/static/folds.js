// Remembers which keys of the tree are folded, for each tool in this browser: only their names are stored. Also shows the
// first rows of a long table: the others are one text in its noscript element, and become rows on a press.
(() => {
  "use strict";
  const MOST = 100;
  const what = document.querySelector(".what[data-tool]");
  const name = `folds ${what?.dataset.tool}`;
  const storage = { // a browser may forbid it
    get() { try { return JSON.parse(localStorage.getItem(name)) ?? []; } catch { return []; } },
    set(paths) {
      try {
        if (paths.length) localStorage.setItem(name, JSON.stringify(paths));
        else localStorage.removeItem(name);
      } catch { /* the folds last for this page */ }
    },
  };

  function pathOf(branch) {
    const keys = [];
    for (let at = branch; at; at = at.parentElement.closest("details")) keys.unshift(at.querySelector("summary .key").textContent);
    return JSON.stringify(keys);
  }

  const branches = () => [...document.querySelectorAll("#call > .tree details")];

  const folded = new Set(storage.get());
  for (const branch of branches()) if (folded.has(pathOf(branch))) branch.open = false;
  what?.addEventListener("toggle", ({ target }) => {
    if (!branches().includes(target)) return;
    const path = pathOf(target);
    folded.delete(path);
    if (!target.open) folded.add(path); // the latest last
    storage.set([...folded].slice(-MOST));
  }, true);

  const { _ } = window.sayso;
  const number = new Intl.NumberFormat(document.documentElement.lang);

  function build(rest, button) {
    const others = new DOMParser().parseFromString(rest.textContent, "text/html");
    const body = rest.previousElementSibling.tBodies[0];
    const [first] = others.querySelectorAll("tr");
    body.append(...others.querySelectorAll("tr"));
    first.tabIndex = -1;
    rest.remove();
    first.focus({ preventScroll: true });
    button.remove();
    body.dispatchEvent(new Event("built", { bubbles: true })); // for item.js
  }

  for (const rest of document.querySelectorAll("noscript.rest")) {
    const label = _("Show all %(count)s rows", { count: number.format(rest.dataset.rows) });
    const button = Object.assign(document.createElement("button"), { type: "button", className: "small rest", textContent: label });
    button.addEventListener("click", () => build(rest, button));
    rest.after(button);
  }
})();
