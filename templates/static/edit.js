// Counts the changes of an edit, asks before it is discarded, and fills the reason of a denial from a preset.
(() => {
  "use strict";
  const { _, ngettext } = window.sayso;
  const form = () => document.getElementById("edit"); // live.js may replace it
  const reason = () => document.getElementById("message");
  const reasonKey = `reason ${location.pathname}`;
  const name = (number) => ngettext("%(num)s change", "%(num)s changes", number);
  const isKept = () => "kept" in form().dataset; // the server filled it with earlier input
  const fields = () => [...form().querySelectorAll("input:not([type=hidden]), textarea, select")];

  function changed(control) {
    if (control.type === "radio") return control.checked && !control.defaultChecked;
    if (!control.options) return control.value !== control.defaultValue;
    return control.selectedIndex !== Math.max(0, [...control.options].findIndex((option) => option.defaultSelected));
  }

  const count = () => fields().filter(changed).length;

  function update() {
    const button = document.querySelector(".review");
    if (!form() || !button) return;
    const number = count();
    button.hidden = !number && !isKept();
    document.querySelector(".nothing").hidden = !button.hidden;
    const label = _("Review %(changes)s", { changes: name(number) });
    if (!isKept() && button.textContent !== label) button.textContent = label; // an equal text would unsettle the bar
  }

  function stop(event) {
    const number = form() ? count() : 0;
    const asks = number ? _("Discard %(changes)s?", { changes: name(number) }) : _("Discard your input?");
    const confirmed = !form() || !(number || isKept()) || confirm(asks);
    if (!confirmed) event.preventDefault();
  }

  function fill(preset) {
    const presets = [...document.querySelectorAll(".preset")].map((button) => button.textContent);
    const own = presets.includes(reason().value.trim()) ? "" : reason().value.trim();
    reason().value = own ? `${own}\n${preset.textContent}` : preset.textContent;
    reason().focus();
  }

  function number({ target }) {
    const gutter = target.matches?.(".numbered textarea") && target.previousElementSibling;
    if (!gutter) return;
    target.rows = Math.max(2, target.value.split("\n").length);
    gutter.textContent = [...Array(target.rows).keys()].map((place) => place + 1).join("\n");
  }

  document.addEventListener("input", number);
  document.addEventListener("input", update);
  document.addEventListener("change", update);
  addEventListener("pageshow", update); // a browser that goes back or reloads may restore the input

  document.addEventListener("click", (event) => {
    const { target } = event;
    if (target.matches(".preset")) fill(target);
    if (target.matches(".stop")) stop(event);
    // The page of the edit has the reason that was typed before, and the other way round.
    if (target.matches(".begin, .stop") && reason()?.value) sessionStorage.setItem(reasonKey, reason().value);
  });

  // The form that was opened takes the focus.
  function enter() {
    const form = document.querySelector(".chosen:target");
    if (!form) return;
    const presets = form.querySelector(".presets");
    if (presets) presets.hidden = false; // they need this script
    form.querySelector("input:not([type=hidden], :disabled), textarea, select")?.focus();
  }

  addEventListener("hashchange", enter);
  document.addEventListener("DOMContentLoaded", () => {
    const typed = sessionStorage.getItem(reasonKey);
    if (typed && reason() && !reason().value) reason().value = typed;
    sessionStorage.removeItem(reasonKey);
    enter();
    if (!form()) return;
    update();
    if (!document.querySelector("[autofocus]")) fields()[0]?.focus();
  });
})();
