// From 1,200 px on, shows items beside the inbox: their own pages in a frame, to which nothing is sent while it loads.
(() => {
  "use strict";
  const { _, pane: { findNeighbour, focusHeading, isModified, note, tell } } = window.sayso;
  const wide = matchMedia("(min-width: 1200px)");
  const main = document.getElementById("main");
  let pane = null, frame = null, current = null, wanted = null, sent = null, held = [];

  const links = () => [...document.querySelectorAll("#rows li:not(.gone, [data-decided], [data-others]) h3 a[href^='/items/']")];
  const rowIdOf = (path) => path.split("/").slice(2).join("-");
  const rowOf = (path) => document.getElementById(rowIdOf(path));
  const isLoading = () => frame.hasAttribute("aria-busy");
  const itemKeys = () => frame.contentWindow.sayso?.keys;

  function make(path) {
    pane = Object.assign(document.createElement("section"), { className: "pane", ariaLabel: _("Item") });
    frame = Object.assign(document.createElement("iframe"), { title: _("Item"), src: path });
    frame.addEventListener("load", loaded);
    pane.append(Object.assign(document.createElement("p"), { className: "latest", role: "status" }), frame);
    main.append(pane);
    document.body.classList.add("split");
  }

  function mark() {
    for (const row of document.querySelectorAll("#rows li[aria-current]")) row.removeAttribute("aria-current");
    rowOf(current)?.setAttribute("aria-current", "true");
  }

  function mayLeave() {
    const page = frame && !isLoading() && frame.contentDocument && frame.contentWindow.sayso;
    if (!page?.isTyped?.()) return true;
    if (!confirm(_("Discard your input?"))) return false;
    page.discard(); // or leave.js would ask again
    return true;
  }

  // Another page: leave.js asks for the ways out that do not pass by here, such as the browser's own buttons.
  function leave(event) {
    const link = event.type === "click" && event.target.closest("a[href]:not([target], [download])");
    const stays = event.type === "click" && (!link || isModified(event) || link.getAttribute("href").startsWith("#"));
    if (event.defaultPrevented || stays) return;
    if (!mayLeave()) event.preventDefault();
  }

  // `quiet` is an item that opens by itself: it counts as seen once the reviewer does something there.
  function open(path, { focus = false, quiet = false } = {}) {
    if (!quiet) held = []; // pressed for another item
    if (frame && path === current && !isLoading()) {
      note(frame);
      if (focus) focusHeading(frame);
    } else if (mayLeave()) {
      if (isBusy()) wanted = { path, focus, quiet, queued: true }; // a held key opens the last row alone
      else load({ path, focus, quiet });
    }
  }

  function load(next) {
    wanted = next;
    current = next.path;
    const target = `${location.origin}${current}${next.quiet ? "?quiet=1" : ""}`;
    if (frame) frame.contentWindow.location.replace(target);
    else make(target);
    frame.setAttribute("aria-busy", "true");
    frame.inert = true; // no key and no press reaches the item that is about to go
    mark();
    const place = new URLSearchParams(location.search);
    place.set("at", rowIdOf(current));
    history.replaceState(null, "", `/?${place}`);
  }

  function loaded() {
    const page = frame.contentDocument; // null for a page that may not be framed, such as the sign-in
    frame.removeAttribute("aria-busy");
    if (!page) return location.assign(current);
    const isDecided = sent === page.location.pathname && page.querySelector("#answers[data-closed]:not(:has(.undo))") && !page.querySelector(".banner");
    if (isDecided) tell(pane.querySelector(".latest"), rowOf(current), page);
    sent = null;
    if (wanted?.queued) return load({ ...wanted, queued: false });
    current = page.location.pathname;
    const focus = wanted?.focus;
    wanted = null;
    frame.inert = false;
    mark();
    hook(page);
    if (isDecided && step(1, true)) return;
    if (page.querySelector(".banner[role=alert]")) held = []; // the decision was refused, and this is the same item
    if (focus || isDecided || held.length) focusHeading(frame);
    if (held.length) note(frame);
    itemKeys()?.pressLater(held);
    held = [];
  }

  // A key waits for the item that is on its way. Enter is none of them: it confirms what is shown.
  const isSending = () => sent !== null || Boolean(frame.contentDocument?.querySelector("form[aria-busy]"));
  const isBusy = () => Boolean(frame) && (isLoading() || isSending());

  function hold(keys) {
    if (isBusy()) held.push(keys);
    return isBusy();
  }

  function hook(page) {
    page.addEventListener("submit", (event) => {
      const { target, submitter, defaultPrevented } = event;
      if (!defaultPrevented && target.matches(".approval, .edited, .value, .deny") && !submitter?.matches(".back")) send(event);
      if (!new URL(target.action).pathname.startsWith("/items/")) target.target = "_top";
    });
    page.addEventListener("click", (event) => {
      const link = event.target.closest("a[href]");
      if (link?.pathname === "/next") {
        event.preventDefault();
        step(1);
      } else if (link && !link.pathname.startsWith("/items/")) link.target = "_top";
    });
    for (const type of ["pointermove", "keydown"]) page.addEventListener(type, () => note(frame), { once: true });
  }

  // Until a decision has its result, nothing opens and no key reaches its item.
  function send(event) {
    sent = current;
    setTimeout(() => {
      if (event.defaultPrevented) sent = null; // by another listener
      else frame.setAttribute("aria-busy", "true");
      frame.inert = !event.defaultPrevented;
    });
  }

  function step(by, quiet = false) {
    const next = findNeighbour(links(), rowOf(current), by);
    if (next) open(next.pathname, { focus: true, quiet });
    return Boolean(next);
  }

  function press(event) {
    const link = event.target.closest("#rows h3 a[href^='/items/'], .latest a");
    if (!link || !wide.matches || isModified(event)) return;
    event.preventDefault();
    open(link.pathname, { focus: event.detail === 0 || link.matches(".latest a") }); // a key presses with detail 0
  }

  function act(keys) {
    if (!itemKeys()?.works(keys)) return false;
    note(frame);
    focusHeading(frame); // the next key, such as the Enter that sends, goes to the item
    return itemKeys().act(keys);
  }

  document.addEventListener("click", press);
  for (const type of ["click", "submit"]) addEventListener(type, leave);
  new MutationObserver(() => { if (current) mark(); }).observe(document.getElementById("inbox"), { childList: true, subtree: true });
  window.sayso.split = {
    isOpen: () => Boolean(frame), open: (link) => link.matches("[href^='/items/']") && open(link.pathname), step, isBusy, hold,
    focusRow: () => (rowOf(current)?.querySelector("a") ?? links()[0])?.focus(),
    keys: () => (frame && !isLoading() ? { works: (keys) => itemKeys()?.works(keys), act } : null),
  };
  const at = new URLSearchParams(location.search).get("at") ?? location.hash.replace("#at=", "");
  const first = document.getElementById(at)?.querySelector("h3 a") ?? links()[0];
  if (wide.matches && first) open(first.pathname, { quiet: true });
})();
