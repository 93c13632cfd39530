// Keeps the open inbox current, one row at a time. No row moves while the pointer or the focus is in the list: new rows
// wait behind a button, and rows that were decided elsewhere keep their place until nobody is in the list. The same holds
// while rows are selected.
(() => {
  "use strict";
  const { _, readRows, MOST_ROWS } = window.sayso;
  const APART_MS = 300, GONE_MS = 4000, REGROUP_MS = 15000, SOON_MS = 600000;
  const q = new URLSearchParams(location.search).get("q");
  const pill = document.getElementById("fresh"), column = document.querySelector(".list"); // scrolls beside an item
  const queue = new Set(), waiting = new Map();
  let timer = null;

  const rows = () => document.getElementById("rows");
  const items = (list = rows()) => [...list.querySelectorAll("li")];
  const dueAt = (row) => Number(row.dataset.due);
  const occupied = () => rows().matches(":hover") || rows().contains(document.activeElement) || rows().querySelector(".pick :checked");

  // The sections of service/edge/web/content/cards.py, with days in the browser's time zone.
  function sectionOf(row) {
    if ("others" in row.dataset) return "others";
    const now = window.sayso.now();
    if (dueAt(row) - now < SOON_MS) return "soon";
    return new Date(dueAt(row)).toDateString() === new Date(now).toDateString() ? "today" : "later";
  }

  function put(row, into = rows()) {
    const list = into.querySelector(`[data-section="${sectionOf(row)}"] ul`);
    const next = [...list.children].find((other) => other !== row && dueAt(other) > dueAt(row));
    list.insertBefore(row, next ?? null);
  }

  function showSections(into = rows()) {
    for (const section of into.children) {
      const count = section.querySelectorAll("li").length;
      section.hidden = !count;
      const number = section.querySelector(".number");
      if (number) number.textContent = count;
    }
    if (into.querySelector("li:not([data-others])")) document.querySelector("#inbox > .lead")?.remove();
  }

  function regroup(into) {
    for (const row of items(into)) {
      const before = row.previousElementSibling;
      const moved = row.closest("[data-section]").dataset.section !== sectionOf(row) || (before && dueAt(before) > dueAt(row));
      if (moved && !row.matches(".gone")) put(row, into);
    }
    showSections(into);
  }

  function regroupIfFree() {
    if (rows() && !occupied()) regroup(rows());
  }

  function insert(row) {
    if ("more" in rows().dataset && !items().some((other) => dueAt(other) > dueAt(row))) return; // it is on a later page
    put(row);
    showSections();
  }

  function offer() {
    pill.hidden = !waiting.size;
    pill.textContent = _("%(count)s new · Show", { count: waiting.size });
  }

  function showWaiting() {
    for (const row of waiting.values()) insert(row);
    waiting.clear();
    offer();
  }

  function morph(row, fresh) {
    if (row.innerHTML === fresh.innerHTML && row.dataset.due === fresh.dataset.due) return;
    const focused = row.contains(document.activeElement) && document.activeElement.localName; // its link, or its box
    row.replaceChildren(...fresh.childNodes);
    row.className = fresh.className;
    row.dataset.due = fresh.dataset.due;
    row.toggleAttribute("data-others", "others" in fresh.dataset);
    if (focused) row.querySelector(focused)?.focus({ preventScroll: true });
  }

  function close(row, fresh) {
    if (row.classList.contains("gone")) return;
    const focused = row.contains(document.activeElement);
    row.className = fresh.className;
    row.replaceChildren(...fresh.childNodes);
    if (focused) {
      row.tabIndex = -1; // the keys go on from here
      row.focus({ preventScroll: true });
    }
    setTimeout(() => sweep(row), GONE_MS);
  }

  function sweep(row) {
    if (!row.isConnected) return;
    if (occupied()) {
      rows().addEventListener("pointerleave", () => sweep(row), { once: true });
      rows().addEventListener("focusout", () => setTimeout(() => sweep(row)), { once: true });
      document.addEventListener("unselected", () => sweep(row), { once: true });
      return;
    }
    row.remove();
    showSections();
    if (!items().length) document.dispatchEvent(new Event("refresh"));
  }

  function apply(fresh) {
    if (!document.dispatchEvent(new CustomEvent("row", { detail: fresh, cancelable: true }))) return; // alike.js has it
    const row = document.getElementById(fresh.id);
    if (fresh.matches(".gone")) {
      waiting.delete(fresh.id);
      if (row) close(row, fresh);
    } else if (row) morph(row, fresh);
    else if ((column.scrollTop || scrollY) > 10 || occupied()) waiting.set(fresh.id, fresh);
    else insert(fresh);
  }

  async function load() {
    const ids = [...queue].slice(0, MOST_ROWS);
    ids.forEach((id) => queue.delete(id));
    try {
      const fresh = await readRows(ids, { q });
      if (!rows()) throw new Error("the page shows no rows");
      fresh.querySelectorAll("li[id]").forEach(apply);
      offer();
    } catch {
      document.dispatchEvent(new Event("refresh")); // says that the session ended, or shows the first rows
    }
    timer = queue.size ? setTimeout(load, APART_MS) : null;
  }

  // A long inbox ignores what it neither shows nor would show before its last row.
  window.sayso.concerns = ([id, due]) => {
    const shown = !("more" in (rows()?.dataset ?? {})) || rows().querySelector(`[id^="${CSS.escape(id)}-"]`);
    return Boolean(shown) || (Boolean(due) && items().some((row) => dueAt(row) > Number(due)));
  };

  Object.assign(window.sayso, { put, showSections }); // for more.js
  regroupIfFree();
  setInterval(regroupIfFree, REGROUP_MS);
  document.addEventListener("fetched", ({ detail: fresh }) => {
    const found = fresh.getElementById("rows");
    if (found) regroup(found);
    if (!rows() || !items().length) return; // live.js takes the whole list
    const gone = items().filter((row) => !fresh.getElementById(row.id)); // closed meanwhile, or on another page
    for (const { id } of gone) queue.add(id.slice(0, id.lastIndexOf("-")));
    if (found) items(found).forEach(apply);
    offer();
    if (gone.length) timer ??= setTimeout(load, APART_MS);
    fresh.getElementById("inbox").remove(); // live.js replaces no row under the pointer
  });
  pill.addEventListener("click", showWaiting);
  document.addEventListener("alike", ({ detail }) => apply(detail));
  document.addEventListener("rows", (event) => {
    event.preventDefault();
    event.detail.forEach((id) => queue.add(id));
    timer ??= setTimeout(load, APART_MS);
  });
})();
