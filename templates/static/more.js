// Appends the next rows to the inbox in place of leading to another page. A row that is left keeps its place in the
// address, so that Back, a sign-in and the way back from an item lead to it, also behind the first rows.
(() => {
  "use strict";
  const MOST = 20; // times that rows are loaded to find a row again
  const { put, showSections } = window.sayso;
  const next = () => document.querySelector("#inbox .pager [rel=next], #inbox .further");
  const rows = () => document.getElementById("rows");
  const suspensionOf = (rowId) => rowId.slice(0, rowId.lastIndexOf("-"));

  // A row of alike items that is there already takes the items of the other.
  function add(row) {
    if (!document.getElementById(row.id)) put(row);
    else if (row.dataset.members) {
      const detail = [...new Set(row.dataset.members.split(" ").map(suspensionOf))];
      document.dispatchEvent(new CustomEvent("rows", { detail, cancelable: true }));
    }
  }

  async function load(link) {
    link.setAttribute("aria-busy", "true");
    const response = await fetch(link.href, { cache: "no-store", headers: { "X-Sayso-Live": "1" } });
    if (!response.ok || response.redirected) throw new Error("the rows cannot be read");
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    const found = fresh.getElementById("rows"), onward = fresh.querySelector("#inbox [rel=next], #inbox .further");
    for (const row of found?.querySelectorAll("li[id]") ?? []) add(document.importNode(row, true));
    showSections();
    rows().toggleAttribute("data-more", Boolean(onward));
    if (onward) link.replaceWith(document.importNode(onward, true));
    else link.remove();
  }

  async function find(rowId) {
    for (let times = 0; times < MOST && !document.getElementById(rowId) && next() && rows(); times += 1) await load(next());
    const link = document.getElementById(rowId)?.querySelector("h3 a");
    link?.focus({ preventScroll: true });
    link?.scrollIntoView({ block: "center" });
  }

  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const link = event.target.closest("a[href]");
    if (link && link === next() && rows()) {
      event.preventDefault();
      load(link).catch(() => location.assign(link.href));
    } else if (link?.matches("#rows a") && !window.sayso.split?.isOpen()) {
      const place = new URLSearchParams(location.search);
      place.set("at", link.closest("li").id);
      history.replaceState(null, "", `/?${place}`);
    }
  });
  const at = location.hash.startsWith("#at=") ? location.hash.slice(4) : new URLSearchParams(location.search).get("at");
  if (at && !window.sayso.split?.isOpen()) find(at).catch(() => {}); // the first rows stay
})();
