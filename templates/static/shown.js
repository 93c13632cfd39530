// Sends with a decision which values were not in view to their end, and for how long the item was open. item.js marks
// each unread text with an element .end; one that was read in this tab has none.
(() => {
  "use strict";
  const { ngettext } = window.sayso;
  const TABLES = ":is(#call > table, #call > .first > table, #call > .unchanged > table) > tbody > tr";
  const RUNS = ".approval, .edited, .value, .alternative";

  document.addEventListener("DOMContentLoaded", () => {
    const answers = document.getElementById("answers"), forms = document.getElementById("forms");
    const what = document.querySelector(".what");
    const counted = document.querySelector(".counted");
    const { display } = what.dataset;
    const rows = [...what.querySelectorAll(TABLES)];
    const lookKey = `look ${document.querySelector(".who")?.textContent} ${location.pathname} ${display}`;
    const earlierMs = Number(sessionStorage.getItem(lookKey));
    const lookMs = () => earlierMs + Math.round(performance.now());
    const unseen = () => [...rows.keys()].filter((place) => rows[place].querySelector(".end"));

    function count() {
      const values = rows.reduce((sum, row) => sum + Number(row.dataset.values ?? 1), 0);
      const all = rows.length && document.querySelector(RUNS) && !unseen().length;
      counted.textContent = all ? ngettext("%(num)s value shown", "All %(num)s values shown", values) : "";
    }

    function update() {
      count();
      if (!document.querySelector(RUNS) || answers.dataset.display === display) return;
      answers.inert = true; // live.js brought the forms of other arguments than those on the page
      location.replace(location.pathname + location.search);
    }

    let sent = null; // other scripts read forms that are not sent
    addEventListener("submit", ({ defaultPrevented, target }) => { sent = defaultPrevented ? null : target; });
    document.addEventListener("formdata", ({ target, formData }) => {
      const own = answers.contains(target) || forms.contains(target) || target.matches(".alternative");
      if (target !== sent || !own || !formData.has("answer") || !display) return;
      formData.set("display", display);
      formData.set("unseen", unseen().join());
      formData.set("look_ms", lookMs());
    });
    addEventListener("pagehide", () => sessionStorage.setItem(lookKey, lookMs()));
    new MutationObserver(count).observe(what, { subtree: true, childList: true });
    new MutationObserver(update).observe(answers, { childList: true });
    count();
  });
})();
