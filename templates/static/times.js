// Counts times down and up, in the reader's time zone. The store's clock counts, not the browser's.
(() => {
  "use strict";
  let skew = Number(document.body.dataset.now) - Date.now();

  const { _ } = window.sayso;

  // The same words as sayso/core/sentences/deadlines.py.
  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  function span(ms) {
    let rest = Math.floor(Math.max(0, ms) / 1000);
    const words = [];
    for (const [size, unit] of UNITS) {
      if (rest >= size || (unit === "s" && !words.length)) {
        words.push(`${Math.floor(rest / size)} ${unit}`);
        rest %= size;
        if (!rest || words.length === 2) break;
      } else if (words.length) break;
    }
    return words.join(" ");
  }

  const part = (moment, options) => new Intl.DateTimeFormat(document.documentElement.lang, options).format(moment);

  function due(at, now) {
    const left = at - now;
    if (left < 600000) return left > 0 ? span(left < 60000 ? left : Math.floor(left / 60000) * 60000) : _("time is up");
    const moment = new Date(at), midnight = new Date(now).setHours(0, 0, 0, 0);
    const days = Math.round((new Date(at).setHours(0, 0, 0, 0) - midnight) / 86400000);
    if (!days) return moment.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
    return days < 7 ? part(moment, { weekday: "short" }) : `${moment.getDate()} ${part(moment, { month: "short" })}`;
  }

  const ago = (ms) => (ms < 1000 ? _("just now") : _("%(span)s ago", { span: span(ms).split(" ").slice(0, 2).join(" ") }));
  // A text that counts adds and removes no node: settle.js would take that for another button.
  function put(node, text) {
    if (node.textContent === text) return;
    if (node.firstChild instanceof Text && node.childNodes.length === 1) node.firstChild.data = text;
    else node.textContent = text;
  }
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  // The next pages have their other times in this zone, too, such as those within sentences.
  document.cookie = `sayso_zone=${timeZone}; path=/; max-age=31536000; samesite=lax${location.protocol === "https:" ? "; secure" : ""}`;

  function tick(root) {
    const now = Date.now() + skew;
    for (const node of root.querySelectorAll(".zone")) put(node, _("Times are in %(zone)s.", { zone: timeZone }));
    for (const node of root.querySelectorAll("[data-left]")) {
      const left = Number(node.dataset.left) - now;
      put(node, left > 0 ? _("in %(span)s", { span: span(left) }) : _("time is up"));
      node.classList.toggle("soon", left < 60000);
    }
    for (const node of root.querySelectorAll("[data-until]")) put(node, span(Number(node.dataset.until) - now + 999));
    for (const node of root.querySelectorAll("[data-due-at]")) {
      const at = Number(node.dataset.dueAt);
      put(node, due(at, now));
      node.classList.toggle("soon", at - now < 600000);
    }
    for (const node of root.querySelectorAll("[data-ago]")) put(node, ago(now - Number(node.dataset.ago)));
    for (const node of root.querySelectorAll("[data-moment]")) {
      const moment = new Date(Number(node.dataset.moment));
      const day = moment.toDateString() === new Date(now).toDateString() ? {} : { day: "numeric", month: "short", year: "numeric" };
      const text = moment.toLocaleString([], { ...day, hour: "2-digit", minute: "2-digit", hour12: false, timeZoneName: "short" });
      put(node, node.dataset.words?.replace("{}", text) ?? text);
    }
    for (const node of root.querySelectorAll("[data-hour]")) {
      const moment = new Date(Number(node.dataset.hour));
      put(node, moment.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false, timeZoneName: "short" }));
    }
  }

  // A page fetched again carries the time at which it was made.
  document.addEventListener("fetched", ({ detail: fresh }) => {
    skew = Number(fresh.body.dataset.now) - Date.now();
    tick(fresh);
    tick(document);
  });
  window.sayso.now = () => Date.now() + skew; // for inbox.js
  tick(document);
  setInterval(() => tick(document), 1000);
})();
