// Refreshes an open page: regions marked data-live are fetched again when the server sends an event.
// Pages work without this script. It never moves the focus and never changes a form in use.
(() => {
  "use strict";
  const { _, ngettext, notices } = window.sayso;
  const SAY_APART_MS = 10000, ANSWER_MS = 15000;
  const { body } = document;
  const announcement = document.getElementById("say");
  const notice = document.getElementById("notice");
  let pending = null, saying = null, saidAt = -Infinity, busy = false, stale = false;

  // The form that extends a deadline also sends the input of the other forms, so that the page shows it again.
  document.addEventListener("formdata", ({ target, formData }) => {
    const started = target.matches(".extend") && document.querySelector("#edit, #answers .edited, #forms :target form, #forms:not(:has(:target)) .value, .doubt");
    for (const form of started ? [...document.querySelectorAll(":is(#answers, #forms) form"), started] : []) {
      for (const [name, text] of new FormData(form)) formData.set(name, text);
    }
  });

  function say(text) {
    clearTimeout(saying);
    saying = setTimeout(() => {
      saidAt = performance.now();
      announcement.textContent = text;
    }, saidAt + SAY_APART_MS - performance.now());
  }

  function count(number) {
    const badge = document.getElementById("pending");
    const shown = number > 999 ? "999+" : number;
    badge.textContent = shown;
    badge.hidden = !number;
    document.title = (number ? `(${shown}) ` : "") + body.dataset.title;
    if (pending !== null && number > pending) {
      const text = ngettext("%(num)s item waits for you.", "%(num)s items wait for you.", number, { num: shown });
      say(text);
      notices.alertHidden(text);
    }
    pending = number;
  }

  function notify(text, action, { target = "", href = location.pathname } = {}) {
    if (notice.textContent.startsWith(text)) return;
    const link = Object.assign(document.createElement("a"), { href, textContent: action, target });
    notice.replaceChildren(document.createTextNode(`${text} `), link);
  }

  function changed(control) {
    if (["radio", "checkbox"].includes(control.type)) return control.checked !== control.defaultChecked;
    if (!control.options) return control.value !== control.defaultValue;
    return control.selectedIndex !== Math.max(0, [...control.options].findIndex((option) => option.defaultSelected));
  }

  function inUse(region) {
    if (!("forms" in region.dataset)) return false;
    if (region.dataset.forms === "kept" || region.querySelector("details[open], :target")) return true;
    return region.contains(document.activeElement) || [...region.querySelectorAll("input, textarea, select")].some(changed);
  }

  const withoutTokens = (region) => region.innerHTML.replace(/(name="csrf" value=")[0-9a-f]*/g, "$1"); // masked anew each time

  // A closed item takes no input: its buttons go at once, and what was typed stays to be copied.
  function close(region, fresh) {
    const kept = region.dataset.forms === "kept"; // the server filled them with earlier input
    const controls = [...region.querySelectorAll("input:not([type=hidden], [type=checkbox]), textarea, select")];
    const typed = controls.filter((control) => control.type !== "password" && (control.type !== "radio" || control.checked));
    const texts = typed.filter((control) => (kept ? control.value : changed(control))).map((control) => control.value);
    region.replaceChildren(...fresh.childNodes);
    Object.assign(region.dataset, fresh.dataset);
    if (!texts.length) return;
    const section = Object.assign(document.createElement("section"), { className: "kept" });
    section.append(Object.assign(document.createElement("h2"), { textContent: _("Your input was not used") }));
    for (const text of texts) {
      const box = Object.assign(document.createElement("textarea"), { readOnly: true, value: text });
      box.setAttribute("aria-label", _("Your input"));
      section.append(box);
    }
    region.append(section);
  }

  function swap(region, fresh) {
    if ("closed" in fresh.dataset && !("closed" in region.dataset) && inUse(region)) {
      notify(fresh.dataset.notice, _("Show the current state"));
      close(region, fresh);
      return;
    }
    if (inUse(region)) {
      if (region.dataset.state !== fresh.dataset.state) notify(fresh.dataset.notice, _("Show the current state"));
      return;
    }
    if (withoutTokens(region) === withoutTokens(fresh)) return;
    const focused = region.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const open = [...region.querySelectorAll("details")].map((details) => details.open);
    region.replaceChildren(...fresh.childNodes);
    Object.assign(region.dataset, fresh.dataset);
    region.querySelectorAll("details").forEach((details, place) => { details.open ||= Boolean(open[place]); });
    if (focused !== null) (region.querySelector(`a[href="${CSS.escape(focused)}"]`) ?? region).focus({ preventScroll: true });
  }

  async function refresh() {
    stale = true;
    if (busy) return;
    busy = true;
    try {
      while (stale) {
        stale = false;
        const response = await fetch(location.href, { cache: "no-store", headers: { "X-Sayso-Live": "1" }, signal: AbortSignal.timeout(ANSWER_MS) });
        if (response.redirected && new URL(response.url).pathname === "/sign-in") {
          const typed = [...document.querySelectorAll("[data-live]")].some(inUse);
          notify(typed ? _("You are signed out. Your input stays on this page.") : _("You are signed out."), _("Sign in"), { target: typed ? "_blank" : "" });
        } else if (response.ok) {
          const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
          document.dispatchEvent(new CustomEvent("fetched", { detail: fresh })); // for times.js
          for (const region of document.querySelectorAll("[data-live]")) {
            const other = fresh.getElementById(region.id);
            if (other) swap(region, other);
          }
        }
        await new Promise((resume) => setTimeout(resume, 300));
      }
    } catch {
      stale = false; // the next event fetches again
      document.dispatchEvent(new Event("unreachable"));
    } finally {
      busy = false;
    }
  }

  function changeRows(data) {
    // The inbox takes single rows and prevents the default; other pages are fetched again.
    const ids = data.split(" ").map((one) => one.split("@")).filter((one) => window.sayso.concerns?.(one) ?? true).map(([id]) => id);
    if (!ids.length) return;
    const changed = new CustomEvent("rows", { detail: ids, cancelable: true });
    if (document.dispatchEvent(changed)) refresh();
  }

  // The page of a run is fetched again after changes of its run alone.
  const ofRun = body.dataset.stream?.includes("run=");
  document.addEventListener("stream", ({ detail: { name, data } }) => {
    if (name === "inbox") count(Number(data));
    else if (name === "here") document.dispatchEvent(new CustomEvent("here", { detail: JSON.parse(data) }));
    else if (name === "rows" && !ofRun) changeRows(data);
    else if (name === (ofRun ? "run" : "all") || name === "check") refresh();
  });

  window.sayso.changed = changed; // for split.js
  notices.offer(notice, notify);
  document.addEventListener("refresh", refresh); // from inbox.js
})();
