// Copies a text that is shown once. Without this script, people select it.
(() => {
  "use strict";
  const { _ } = window.sayso;
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.hidden = !navigator.clipboard; // it exists over https and on this machine only
    button.addEventListener("click", async () => {
      const text = document.getElementById(button.dataset.copy).textContent;
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = _("Copied");
      } catch {
        button.textContent = _("Not copied: select the text");
      }
    });
  }
})();
