// The sentences of scripts in the language of the page; `make translations` finds their messages. A message has one form
// for the number 1 and one for all others, as English and German have.
(() => {
  "use strict";
  const words = JSON.parse(document.querySelector("meta[name=words]")?.content ?? "{}");
  const fill = (text, facts) => text.replace(/%\((\w+)\)s/g, (place, name) => facts[name] ?? place);
  const _ = (message, facts = {}) => fill(words[message] ?? message, facts);
  const ngettext = (one, many, number, facts = {}) =>
    fill((words[one] ?? [one, many])[number === 1 ? 0 : 1], { num: number, ...facts });
  const early = []; // keys that are pressed before keys.js runs
  addEventListener("keydown", (event) => {
    if (!event.target.closest?.("input, textarea, select")) window.sayso.early?.push(event);
  }, true);
  window.sayso = { _, ngettext, early };
})();
