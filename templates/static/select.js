// Selects rows of the inbox, to decide them together. A selected row keeps its place, and its selection through changes;
// one that was decided elsewhere, or that only others can decide, loses it.
(() => {
  "use strict";
  const { _ } = window.sayso;
  const HELD_MS = 500;
  const { keys } = window.sayso;
  const inbox = document.getElementById("inbox"), form = document.getElementById("selection");
  const count = form.querySelector(".selected");
  const most = Number(form.dataset.most);
  const selected = new Set();
  let timer = null, held = false, any = false;

  const boxes = () => [...inbox.querySelectorAll("#rows .pick input")];
  const boxOf = (row) => row?.querySelector(".pick input");

  function update() {
    const facts = { count: selected.size };
    const text = selected.size < most ? _("%(count)s selected", facts) : _("%(count)s selected, the most at once", facts);
    if (count.textContent !== text) count.textContent = text;
    const ended = any && !selected.size;
    any = selected.size > 0;
    if (ended) document.dispatchEvent(new Event("unselected")); // for inbox.js
  }

  function note(box) {
    if (box.checked && selected.size === most) box.checked = false;
    if (box.checked) selected.add(box.value); else selected.delete(box.value);
    update();
  }

  // A row that changed has a new box.
  function restore() {
    for (const id of selected) {
      const box = boxOf(document.getElementById(id));
      if (box) box.checked = true; else selected.delete(id);
    }
    update();
  }

  function select(row) {
    const box = boxOf(row);
    if (box && !box.checked) box.click();
  }

  function extend(by) {
    select(keys.activeRow());
    keys.step(by);
    select(keys.activeRow());
  }

  function selectAlike() {
    const { alike } = keys.activeRow().dataset;
    for (const row of inbox.querySelectorAll(`#rows [data-alike="${CSS.escape(alike)}"]`)) select(row);
  }

  // On a touch screen a long press selects. It opens neither the row nor the browser's menu.
  function hold(row) {
    clearTimeout(timer);
    if (held) return;
    boxOf(row)?.click();
    held = true;
  }

  inbox.addEventListener("pointerdown", ({ pointerType, target }) => {
    const row = target.closest("#rows li");
    held = false;
    if (pointerType !== "mouse" && boxOf(row) && !target.closest(".pick")) timer = setTimeout(hold, HELD_MS, row);
  });
  for (const type of ["pointerup", "pointercancel"]) addEventListener(type, () => clearTimeout(timer));
  inbox.addEventListener("contextmenu", (event) => {
    const row = event.target.closest("#rows li");
    if (event.pointerType !== "touch" || !boxOf(row)) return;
    event.preventDefault();
    hold(row);
  });
  inbox.addEventListener("click", (event) => {
    if (!held) return;
    held = false;
    event.preventDefault();
    event.stopPropagation(); // split.js must not take it, too
  }, true);
  inbox.addEventListener("change", ({ target }) => { if (target.matches(".pick input")) note(target); });
  form.addEventListener("reset", () => {
    if (form.contains(document.activeElement)) inbox.focus({ preventScroll: true });
    selected.clear();
    update();
  });
  new MutationObserver(restore).observe(inbox, { childList: true, subtree: true });
  for (const box of boxes()) if (box.checked) note(box); // before this script ran

  window.sayso.select = { // for keys.js
    works: () => boxes().length, row: () => boxOf(keys.activeRow())?.click(), extend,
    alike: () => keys.activeRow()?.dataset.alike, rowsAlike: selectAlike,
    any: () => selected.size, decide: () => form.requestSubmit(),
  };
})();
