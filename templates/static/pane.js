// Parts of split.js that need nothing of its state: focus, sight, the line on the latest decision, and the next row.
(() => {
  "use strict";
  const isModified = (event) => event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button;

  function focusHeading(frame) {
    const heading = frame.contentDocument.querySelector("h1");
    heading?.setAttribute("tabindex", "-1");
    frame.contentWindow.focus();
    heading?.focus({ preventScroll: true });
  }

  // An item that opened by itself is seen from the reviewer's first act on.
  function note(frame) {
    const { document: page, history: past, location: place } = frame.contentWindow;
    if (!place.search.includes("quiet=")) return;
    past.replaceState(null, "", place.pathname);
    fetch(place.pathname);
    page.dispatchEvent(new Event("noted")); // for presence.js
  }

  // After a decision the next item opens, and the line above it says what was decided.
  function tell(latest, row, page) {
    row?.toggleAttribute("data-decided", true); // its event is still to come
    const link = Object.assign(document.createElement("a"), { href: page.location.pathname, textContent: page.querySelector("h1").textContent });
    const receipt = page.querySelector(".receipt");
    latest.className = receipt ? receipt.className.replace("panel receipt", "latest") : "latest";
    latest.replaceChildren(link, `: ${page.querySelector(".receipt h2, .ineligible")?.textContent}`);
  }

  function findNeighbour(links, row, by) {
    const others = links.filter((link) => !row?.contains(link));
    const ahead = others.filter((link) => row && row.compareDocumentPosition(link) & Node.DOCUMENT_POSITION_FOLLOWING);
    const behind = others.filter((link) => !ahead.includes(link));
    return by > 0 ? [...ahead, ...behind][0] : [...behind.reverse(), ...ahead.reverse()][0];
  }

  window.sayso.pane = { findNeighbour, focusHeading, isModified, note, tell };
})();
