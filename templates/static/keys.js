// Keys for reviewers; `?` lists those that work on the open page. A single letter does nothing in a field, with a
// modifier, or if it is turned off in Me. Approving takes two keys: one arms, Enter sends; see arm.js.
(() => {
  "use strict";
  const { _ } = window.sayso;
  const PREFIX_MS = 2000;
  const FIELDS = "input:not([type=checkbox], [type=radio]), textarea, select";
  const ROWS = "#rows li, .cards > li, .sortable tbody > tr";
  const one = (selector) => document.querySelector(selector);
  const store = { // a browser may forbid storage
    get(area, name) { try { return area().getItem(name); } catch { return null; } },
    set(area, name, value) { try { area().setItem(name, value); } catch { /* the choice lasts for this page */ } },
  };
  const session = () => sessionStorage, single = document.documentElement.dataset.keys !== "off";
  const framed = window !== parent; // the item beside the inbox
  const split = () => window.sayso.split?.isOpen() && window.sayso.split;
  let prefixAt = -Infinity, sheet = null;

  // Lists
  const rows = () => [...document.querySelectorAll(ROWS)].filter((row) => row.checkVisibility());
  const currentRow = () => document.activeElement.closest(ROWS);
  const activeRow = () => currentRow() ?? (split() ? one("#rows li[aria-current]") : null);

  function step(by) {
    const all = rows();
    const next = all[Math.min(Math.max(all.indexOf(activeRow()) + by, 0), all.length - 1)];
    const target = next?.querySelector("a") ?? next;
    if (!target) return;
    if (target === next) next.tabIndex = -1;
    target.focus();
    if (target.href) split()?.open?.(target);
  }

  // Item
  const path = location.pathname.match(/^\/items\/([^/]+)\/([^/]+)$/);
  const rowId = path && `${path[1]}-${path[2]}`;
  const claim = () => one('#inquiries form:is([action$="/claim"], [action$="/release"])');
  const shownOf = (selector) => [...document.querySelectorAll(selector)].find((found) => found.checkVisibility());
  const deny = () => shownOf(".starter[href^='#deny']");
  const approval = () => shownOf(".approval .wide, .edited .wide");
  const leave = () => shownOf(".decide .leave");

  function goBack(field) {
    if (one(".dropdown[open]")) return; // menus.js closes it
    const fold = field?.closest("details[open]");
    const opener = one(`.decide .starter[href="${location.hash}"]`);
    if (fold) {
      fold.open = false;
      fold.querySelector("summary").focus();
    } else if (leave() && (!field || field.closest(".chosen"))) {
      location.hash = leave().hash; // what was typed stays
      opener?.focus({ preventScroll: true });
    } else if (field) field.blur();
    else (one(".decide .back") ?? one(".decide .stop") ?? one("#selection [type=reset]"))?.click();
  }

  function backToList() {
    if (path) location.assign(`/${store.get(session, "list") ?? ""}#at=${rowId}`);
    else one(".crumb a").click();
  }

  // The next item is that of the list as it was filtered.
  function openNext(where) {
    const q = new URLSearchParams(store.get(session, "list") ?? "").get("q");
    location.assign(`/next?${new URLSearchParams({ [where]: rowId, ...(q && { q }) })}`);
  }

  function enter(field) {
    const fold = field.closest("details.folded");
    if (fold) fold.open = true;
    field.focus();
  }

  function search() {
    one("#q").focus();
    one("#q").select();
  }

  const always = () => true;
  const alone = () => path && !framed;
  const KEYS = [
    ["j", _("Next row"), () => rows().length, () => step(1)],
    ["k", _("Previous row"), () => rows().length, () => step(-1)],
    ["ArrowDown", _("Next row"), currentRow, () => step(1)],
    ["ArrowUp", _("Previous row"), currentRow, () => step(-1)],
    ["o", _("Open the row, as Enter does"), () => rows().length, () => currentRow()?.querySelector("a")?.click()],
    [".", _("Show new rows"), () => one("#fresh"), () => one("#fresh").click()],
    ["/", _("Search"), () => !framed, search],
    ["a", _("Approve: Enter sends"), approval, () => document.dispatchEvent(new Event("arm"))],
    ["d", _("Deny, with a reason"), deny, () => deny().click()],
    ["e", _("Edit"), () => one(".begin:not([hidden])"), () => one(".begin").click()],
    ["]", _("Next text not yet shown"), () => one("#answers"), () => one("#answers [aria-disabled]")?.click()],
    ["c", _("I handle this, or release it"), claim, () => claim().requestSubmit()],
    ["m", _("Comment"), () => one("#comment"), () => enter(one("#comment"))],
    ["t", _("Extend the deadline"), () => one("#until"), () => enter(one("#until"))],
    ...[["read", _("View to read")], ["tree", _("View as a tree")], ["json", _("View as JSON")]].map(([name, does], place) =>
      [`${place + 1}`, does, () => one(`#view-${name}`), () => one(`#view-${name}`).click()]),
    ["n", _("Next item"), () => alone() || split(), () => (split() ? split().step(1) : openNext("after"))],
    ["p", _("Previous item"), () => alone() || split(), () => (split() ? split().step(-1) : openNext("before"))],
    ["u", _("Back to the list"), () => (!framed && one(".crumb a")) || split(), () => (split() ? split().focusRow() : backToList())],
    ...[...document.querySelectorAll("[data-go]")].map((link) => [
      `g ${link.dataset.go}`, _("Go to %(page)s", { page: link.firstChild.textContent.trim() }), always, () => top.location.assign(link.href),
    ]),
    ["?", _("This list"), () => !framed, showSheet],
  ];
  const OTHERS = [
    ["Ctrl+Enter", _("Send the form you are in"), () => one("main form")],
    ["Esc", _("One step back"), always],
  ];

  // The list of keys
  function element(name, text, fields = {}) {
    return Object.assign(document.createElement(name), { textContent: text, ...fields });
  }

  function makeSheet() {
    sheet = element("dialog", "", { className: "keys" });
    sheet.setAttribute("aria-labelledby", "keys-h");
    const list = element("dl", "");
    for (const [keys, does, works] of [...KEYS, ...OTHERS]) {
      if (!works() && !peer()?.works(keys)) continue;
      const term = element("dt", "");
      for (const key of keys.split(/[ +]/)) term.append(element("kbd", key), " ");
      list.append(term, element("dd", does));
    }
    const choice = element("p", single ? _("Single keys are on:") : _("Single keys are off:"));
    choice.append(" ", element("a", _("change it in Me"), { href: "/me#display-h" }));
    const close = element("button", _("Close"));
    close.addEventListener("click", () => sheet.close());
    sheet.append(element("h2", _("Keyboard shortcuts"), { id: "keys-h" }), list, choice, close);
    document.body.append(sheet);
  }

  function showSheet() {
    sheet?.remove();
    makeSheet();
    sheet.showModal();
  }

  function mainButton(form) {
    const buttons = [...form?.elements ?? []].filter((one) => one.type === "submit" && one.checkVisibility() && !one.closest(".nested"));
    return buttons.find((one) => one.matches(".wide")) ?? buttons[0];
  }

  // The inbox and the item in the frame beside it share their keys: each does what works in its own page.
  const peer = () => (framed ? parent.sayso?.keys : window.sayso.split?.keys());
  const find = (keys) => KEYS.find(([one]) => one === keys);
  const works = (keys) => Boolean(find(keys)?.[2]());

  function act(keys) {
    if (works(keys)) find(keys)[3]();
    else return false;
    return true;
  }

  // One key
  function press(event) {
    const { key, target, repeat } = event;
    if (event.isComposing || one("dialog[open]")) return;
    const field = target.closest?.(FIELDS);
    if (key === "Enter" && (event.ctrlKey || event.metaKey) && field && !repeat) {
      event.preventDefault();
      (field.closest("details")?.querySelector("button.wide") ?? mainButton(field.form))?.click();
      return;
    }
    if (key === "Enter" && (event.ctrlKey || event.metaKey) && !repeat && act("Ctrl+Enter")) return event.preventDefault();
    if (repeat && !["j", "k", "J", "K", "ArrowDown", "ArrowUp"].includes(key)) return;
    if (key === "Escape") goBack(field);
    const modified = event.ctrlKey || event.metaKey || event.altKey;
    if (!single || field || (modified && !event.getModifierState("AltGraph"))) return; // AltGr types `]` on some keyboards
    const isSecond = event.timeStamp - prefixAt < PREFIX_MS;
    prefixAt = key === "g" ? event.timeStamp : -Infinity;
    const keys = isSecond ? `g ${key}` : event.shiftKey && /^[A-Z]$/.test(key) ? `Shift+${key.toLowerCase()}` : key;
    if (act(keys) || peer()?.act(keys)) event.preventDefault();
  }

  window.sayso.keys = { works, act, step, activeRow, add: (...more) => KEYS.splice(-1, 0, ...more) }; // select.js adds its own
  document.addEventListener("keydown", press, true);
  const opener = one("#shortcuts");
  opener.hidden = false;
  opener.addEventListener("click", showSheet);
  // The ways back lead to the list as it was filtered.
  if (path && !framed) {
    document.addEventListener("click", (event) => {
      if (!event.target.closest('a[href^="/next"]') || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      openNext("after");
    });
    for (const link of document.querySelectorAll('.crumb a[href="/"], .bar nav > a[href="/"]')) link.href = `/${store.get(session, "list") ?? ""}`;
  }
  if (location.pathname === "/") store.set(session, "list", location.search.replace(/[?&]at=[^&]*/, ""));
  // Not the plain id: a browser that scrolls to it takes the focus away.
  document.getElementById(location.hash.replace("#at=", ""))?.closest("#rows li")?.querySelector("a")?.focus();
})();
