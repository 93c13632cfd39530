// Keeps the open inbox current, one row at a time. No row moves while the pointer or the focus is in the list: new rows
// wait behind a button, and rows that were decided elsewhere keep their place until nobody is in the list.
(() => {
  "use strict";
  const APART_MS = 300, GONE_MS = 4000, MOST = 50;
  const pill = document.getElementById("fresh");
  const queue = new Set(), waiting = new Map();
  let timer = null;

  const rows = () => document.getElementById("rows");
  const occupied = () => rows().matches(":hover") || rows().contains(document.activeElement);

  function insert(row) {
    const due = Number(row.dataset.due);
    const next = [...rows().children].find((other) => Number(other.dataset.due) > due);
    if (!next && "more" in rows().dataset) return; // it belongs on a later page
    rows().insertBefore(row, next ?? null);
  }

  function offer() {
    pill.hidden = !waiting.size;
    pill.textContent = `${waiting.size} new · Show`;
  }

  function showWaiting() {
    for (const row of waiting.values()) insert(row);
    waiting.clear();
    offer();
  }

  function morph(row, fresh) {
    const focused = row.contains(document.activeElement);
    row.replaceChildren(...fresh.childNodes);
    row.className = fresh.className;
    row.dataset.due = fresh.dataset.due;
    if (focused) row.querySelector("a")?.focus({ preventScroll: true });
  }

  function close(row, fresh) {
    if (row.classList.contains("gone")) return;
    row.style.minHeight = `${row.getBoundingClientRect().height}px`;
    row.className = fresh.className;
    row.replaceChildren(...fresh.childNodes);
    setTimeout(() => sweep(row), GONE_MS);
  }

  function sweep(row) {
    if (!row.isConnected) return;
    if (occupied()) {
      rows().addEventListener("pointerleave", () => sweep(row), { once: true });
      rows().addEventListener("focusout", () => setTimeout(() => sweep(row)), { once: true });
      return;
    }
    row.remove();
    if (!rows().children.length) document.dispatchEvent(new Event("refresh"));
  }

  function apply(fresh) {
    const row = document.getElementById(fresh.id);
    if (fresh.matches(".gone")) {
      waiting.delete(fresh.id);
      if (row) close(row, fresh);
    } else if (row) morph(row, fresh);
    else if (scrollY > 10 || occupied()) waiting.set(fresh.id, fresh);
    else insert(fresh);
  }

  async function load() {
    const ids = [...queue].slice(0, MOST);
    ids.forEach((id) => queue.delete(id));
    try {
      const response = await fetch(`/rows?ids=${ids.join(",")}`, { cache: "no-store", headers: { "X-Sayso-Live": "1" } });
      if (!response.ok || response.redirected || !rows()) throw new Error("the rows cannot be read");
      const fresh = new DOMParser().parseFromString(`<ul>${await response.text()}</ul>`, "text/html");
      fresh.querySelectorAll("li[id]").forEach(apply);
      offer();
    } catch {
      document.dispatchEvent(new Event("refresh")); // says that the session ended, or shows the first rows
    }
    timer = queue.size ? setTimeout(load, APART_MS) : null;
  }

  pill.addEventListener("click", showWaiting);
  document.addEventListener("rows", (event) => {
    event.preventDefault();
    event.detail.forEach((id) => queue.add(id));
    timer ??= setTimeout(load, APART_MS);
  });
})();
