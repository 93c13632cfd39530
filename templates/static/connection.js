// Says when the page has lost its connection to the service, from the events of live.js.
(() => {
  "use strict";
  const PATIENCE_MS = 5000;
  const bar = document.getElementById("offline");
  let lost = null;

  document.addEventListener("connected", () => {
    clearTimeout(lost);
    lost = null;
    bar.hidden = true;
  });
  document.addEventListener("disconnected", () => {
    if (lost !== null || document.hidden) return;
    const since = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
    lost = setTimeout(() => {
      bar.textContent = `Not connected since ${since}. This page may be old; every decision is checked before it counts.`;
      bar.hidden = false;
    }, PATIENCE_MS);
  });
})();
