// Asks before input that was not sent is discarded, however the item's page is left. Beside the inbox, split.js asks
// first and then calls `discard`.
(() => {
  "use strict";
  const FIELDS = "main form [name]:is(input:not([type=hidden]), textarea:not([readonly]), select)";
  const DECISION = "#edit, #forms, .decide, .extend"; // what is typed there is sent, kept by the next page, or needless
  let sent = null, decides = false, discarded = false;

  function isTyped() {
    const kept = [...document.querySelectorAll("[data-kept]")];
    if (kept.some((form) => form !== sent && !(decides && form.closest(DECISION)))) return true;
    const fields = [...document.querySelectorAll(FIELDS)].filter((field) => !(decides && field.closest(DECISION)));
    return fields.some((field) => field.form !== sent && window.sayso.changed(field));
  }

  addEventListener("submit", ({ target, defaultPrevented }) => {
    if (defaultPrevented) return;
    sent = target;
    decides = Boolean(target.closest(DECISION));
  });
  addEventListener("click", ({ target, defaultPrevented }) => {
    if (!defaultPrevented && target.closest?.(".begin, .stop")) decides = true; // edit.js keeps the reason, or has asked
  });
  for (const type of ["input", "pageshow"]) {
    addEventListener(type, () => {
      sent = null;
      decides = discarded = false;
    });
  }
  addEventListener("beforeunload", (event) => { if (!discarded && isTyped()) event.preventDefault(); });
  Object.assign(window.sayso, { isTyped, discard: () => { discarded = true; } });
})();
