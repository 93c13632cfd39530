// Asks once more before an approval: the key `a`, or a press on an approval with a severe warning, arms it and puts its
// question into the bar. Enter, or a second press, sends. Everything else, 5 s, and a change of the item disarm it.
(() => {
  "use strict";
  const ARMED_MS = 5000;
  const one = (selector) => document.querySelector(selector);
  const approval = () => [...document.querySelectorAll(".approval .wide, .edited .wide")].find((button) => button.checkVisibility());
  let armed = null;

  function arm() {
    const button = approval();
    if (button?.matches("[aria-disabled]")) {
      button.click(); // leads to the next text that was not yet shown, and sends nothing
      return;
    }
    if (!button) return;
    const missing = [...button.form.elements].find((field) => field.matches(":invalid"));
    if (missing) {
      missing.focus();
      return;
    }
    disarm();
    const question = Object.assign(document.createElement("p"), { className: "armed" });
    for (const node of button.form.querySelector(".question").childNodes) question.append(node.cloneNode(true));
    one(".decide").prepend(question);
    one("#say").textContent = question.textContent;
    const changes = new MutationObserver(keepOrDisarm);
    changes.observe(one("#answers"), { childList: true, subtree: true, attributes: true });
    armed = { asked: describe(button), question, changes, timer: setTimeout(disarm, ARMED_MS) };
  }

  // What Enter would send: live.js may put the same form there again.
  function describe(button) {
    const { textContent, form } = button;
    return `${textContent} ${button.matches("[aria-disabled]")} ${new URLSearchParams(new FormData(form))}`;
  }

  function keepOrDisarm() {
    const button = approval();
    if (armed && (!button || describe(button) !== armed.asked)) disarm();
  }

  function disarm() {
    if (!armed) return;
    clearTimeout(armed.timer);
    armed.changes.disconnect();
    armed.question.remove();
    armed = null;
  }

  function send() {
    disarm();
    const { form } = approval();
    form.requestSubmit(); // without the button's name, which asks the server for the question
  }

  // settle.js ignores a press within 400 ms of a change of the bar, so that a double click asks once and sends nothing.
  function press(event) {
    const { target } = event;
    const button = target.closest?.(".approval .wide");
    if (!button || button.matches("[aria-disabled]") || (event.detail && one(".decide[aria-disabled]"))) return;
    if (!armed && !button.matches(".caution")) return;
    event.preventDefault();
    if (armed) send();
    else arm();
  }

  addEventListener("keydown", (event) => {
    const { key, repeat, isComposing } = event;
    if (!armed || isComposing || one("dialog[open]") || ["Shift", "Control", "Alt", "Meta"].includes(key)) return;
    event.preventDefault();
    event.stopImmediatePropagation(); // keys.js must not take it, too
    if (key === "Enter" && !repeat) send();
    else if (!repeat) disarm(); // a held key neither sends nor goes back
  }, true);
  document.addEventListener("click", press, true);
  document.addEventListener("pointerdown", ({ target }) => { if (!target.closest?.(".approval .wide")) disarm(); }, true);
  document.addEventListener("arm", arm); // from keys.js
})();
