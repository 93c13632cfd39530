// From 1,200 px on, shows items beside the inbox. The frame holds the item's own page, with every guard of that page.
// Nothing is sent to an item while another one is loading.
(() => {
  "use strict";
  const wide = matchMedia("(min-width: 1200px)");
  const DECISIONS = ".approval, .edited, .value, .deny";
  const main = document.getElementById("main");
  let pane = null, frame = null, current = null, wanted = null, sent = null;

  const links = () => [...document.querySelectorAll("#rows li:not(.gone, [data-others]) h3 a")];
  const rowOf = (path) => document.getElementById(path.split("/").slice(2).join("-"));
  const isLoading = () => frame.hasAttribute("aria-busy");
  const focusHeading = () => {
    const heading = frame.contentDocument.querySelector("h1");
    if (!heading) return;
    heading.tabIndex = -1;
    frame.contentWindow.focus();
    heading.focus({ preventScroll: true });
  };

  function make(path) {
    pane = Object.assign(document.createElement("section"), { className: "pane" });
    pane.setAttribute("aria-label", "Item");
    const bar = Object.assign(document.createElement("p"), { className: "latest" });
    bar.setAttribute("role", "status");
    frame = Object.assign(document.createElement("iframe"), { title: "Item", src: path });
    frame.addEventListener("load", loaded);
    pane.append(bar, frame);
    main.append(pane);
    document.body.classList.add("split");
  }

  function mark() {
    for (const row of document.querySelectorAll("#rows li[aria-current]")) row.removeAttribute("aria-current");
    rowOf(current)?.setAttribute("aria-current", "true");
  }

  function mayLeave() {
    const page = frame && !isLoading() && frame.contentDocument;
    if (!page) return true;
    const fields = [...page.querySelectorAll("main :is(input:not([type=hidden]), textarea:not([readonly]), select)")];
    const isTyped = fields.some(frame.contentWindow.sayso?.changed ?? (() => false)) || page.querySelector("[data-kept]");
    return !isTyped || confirm("Discard your input?");
  }

  // `quiet` is an item that opens by itself: it counts as seen once the reviewer does something there.
  function open(path, { focus = false, quiet = false } = {}) {
    if (frame && path === current && !isLoading()) {
      if (focus) focusHeading();
      return;
    }
    if (!mayLeave()) return;
    if (frame && isLoading()) wanted = { path, focus, quiet, queued: true }; // a held key opens the last row alone
    else load({ path, focus, quiet });
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
    const at = new URLSearchParams(location.search);
    at.set("at", rowOf(current)?.id ?? current.split("/").slice(2).join("-"));
    history.replaceState(null, "", `/?${at}`);
  }

  function loaded() {
    const page = frame.contentDocument; // null for a page that may not be framed, such as the sign-in
    frame.removeAttribute("aria-busy");
    if (!page) return location.assign(current);
    if (wanted?.queued) return load({ ...wanted, queued: false });
    const { pathname } = page.location;
    const isDecided = sent === pathname && page.querySelector("#answers[data-closed]") && !page.querySelector(".banner");
    const focus = wanted?.focus;
    sent = wanted = null;
    current = pathname;
    frame.inert = false;
    mark();
    hook(page);
    if (isDecided) advance(page);
    else if (focus) focusHeading();
  }

  function hook(page) {
    page.addEventListener("submit", (event) => {
      const { target, submitter, defaultPrevented } = event;
      if (!defaultPrevented && target.matches(DECISIONS) && !submitter?.matches(".back")) sent = current;
      if (!new URL(target.action).pathname.startsWith("/items/")) target.target = "_top";
    });
    page.addEventListener("click", (event) => {
      const link = event.target.closest("a[href]");
      if (link?.pathname === "/next") {
        event.preventDefault();
        step(1);
      } else if (link && !link.pathname.startsWith("/items/")) link.target = "_top";
    });
    if (!page.location.search.includes("quiet=")) return;
    const note = () => fetch(page.location.pathname);
    for (const type of ["pointermove", "keydown"]) page.addEventListener(type, note, { once: true });
  }

  // After a decision the next item opens, and the line above says what was decided.
  function advance(page) {
    const link = Object.assign(document.createElement("a"), { href: current, textContent: page.querySelector("h1").textContent });
    const outcome = page.querySelector(".receipt h2, .ineligible")?.textContent ?? "";
    pane.querySelector(".latest").replaceChildren(link, `: ${outcome}`);
    if (!step(1, true)) focusHeading();
  }

  function step(by, quiet = false) {
    const all = links(), row = rowOf(current);
    const ahead = all.filter((link) => row && row.compareDocumentPosition(link) & Node.DOCUMENT_POSITION_FOLLOWING && !row.contains(link));
    const behind = all.filter((link) => !ahead.includes(link) && !row?.contains(link));
    const [next] = by > 0 ? [...ahead, ...behind] : [...behind.reverse(), ...ahead.reverse()];
    if (next) open(next.pathname, { focus: true, quiet });
    return Boolean(next);
  }

  function press(event) {
    const link = event.target.closest("#rows h3 a, .latest a");
    const modified = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    if (!link || !wide.matches || modified || event.button) return;
    event.preventDefault();
    open(link.pathname, { focus: event.detail === 0 || link.matches(".latest a") }); // a key presses with detail 0
  }

  const itemKeys = () => frame.contentWindow.sayso?.keys;

  function act(keys) {
    if (!itemKeys()?.works(keys)) return false;
    focusHeading(); // the next key, such as the Enter that sends, goes to the item
    return itemKeys().act(keys);
  }

  document.addEventListener("click", press);
  new MutationObserver(() => { if (current) mark(); }).observe(document.getElementById("inbox"), { childList: true, subtree: true });
  window.sayso.split = {
    isOpen: () => Boolean(frame), open: (link) => open(link.pathname), step,
    focusRow: () => (rowOf(current)?.querySelector("a") ?? links()[0])?.focus(),
    keys: () => (frame && !isLoading() ? { works: (keys) => itemKeys()?.works(keys), act } : null),
  };
  const at = new URLSearchParams(location.search).get("at") ?? location.hash.replace("#at=", "");
  const first = document.getElementById(at)?.querySelector("h3 a") ?? links()[0];
  if (wide.matches && first) open(first.pathname, { quiet: true });
})();
