// Says whether the page is connected to the service, from the events of live.js: a dot, and after a while a bar.
(() => {
  "use strict";
  const PATIENCE_MS = 5000;
  const bar = document.getElementById("offline");
  const dot = document.getElementById("dot");
  let lost = null;

  function mark(state) {
    dot.hidden = false;
    dot.dataset.state = state;
    dot.title = state;
    dot.setAttribute("aria-label", state);
  }

  mark("Connecting");
  document.addEventListener("connected", () => {
    clearTimeout(lost);
    lost = null;
    bar.hidden = true;
    mark("Live");
  });
  document.addEventListener("disconnected", () => {
    if (lost !== null || document.hidden) return;
    mark("Connecting");
    const since = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
    lost = setTimeout(() => {
      bar.textContent = `Not connected since ${since}. This page may be old; every decision is checked before it counts.`;
      bar.hidden = false;
    }, PATIENCE_MS);
  });
})();
