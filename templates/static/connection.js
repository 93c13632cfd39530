// Says whether the page is connected to the service, from the events of live.js: a dot, and after a while a bar.
(() => {
  "use strict";
  const { _ } = window.sayso;
  const PATIENCE_MS = 5000;
  const bar = document.getElementById("offline");
  const dot = document.getElementById("dot");
  let lost = null;

  const NAMES = { connecting: _("Connecting"), live: _("Live") };

  function mark(state) {
    dot.hidden = false;
    dot.dataset.state = state;
    dot.title = NAMES[state];
    dot.setAttribute("aria-label", NAMES[state]);
  }

  mark("connecting");
  document.addEventListener("connected", () => {
    clearTimeout(lost);
    lost = null;
    bar.hidden = true;
    mark("live");
  });
  document.addEventListener("disconnected", () => {
    if (lost !== null || document.hidden) return;
    mark("connecting");
    const since = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
    lost = setTimeout(() => {
      bar.textContent = _("Not connected since %(time)s. This page may be old; every decision is checked before it counts.", { time: since });
      bar.hidden = false;
    }, PATIENCE_MS);
  });
})();
