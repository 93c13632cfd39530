// Guards a decision. Until the end of every value and of every long text was in view, the main button leads to the next
// of them and sends nothing.
// During an edit the plain approve form is not on the page. This runs before the page is drawn, so no form is sent
// earlier. Without scripts the server shows everything in full, and edits on a separate page.
(() => {
  "use strict";
  const RUNS = ".approval, .edit, .value";
  const TEXTS = ".sheet > section.panel:not(.past) :is(td, p, pre, blockquote)";
  const LONG_CHARS = 400;
  const unread = new Set();
  const names = new WeakMap(); // not in the page, where live.js would find a change
  let ready = false, answers = null, approval = null;

  document.addEventListener("submit", (event) => {
    if ((!ready || unread.size) && event.target.matches(RUNS)) event.preventDefault();
  }, true);

  // A reviewer reads an item once per tab, even if the page is shown again, such as after an error. With its secret
  // values, or as another version, it is another text.
  function readKey() {
    const { display } = document.querySelector(".what").dataset;
    return `read ${document.querySelector(".who")?.textContent} ${location.pathname} ${display}`;
  }

  function guard() {
    const rest = unread.size === 1 ? "1 text not yet shown" : `${unread.size} texts not yet shown`;
    for (const form of answers.querySelectorAll(RUNS)) {
      const button = form.querySelector(".wide");
      if (!names.has(button)) names.set(button, button.textContent);
      if (!unread.size) button.removeAttribute("aria-disabled");
      else if (!button.hasAttribute("aria-disabled")) button.setAttribute("aria-disabled", "true"); // else no change
      const name = unread.size ? `${names.get(button)} · ${rest}` : names.get(button);
      if (button.textContent !== name) button.textContent = name;
    }
  }

  function showNext() {
    const [next] = [...unread].sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top);
    if (!next) return;
    const { top, bottom } = next.getBoundingClientRect();
    if (top < 8 && bottom > innerHeight) scrollBy(0, innerHeight * 0.7);
    else next.scrollIntoView({ block: "start" });
    next.tabIndex = -1;
    next.focus({ preventScroll: true });
  }

  function watch() {
    const covered = document.querySelector(".decide").offsetHeight; // the bar hides what is below it
    const ends = new IntersectionObserver((seen) => {
      for (const { isIntersecting, target } of seen) {
        if (!isIntersecting) continue;
        ends.unobserve(target);
        unread.delete(target.parentElement);
        target.remove(); // shown.js counts the others
      }
      if (!unread.size) sessionStorage.setItem(readKey(), "1");
      guard();
    }, { rootMargin: `0px 0px -${covered}px 0px` });
    for (const text of document.querySelectorAll(TEXTS)) {
      const required = text.matches(".what td") || text.textContent.length > LONG_CHARS;
      if (!required || text.closest("details:not([open])")) continue;
      const end = Object.assign(document.createElement("span"), { className: "end" });
      text.append(end);
      unread.add(text);
      ends.observe(end);
    }
  }

  function changed(control) {
    if (!control.options) return control.value !== control.defaultValue;
    return control.selectedIndex !== Math.max(0, [...control.options].findIndex((option) => option.defaultSelected));
  }

  const countChanges = (form) => [...form.querySelectorAll("input:not([type=hidden]), textarea, select")].filter(changed).length;

  function begin(opener, edit) {
    approval = answers.querySelector(".approval");
    approval?.remove();
    opener.hidden = true;
    edit.hidden = false;
    guard();
  }

  function stop(opener, edit) {
    edit.reset();
    edit.hidden = true;
    opener.hidden = false;
    opener.before(approval);
    approval = null;
    opener.focus();
    guard();
  }

  function confirmStop(edit) {
    const count = countChanges(edit);
    if (!count) return answers.dataset.forms !== "kept" || confirm("Discard your input?");
    return confirm(`Discard ${count} change${count === 1 ? "" : "s"}?`);
  }

  function press(event) {
    if (event.target.closest(".wide[aria-disabled]")) {
      event.preventDefault();
      showNext();
      return;
    }
    const link = event.target.closest(".begin, .stop");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const opener = answers.querySelector(".begin");
    const edit = answers.querySelector(".edit");
    if (link === opener) {
      event.preventDefault();
      begin(opener, edit);
      edit.querySelector("input:not([type=hidden]), textarea, select")?.focus();
    } else if (!confirmStop(edit)) {
      event.preventDefault();
    } else if (approval) {
      event.preventDefault();
      stop(opener, edit);
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    answers = document.getElementById("answers");
    answers.addEventListener("click", press);
    if (!sessionStorage.getItem(readKey())) watch();
    guard();
    new MutationObserver(guard).observe(answers, { childList: true }); // live.js replaces it
    ready = true;
  });

  // A browser that goes back or reloads may restore the input, and with it an unfinished edit.
  addEventListener("pageshow", () => {
    const edit = answers.querySelector(".edit[hidden]");
    if (edit && countChanges(edit)) begin(answers.querySelector(".begin"), edit);
  });
})();
