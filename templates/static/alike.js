// Keeps the inbox's rows of alike items current: a change of an item in one fetches its row again, and a new alike item
// joins it.
(() => {
  "use strict";
  const { _ } = window.sayso;
  const APART_MS = 300;
  const query = new URLSearchParams(location.search).get("q");
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
    const ids = [...new Set(members(group).map(suspensionOf))].slice(0, 50).join(",");
    const place = `/rows?ids=${ids}&alike=${group.id.replace("alike-", "")}${query ? `&q=${encodeURIComponent(query)}` : ""}`;
    const response = await fetch(place, { cache: "no-store", headers: { "X-Sayso-Live": "1" } }).catch(() => null);
    if (!response?.ok || response.redirected || !group.isConnected) return;
    const fresh = new DOMParser().parseFromString(`<ul>${await response.text()}</ul>`, "text/html").querySelector("li.several");
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
