// Keys for reviewers; `?` lists them by page, first those that work on the open one. A single letter does nothing in a
// field, with a modifier, or if it is turned off in Me. Approving takes two keys: one arms, Enter sends; see arm.js.
// A key that is pressed while the next page is on its way waits for it, except Enter, which confirms what is shown.
(() => {
  "use strict";
  const { _ } = window.sayso;
  const PREFIX_MS = 2000, WAIT_MS = 10000;
  const FIELDS = "input:not([type=checkbox], [type=radio]), textarea, select";
  const ROWS = "#rows li, .cards > li, :is(.sortable, .alike-rows) tbody > tr, main:not(:has(#answers)) :is(.plain > li:has(form), [data-row], .grid tbody > tr)";
  const one = (selector) => document.querySelector(selector);
  const store = { // a browser may forbid storage
    get(area, name) { try { return area().getItem(name); } catch { return null; } },
    set(area, name, value) { try { area().setItem(name, value); } catch { /* the choice lasts for this page */ } },
  };
  const session = () => sessionStorage, single = document.documentElement.dataset.keys !== "off";
  const framed = window !== parent; // the item beside the inbox
  const split = () => window.sayso.split?.isOpen() && window.sayso.split;
  let prefixAt = -Infinity, sheet = null, ready = false, leftAt = -Infinity;

  // Lists
  const rows = () => [...document.querySelectorAll(ROWS)].filter((row) => row.checkVisibility());
  const currentRow = () => document.activeElement.closest(ROWS);
  const linkOf = (row) => row?.querySelector("a:not(.button)");
  const activeRow = () => currentRow() ?? (split() ? one("#rows li[aria-current]") : null);

  function step(by) {
    const all = rows();
    const next = all[Math.min(Math.max(all.indexOf(activeRow()) + by, 0), all.length - 1)];
    const target = linkOf(next) ?? next;
    if (!target) return;
    if (target === next) next.tabIndex = -1;
    target.focus();
    if (target.href) split()?.open?.(target);
  }

  // Item
  const path = location.pathname.match(/^\/items\/([^/]+)\/([^/]+)$/);
  const rowId = path && `${path[1]}-${path[2]}`;
  const further = (name) => one(`.starter[href="#${name}"]`);
  const value = () => shownOf("#forms .value :is(input:not([type=hidden], :disabled), select, textarea), .doubt :is(textarea, .wide)");
  const claim = () => one('#inquiries form:is([action$="/claim"], [action$="/release"])');
  const shownOf = (selector) => [...document.querySelectorAll(selector)].find((found) => found.checkVisibility());
  const deny = () => shownOf(".starter[href^='#deny']");
  const approval = () => shownOf(".approval .wide, .edited .wide");
  const wayBack = () => shownOf(".decide .leave");

  function goBack(field) {
    if (one(".dropdown[open]")) return; // menus.js closes it
    const fold = field?.closest("details[open]");
    const opener = one(`.decide .starter[href="${location.hash}"]`);
    if (fold) {
      fold.open = false;
      fold.querySelector("summary").focus();
    } else if (wayBack() && (!field || field.closest(".chosen"))) {
      location.hash = wayBack().hash; // what was typed stays
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
    leave();
    location.assign(`/next?${new URLSearchParams({ [where]: rowId, q: q ?? "" })}`);
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

  // On a phone the further actions stand behind a button.
  function open(starter) {
    const menu = one(".others input");
    if (menu) menu.checked = false;
    starter.click();
  }

  function foldAll() {
    const folds = [...document.querySelectorAll("details.folded")];
    const opens = folds.some((fold) => !fold.open);
    for (const fold of folds) fold.open = opens;
  }

  // The rows of the table of alike items have boxes; select.js selects those of the inbox.
  const tick = () => currentRow()?.querySelector(".tick input:not(:disabled)");
  const select = () => window.sayso.select;
  const always = () => true;
  const alone = () => path && !framed;
  const press = (selector) => [() => shownOf(selector), () => shownOf(selector).click()];
  const put = (selector) => [() => one(selector), () => enter(one(selector))];
  const PAGES = [
    [_("Lists"), [
      ["j", _("Next row"), () => rows().length, () => step(1)],
      ["k", _("Previous row"), () => rows().length, () => step(-1)],
      ["ArrowDown", _("Next row"), currentRow, () => step(1)],
      ["ArrowUp", _("Previous row"), currentRow, () => step(-1)],
      ["o", _("Open the row, as Enter does"), () => rows().length, () => linkOf(currentRow())?.click()],
      [".", _("Show new rows"), () => one("#fresh"), () => one("#fresh").click()],
      ["+", _("Next page"), ...press(".pager [rel=next]")],
      ["-", _("First page"), ...press(".pager [rel=prev]")],
      ["Shift+s", _("Sort: to the next heading"), () => one(".sortable thead a"), () => cycle(".sortable thead a").focus()],
      ["Shift+m", _("Only what is for me, or all"), ...press(".chips > a.chip")],
      ["Shift+v", _("Save the search as a view"), () => one("#view"), () => saveView()],
      ["Shift+c", _("Clear the filter"), ...press(".chips .clear")],
      ["f", _("Filter; arrow keys lead through its menus"), () => one(".chips details, #filters"), () => filter()],
      ["x", _("Select the row"), () => tick() ?? select()?.works(), () => (tick() ? tick().click() : select().row())],
      ["Shift+j", _("Select this row and the next"), () => select()?.works(), () => select().extend(1)],
      ["Shift+k", _("Select this row and the previous"), () => select()?.works(), () => select().extend(-1)],
      ["*", _("Select the rows alike"), () => select()?.alike(), () => select().rowsAlike()],
      ["Ctrl+Enter", _("Decide the selected rows together"), () => select()?.any(), () => select().decide()],
    ]],
    [_("Item"), [
      ["a", _("Approve: Enter sends"), approval, () => document.dispatchEvent(new Event("arm"))],
      ["d", _("Deny, with a reason"), deny, () => open(deny())],
      ["e", _("Edit"), () => one(".begin:not([hidden])"), () => open(one(".begin"))],
      ["v", _("To the value, or to the answers about a call in doubt"), value, () => value().focus()],
      ["Shift+g", _("Grant like calls"), () => further("grant"), () => open(further("grant"))],
      ["Shift+o", _("Deny, and offer another call"), () => further("offer"), () => open(further("offer"))],
      ["Shift+u", _("Undo, or take your decision back"), ...press(":is(.undo, .retract) button")],
      ["s", _("Show the secret values"), ...press(".reveal button")],
      ["w", _("Next version of the arguments"), () => one(".versions [aria-current]"), () => turn()],
      ["]", _("Next text not yet shown"), () => one("#answers"), () => one("#answers [aria-disabled]")?.click()],
      ["c", _("I handle this, or release it"), claim, () => claim().requestSubmit()],
      ["q", _("Ask the requester"), ...put("#inquiry")],
      ["m", _("Comment"), ...put("#comment")],
      ["t", _("Extend the deadline"), ...put("#until")],
      ["Shift+f", _("Attach a file"), ...put("main input[type=file]")],
      ["z", _("Open or close what follows the arguments"), () => one("details.folded"), foldAll],
      ...[["read", _("View to read")], ["tree", _("View as a tree")], ["json", _("View as JSON")]].map(([name, does], place) =>
        [`${place + 1}`, does, () => one(`#view-${name}`), () => one(`#view-${name}`).click()]),
      ["n", _("Next item"), () => alone() || split(), () => (split() ? split().step(1) : openNext("after"))],
      ["p", _("Previous item"), () => alone() || split(), () => (split() ? split().step(-1) : openNext("before"))],
      ["u", _("Back to the list"), () => (!framed && one(".crumb a")) || split(), () => (split() ? split().focusRow() : backToList())],
    ]],
    [_("Everywhere"), [
      ["/", _("Search"), () => !framed, search],
      ...[...document.querySelectorAll("[data-go]")].map((link) => [
        `g ${link.dataset.go}`, _("Go to %(page)s", { page: link.firstChild.textContent.trim() }), always, () => top.location.assign(link.href),
      ]),
      ["?", _("This list"), () => !framed, showSheet],
    ]],
  ];
  const KEYS = PAGES.flatMap(([, keys]) => keys);

  // On other pages than the inbox and an item, each action has a digit or a free letter, those of like rows the same one.
  // The key leads to the form or button, in the current row if it has one; Enter presses it.
  const FREE = [..."1234567890bhilry"];
  const plain = (node) => [...node.childNodes].filter((part) => !part.classList?.contains("unseen")).map((part) => part.textContent).join("").trim();

  function actions() {
    if (one("#answers, #rows")) return [];
    const controls = [...document.querySelectorAll("main :is(button, summary, a.button)")].filter((control) => control.checkVisibility() && !control.disabled);
    const alike = new Map();
    for (const control of controls) {
      const group = control.closest(ROWS) ? plain(control) : control;
      alike.set(group, [...alike.get(group) ?? [], control]);
    }
    const names = [...alike.values()].map(([first]) => plain(first));
    return [...alike.values()].map((those, place) => {
      const isAlone = names.indexOf(names[place]) === names.lastIndexOf(names[place]);
      const heading = isAlone ? null : those[0].closest("section")?.querySelector("h2, h3");
      const does = heading ? `${names[place]}: ${plain(heading)}` : names[place];
      return [FREE[place], does, always, () => lead(those.find((control) => currentRow()?.contains(control)) ?? those[0])];
    }).filter(([key]) => key);
  }

  function lead(control) {
    if (control.matches("summary")) control.click();
    const controls = [...control.form?.elements ?? []].filter((other) => other.checkVisibility());
    const isFirst = controls.find((other) => other.type === "submit") === control;
    const field = isFirst && controls.find((other) => other.matches("input:not([type=hidden]), select, textarea"));
    (field || control).focus();
  }

  function cycle(selector) {
    const all = [...document.querySelectorAll(selector)];
    return all[(all.indexOf(document.activeElement) + 1) % all.length];
  }
  const OTHERS = [
    ["Enter", _("Send the form of one field that you are in"), () => one("main form")],
    ["Ctrl+Enter", _("Send the form you are in"), () => one("main form")],
    ["Esc", _("One step back"), always],
  ];

  function filter() {
    const menu = one(".chips details");
    if (menu) menu.open = true;
    else one("#filters :is(input, select)").focus();
  }

  function saveView() {
    one("#view").closest("details").open = true;
    one("#view").focus();
  }

  function turn() {
    const all = [...document.querySelectorAll(".versions a")];
    all[(all.findIndex((link) => link.matches("[aria-current]")) + 1) % all.length].click();
  }

  // The list of keys
  function element(name, text, fields = {}) {
    return Object.assign(document.createElement(name), { textContent: text, ...fields });
  }

  function list(name, keys) {
    const lines = element("dl", "");
    for (const [one, does] of keys) {
      const term = element("dt", "");
      for (const key of one === "+" ? [one] : one.split(/[ +]/)) term.append(element("kbd", key), " ");
      lines.append(term, element("dd", does));
    }
    return [element("h3", name), lines];
  }

  function makeSheet() {
    sheet = element("dialog", "", { className: "keys" });
    sheet.setAttribute("aria-labelledby", "shortcuts-h");
    const others = element("details", "");
    others.append(element("summary", _("Keys of other pages and states")));
    const own = actions();
    const here = own.length ? list(plain(one("h1")), own) : [];
    for (const [name, all] of PAGES) {
      const every = name === PAGES.at(-1)[0] ? [...all, ...OTHERS] : all;
      const keys = every.filter(([, does], place) => every.findIndex(([, other]) => other === does) === place); // arrows
      const isHere = ([key, , worksHere]) => Boolean(worksHere() || peer()?.works(key));
      const [those, rest] = [keys.filter(isHere), keys.filter((one) => !isHere(one))];
      if (those.length) here.push(...list(name, those));
      if (rest.length) others.append(...list(name, rest));
    }
    const choice = element("p", single ? _("Single keys are on:") : _("Single keys are off:"));
    choice.append(" ", element("a", _("change it in Me"), { href: "/me#display-h" }));
    const close = element("button", _("Close"));
    close.addEventListener("click", () => sheet.close());
    sheet.append(element("h2", _("Keyboard shortcuts"), { id: "shortcuts-h", tabIndex: -1, autofocus: true }), ...here, others, choice, close);
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
  const find = (keys) => {
    const known = [...KEYS.filter(([key]) => key === keys), ...actions().filter(([key]) => key === keys)];
    return known.find(([, , worksHere]) => worksHere()) ?? known[0];
  };
  const works = (keys) => Boolean(find(keys)?.[2]());

  function act(keys) {
    if (works(keys)) find(keys)[3]();
    else return false;
    return true;
  }

  // A page that is about to go takes no key: it waits for the next one, which may be another item.
  const leave = () => { leftAt = performance.now(); };
  const stay = () => { leftAt = -Infinity; };
  const isLeaving = () => performance.now() - leftAt < WAIT_MS || Boolean(one("form[aria-busy]")); // see connection.js
  let waiting = [];

  const host = () => (framed ? parent : window).sayso?.split;
  const isGoing = () => isLeaving() || (framed && host()?.isBusy());

  function wait(keys) {
    if (framed && isGoing()) {
      if (!peer()?.act(keys)) host()?.hold(keys);
    } else if (!ready) waiting.push(keys);
    else store.set(session, "keys", JSON.stringify({ at: Date.now(), keys: [...waitingNext(), keys] }));
  }

  function waitingNext() {
    const { at, keys } = JSON.parse(store.get(session, "keys") || '{"at": 0}');
    return Date.now() - at < WAIT_MS ? keys : [];
  }

  // What waited is pressed in its order, up to a key that begins an approval or a text, or leads to another page.
  function pressWaiting() {
    const keys = waiting;
    waiting = [];
    while (keys.length && !one(".armed, dialog[open]") && !document.activeElement.matches(FIELDS)) {
      if (isGoing()) return keys.forEach(wait);
      act(keys.shift());
    }
  }

  const isPage = (link) => link && !link.matches("[download], [target]") && link.origin === location.origin && !link.getAttribute("href").startsWith("#");
  const leaveUnlessPrevented = (event) => setTimeout(() => { if (!event.defaultPrevented) leave(); }); // by any listener
  addEventListener("submit", (event) => {
    if (event.submitter?.formMethod !== "dialog" && event.target.target !== "_blank") leaveUnlessPrevented(event);
  });
  addEventListener("click", (event) => {
    const modified = event.ctrlKey || event.metaKey || event.shiftKey || event.button;
    if (!modified && isPage(event.target.closest?.("a[href]"))) leaveUnlessPrevented(event);
  });
  addEventListener("beforeunload", (event) => setTimeout(() => { if (event.defaultPrevented) stay(); })); // the reviewer stays
  for (const type of ["pageshow", "pointerdown", "input"]) addEventListener(type, stay);

  // Enter sends a form of one field or one group of choices. The forms of a decision have a button that keeps it from
  // sending others. In a list that is open, Enter chooses.
  function sendsAlone(field) {
    if (!field?.matches("input:not([type=checkbox]), select") || !field.form?.querySelector("[formmethod=dialog]")) return false;
    if (field.matches("select") && (!field.value || isListOpen(field))) return false;
    const fields = [...field.form.elements].filter((other) => other.matches("input:not([type=hidden]), select, textarea") && other.checkVisibility());
    return new Set(fields.map((other) => other.name)).size === 1;
  }

  function isListOpen(field) {
    try { return field.matches(":open"); } catch { return true; } // an older browser does not say
  }

  // One key
  function take(event) {
    const { key, target, repeat } = event;
    if (event.isComposing || one("dialog[open]")) return;
    const field = target.closest?.(FIELDS);
    const sender = field ?? target.closest?.("input[type=radio]");
    const sends = event.ctrlKey || event.metaKey || sendsAlone(sender);
    if (key === "Enter" && sends && sender && !repeat) {
      event.preventDefault();
      (sender.closest("details")?.querySelector("button.wide") ?? mainButton(sender.form))?.click();
      return;
    }
    if (key === "Enter" && (event.ctrlKey || event.metaKey) && !repeat && act("Ctrl+Enter")) return event.preventDefault();
    if (repeat && !["j", "k", "J", "K", "ArrowDown", "ArrowUp"].includes(key)) return;
    if (key === "Escape") {
      waiting = [];
      goBack(field);
    }
    const modified = event.ctrlKey || event.metaKey || event.altKey;
    if (!single || field || (modified && !event.getModifierState("AltGraph"))) return; // AltGr types `]` on some keyboards
    const isSecond = event.timeStamp - prefixAt < PREFIX_MS;
    prefixAt = key === "g" ? event.timeStamp : -Infinity;
    const keys = isSecond ? `g ${key}` : event.shiftKey && /^[A-Z]$/.test(key) ? `Shift+${key.toLowerCase()}` : key;
    const isEarly = !ready && keys !== "/"; // what follows `/` is typed into its field, and must not wait for the page
    if (find(keys) && (isEarly || isGoing())) wait(keys);
    else if (!act(keys) && !peer()?.act(keys) && !(find(keys) && host()?.hold(keys))) return;
    event.preventDefault();
  }

  // For split.js: presses keys once the item stands.
  function pressLater(keys) {
    waiting.push(...keys);
    if (ready) pressWaiting();
  }

  // Once the page was drawn, and item.js knows what of it was in view.
  function begin() {
    ready = true;
    if (!framed) waiting.unshift(...waitingNext());
    if (!framed) store.set(session, "keys", "");
    pressWaiting();
  }

  window.sayso.keys = { works, act, step, activeRow, pressLater };
  document.addEventListener("keydown", take, true);
  window.sayso.early.forEach(take); // pressed before this script ran; see words.js
  window.sayso.early = null;
  document.addEventListener("DOMContentLoaded", () => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(begin))));
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
    for (const link of document.querySelectorAll('.crumb a[href="/"], .bar nav > a[href="/"]')) {
      link.href = `/${store.get(session, "list") ?? ""}${link.closest(".crumb") ? `#at=${rowId}` : ""}`;
    }
  }
  if (location.pathname === "/") store.set(session, "list", location.search.replace(/[?&]at=[^&]*/, ""));
  // Not the plain id: a browser that scrolls to it takes the focus away.
  document.getElementById(location.hash.replace("#at=", ""))?.closest("#rows li")?.querySelector("a")?.focus();
})();
