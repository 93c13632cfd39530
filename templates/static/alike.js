// Keeps the inbox's rows of alike items current: a change of an item in one fetches its row again, and a new alike item
// joins it.
(() => {
  "use strict";
  const { _, readRows } = window.sayso;
  const APART_MS = 300;
  const q = new URLSearchParams(location.search).get("q");
  const timers = new Map();

  const members = (group) => group.dataset.members.split(" ");
  const suspensionOf = (rowId) => rowId.slice(0, rowId.lastIndexOf("-"));

  function find(fresh) {
    const groups = [...document.querySelectorAll("#rows li.several")];
    return groups.find((group) => members(group).includes(fresh.id))
      ?? (fresh.dataset.alike && groups.find((group) => group.id === `alike-${fresh.dataset.alike}`));
  }

  function makeClosed(group) {
    const closed = Object.assign(document.createElement("li"), { id: group.id, className: "item gone" });
    closed.append(Object.assign(document.createElement("p"), { textContent: _("All of these are decided") }));
    return closed;
  }

  async function load(group) {
    timers.delete(group);
    const ids = [...new Set(members(group).map(suspensionOf))];
    const found = await readRows(ids, { alike: group.id.replace("alike-", ""), q }).catch(() => null);
    if (!found || !group.isConnected) return;
    const fresh = found.querySelector("li.several");
    if (fresh) group.dataset.members = fresh.dataset.members;
    document.dispatchEvent(new CustomEvent("alike", { detail: fresh ?? makeClosed(group) }));
  }

  document.addEventListener("row", (event) => {
    const fresh = event.detail;
    const known = document.getElementById(fresh.id);
    if (known && fresh.dataset.members) known.dataset.members = fresh.dataset.members;
    if (known) return; // a row of its own
    if (fresh.dataset.members) { // its items have rows already: they stay until the page is opened again
      const missing = members(fresh).filter((id) => !document.getElementById(id));
      if (missing.length === members(fresh).length) return;
      event.preventDefault();
      const detail = missing.map(suspensionOf);
      if (detail.length) document.dispatchEvent(new CustomEvent("rows", { detail, cancelable: true })); // to inbox.js
      return;
    }
    const group = find(fresh);
    if (!group) return;
    event.preventDefault();
    if (!members(group).includes(fresh.id)) group.dataset.members += ` ${fresh.id}`;
    if (!timers.has(group)) timers.set(group, setTimeout(load, APART_MS, group));
  });
})();
