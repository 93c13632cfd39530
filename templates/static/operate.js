// Checks the parts again while the page is open: an older state is no longer shown as working.
(() => {
  "use strict";
  setInterval(() => {
    if (!document.hidden) document.dispatchEvent(new Event("refresh")); // live.js fetches the page again
  }, 15_000);
})();
