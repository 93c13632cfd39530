// Says whether the page is connected to the service, from the events of live.js: a dot, and after a while a bar.
(() => {
  "use strict";
  const { _ } = window.sayso;
  const PATIENCE_MS = 5000, REACH_MS = 4000;
  const bar = document.getElementById("offline");
  const dot = document.getElementById("dot");
  const notice = document.getElementById("notice");
  let lost = null, checked = null;

  async function reach() {
    try {
      return (await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(REACH_MS) })).ok;
    } catch {
      return false;
    }
  }

  const NAMES = { connecting: _("Connecting"), live: _("Live"), stale: _("Not connected") };

  function mark(state) {
    dot.hidden = false;
    dot.dataset.state = state;
    dot.title = NAMES[state];
    dot.setAttribute("aria-label", NAMES[state]);
  }

  function show(since) {
    mark("stale");
    bar.textContent = _("Not connected since %(time)s. This page may be old; every decision is checked before it counts.", { time: since });
    bar.hidden = false;
  }

  mark("connecting");
  document.addEventListener("connected", () => {
    clearTimeout(lost);
    lost = null;
    bar.hidden = true;
    mark("live");
  });
  document.addEventListener("disconnected", ({ detail: { stale } = {} }) => {
    if (document.hidden || (lost !== null && !stale)) return;
    const since = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
    clearTimeout(lost);
    if (bar.hidden) mark("connecting");
    lost = setTimeout(() => { if (bar.hidden) show(since); }, stale ? 0 : PATIENCE_MS);
  });

  // Nothing is sent into a dead line, where the browser would replace the page and what was typed by its own message:
  // each press asks the line first. What was not sent is sent by another press alone.
  document.addEventListener("submit", (event) => {
    const { target: form, submitter } = event;
    if (form === checked || form.method !== "post") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (form.matches("[aria-busy]")) return;
    form.setAttribute("aria-busy", "true");
    reach().then((reached) => {
      form.removeAttribute("aria-busy");
      if (!reached) {
        notice.textContent = _("Not sent: there is no connection to Sayso. Your input stays on this page. Try again once you are connected.");
        return;
      }
      notice.textContent = "";
      if (!(submitter ?? form).isConnected) return; // the page has changed under the press
      checked = form;
      if (submitter) form.requestSubmit(submitter);
      else form.requestSubmit();
      checked = null;
    });
  }, true);
  // A link pressed meanwhile would take the page away, and the press with it.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]:not([href^='#'], [target])");
    if (!link || !document.querySelector("form[aria-busy]") || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
})();
