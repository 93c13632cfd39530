// Shows who else has an item open, on its row and on its page, and says so of an item on this page while it is visible.
(() => {
  "use strict";
  const { _ } = window.sayso;
  const EVERY_MS = 10000;
  const csrf = document.querySelector("[name=csrf]")?.value ?? "";
  const main = document.getElementById("main");
  let present = {}, said = null;

  function describe(people) {
    if (!people.length) return "";
    const [first, second] = people;
    if (people.length === 1) return _("%(who)s looks", { who: first });
    return people.length === 2 ? _("%(first)s and %(second)s look", { first, second }) : _("%(count)s people look", { count: people.length });
  }

  function put(place, rowId) {
    const text = describe(present[rowId] ?? []);
    if (place.textContent !== text) place.textContent = text;
  }

  function show() {
    for (const line of main.querySelectorAll("li.item[id] .whose")) {
      const rowId = line.closest("li").id;
      let place = line.querySelector(".here");
      if (!place && !present[rowId]) continue;
      place ??= line.insertBefore(Object.assign(document.createElement("span"), { className: "here" }), line.firstChild);
      put(place, rowId);
    }
    for (const place of main.querySelectorAll("[data-here]")) put(place, place.dataset.row);
  }

  const body = (fields) => new URLSearchParams({ csrf, ...fields });

  async function say() {
    const path = main.querySelector("[data-here]")?.dataset.here;
    if (said && said !== path) leave();
    if (!path || document.hidden || location.search.includes("quiet=")) return; // split.js opened it, not the reviewer
    said = path;
    try {
      await fetch(path, { method: "POST", body: body({}), headers: { "X-Sayso-Live": "1" } });
    } catch { /* connection.js says that the page has no connection */ }
  }

  function leave() {
    if (said) navigator.sendBeacon(said, body({ left: "1" }));
    said = null;
  }

  document.addEventListener("connected", () => { present = {}; show(); });
  document.addEventListener("here", ({ detail }) => { present = detail; show(); });
  document.addEventListener("visibilitychange", () => { if (document.hidden) leave(); else say(); });
  document.addEventListener("noted", say); // from split.js
  addEventListener("pagehide", leave);
  new MutationObserver(show).observe(main, { childList: true, subtree: true });
  setInterval(say, EVERY_MS);
  say();
})();
