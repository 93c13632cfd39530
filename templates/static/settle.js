// Ignores a press on the decision within 400 ms of a change of its bar: it was aimed at what stood there before. A key is
// aimed at nothing, so it counts at once.
(() => {
  "use strict";
  const SETTLE_MS = 400;

  document.addEventListener("DOMContentLoaded", () => {
    const answers = document.getElementById("answers");
    const bar = answers.closest(".decide");
    let settling = null, turned = false;

    function settle() {
      bar.setAttribute("aria-disabled", "true");
      clearTimeout(settling);
      settling = setTimeout(() => {
        bar.removeAttribute("aria-disabled");
        turned = false;
      }, SETTLE_MS);
    }

    const versions = document.getElementById("versions");
    const hold = (event) => {
      const leads = event.target.closest(".wide[aria-disabled]"); // item.js leads to the next text and sends nothing
      const opens = !turned && event.target.closest(".starter"); // sends nothing
      if (!event.detail || leads || opens || !bar.hasAttribute("aria-disabled") || !event.target.closest("button, a")) return;
      event.preventDefault();
      event.stopPropagation();
    };
    bar.addEventListener("click", hold, true);
    versions?.addEventListener("click", (event) => { if (event.target.closest("button")) hold(event); }, true);
    const isChange = ({ type, target, attributeName, oldValue }) =>
      type === "childList" || target.getAttribute(attributeName) !== oldValue;
    const observer = new MutationObserver((records) => { if (records.some(isChange)) settle(); });
    const attributeFilter = ["open", "hidden", "aria-disabled"];
    observer.observe(answers, { subtree: true, childList: true, attributeFilter, attributeOldValue: true });
    observer.observe(bar, { childList: true }); // arm.js puts its question there
    if (versions) observer.observe(versions, { subtree: true, childList: true }); // a batch has none
    // A form is opened or closed: other buttons come to lie under the pointer.
    bar.addEventListener("click", ({ target }) => {
      if (!target.closest(".starter, .leave")) return;
      turned = true;
      settle();
    });
    // The second press of a double click leaves the focus in the form that the first one opened.
    bar.addEventListener("mousedown", (event) => { if (turned) event.preventDefault(); });
    addEventListener("hashchange", settle);
    addEventListener("pageshow", ({ persisted }) => { if (persisted) settle(); });
    settle();
  });
})();
