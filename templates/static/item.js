// Guards a decision. Until the end of every value and of every long text was in view, the main button leads to the next
// of them and sends nothing.
// This runs before the page is drawn, so no form is sent earlier. Without scripts the server shows everything in full.
(() => {
  "use strict";
  const { _, ngettext } = window.sayso;
  const RUNS = ".approval, .edited, .value, .alternative";
  const TEXTS = ".sheet > :is(section.panel, .prompt) :is(td, p, pre, blockquote)";
  const FOLDS = "#call .fold";
  const LONG_CHARS = 400;
  if (window !== parent) document.documentElement.classList.add("framed"); // split.js shows it in a frame
  const unread = new Set();
  const names = new WeakMap(); // not in the page, where live.js would find a change
  let ready = false, answers = null;

  document.addEventListener("submit", (event) => {
    const back = event.submitter?.name === "step"; // sends no decision
    if ((!ready || unread.size) && event.target.matches(RUNS) && !back) event.preventDefault();
  }, true);

  // A reviewer reads an item once per tab, even if the page is shown again, such as after an error. With its secret
  // values it is another text.
  const readKey = (values = answers.dataset.values) =>
    `read ${document.querySelector(".who")?.textContent} ${location.pathname} ${values}`;

  // The button of a requested value names what it sends, except a secret or what is too long to read there.
  const PLAIN = /^[\p{L}\p{N}][\p{L}\p{N} .,:_-]{0,23}$/u;

  function nameOf(button) {
    const controls = [...button.form?.elements ?? []].filter((one) => one.matches(".value:not(.doubt) :is(input:not([type=hidden]), select, textarea)"));
    const places = new Set(controls.map((one) => one.name));
    const [chosen] = controls.filter((one) => one.type !== "radio" || one.checked);
    if (places.size !== 1 || !chosen || chosen.type === "password") return names.get(button);
    const choice = chosen.type === "radio" ? chosen.closest("label").textContent : chosen.selectedOptions?.[0].text;
    const value = choice ?? chosen.value;
    if (!chosen.value || !PLAIN.test(value)) return names.get(button);
    return choice === undefined ? _("Send %(value)s", { value }) : _("Choose %(value)s", { value });
  }

  // A value that was begun takes the approval of another call away.
  function isBegun() {
    const fields = document.querySelectorAll("#forms .value :is(input:not([type=hidden]), select, textarea)");
    return [...fields].some((field) => window.sayso.changed?.(field));
  }

  function guard() {
    document.getElementById("forms").classList.toggle("begun-value", isBegun());
    const rest = ngettext("%(num)s text not yet shown", "%(num)s texts not yet shown", unread.size);
    for (const form of document.querySelectorAll(RUNS)) {
      // The bar has the button, the page the form; a call in doubt has three. None if the rules deny the edit.
      for (const button of [...form.elements].filter((one) => one.matches(".wide"))) {
        if (!names.has(button)) names.set(button, button.textContent);
        if (!unread.size) button.removeAttribute("aria-disabled");
        else if (!button.hasAttribute("aria-disabled")) button.setAttribute("aria-disabled", "true"); // else no change
        const name = unread.size && !form.matches(".alternative") ? `${nameOf(button)} · ${rest}` : nameOf(button);
        if (button.textContent !== name) button.firstChild.data = name; // typing does not unsettle the bar, see settle.js
      }
    }
  }

  // The bar hides what is below it; the cards of a call in doubt stand in the page and hide nothing.
  const covered = () => document.querySelector(".decide:not(.panel)")?.offsetHeight ?? 0;

  function showNext() {
    const [next] = [...unread].sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top);
    if (!next) return;
    document.getElementById("view-read")?.click(); // the other views count as nothing shown
    next.querySelector("button.rest")?.click();
    if (next.matches(".fold")) next.open = true;
    const { top, bottom } = next.getBoundingClientRect();
    if (top < 8 && bottom > innerHeight - covered()) scrollBy(0, innerHeight * 0.7);
    else next.scrollIntoView({ block: "start" });
    next.tabIndex = -1;
    next.focus({ preventScroll: true });
  }

  // In the review of an edit, what stays as requested may have been read before.
  const wasRead = () => sessionStorage.getItem(readKey(answers.dataset.values.replace(" reviewed", "")));

  function watch() {
    const ends = new IntersectionObserver((seen) => {
      for (const { isIntersecting, target } of seen) {
        if (!isIntersecting) continue;
        ends.unobserve(target);
        unread.delete(target.parentElement);
        target.remove(); // shown.js counts the others
      }
      if (!unread.size) sessionStorage.setItem(readKey(), "1");
      guard();
    }, { root: document, rootMargin: `0px 0px -${covered()}px 0px` });
    for (const text of document.querySelectorAll(`${TEXTS}, ${FOLDS}`)) {
      const required = text.matches(`.what td, ${FOLDS}`) || text.textContent.length > LONG_CHARS;
      if (!required || text.closest("details:not([open], .fold), .tree, .raw, .like")) continue;
      if (text.matches(".merged .fold") && wasRead()) continue; // equal lines
      const end = Object.assign(document.createElement("span"), { className: "end" });
      text.append(end);
      unread.add(text);
      if (text.querySelector("noscript.rest")) text.addEventListener("built", () => ends.observe(end));
      else ends.observe(end);
    }
  }

  function press(event) {
    if (!event.target.closest(".wide[aria-disabled]")) return;
    event.preventDefault();
    showNext();
  }

  document.addEventListener("DOMContentLoaded", () => {
    answers = document.getElementById("answers");
    document.addEventListener("click", press);
    for (const type of ["input", "change"]) document.addEventListener(type, guard);
    const unchanged = document.querySelector(".unchanged");
    if (unchanged) unchanged.open = !wasRead();
    for (const fold of document.querySelectorAll(FOLDS)) fold.open = false;
    if (!document.getElementById("edit") && !sessionStorage.getItem(readKey())) watch();
    guard();
    for (const region of [answers, document.getElementById("forms")]) {
      new MutationObserver(guard).observe(region, { childList: true }); // live.js replaces it
    }
    ready = true;
  });
})();
