// Remembers which keys of the tree are folded, for each tool in this browser. Only their names are stored.
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
})();
