// Refreshes an open page: regions marked data-live are fetched again when the server sends an event.
// Pages work without this script. It never moves the focus and never changes a form in use.
(() => {
  "use strict";
  const { body } = document;
  const announcement = document.getElementById("say");
  const notice = document.getElementById("notice");
  let skew = Number(body.dataset.now) - Date.now();
  let stream = null;
  let pending = null;
  let busy = false, stale = false;

  // The same words as sayso/sentences/times.py.
  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  function span(ms) {
    let rest = Math.floor(Math.max(0, ms) / 1000);
    const words = [];
    for (const [size, unit] of UNITS) {
      if (rest >= size || (unit === "s" && !words.length)) {
        words.push(`${Math.floor(rest / size)} ${unit}`);
        rest %= size;
        if (!rest || words.length === 2) break;
      } else if (words.length) break;
    }
    return words.join(" ");
  }

  const ago = (ms) => (ms < 1000 ? "just now" : `${span(ms).split(" ").slice(0, 2).join(" ")} ago`);
  const put = (node, text) => { if (node.textContent !== text) node.textContent = text; };

  function tick(root) {
    const now = Date.now() + skew;
    for (const node of root.querySelectorAll("[data-left]")) {
      const left = Number(node.dataset.left) - now;
      put(node, left > 0 ? `${span(left)} left` : "time is up");
      node.classList.toggle("soon", left < 60000);
    }
    for (const node of root.querySelectorAll("[data-ago]")) put(node, ago(now - Number(node.dataset.ago)));
    for (const node of root.querySelectorAll("[data-hour]")) {
      const moment = new Date(Number(node.dataset.hour));
      put(node, moment.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false }));
    }
  }

  // The form that extends a deadline also sends the input of the other forms, so that the page shows it again.
  document.addEventListener("formdata", ({ target, formData }) => {
    const started = target.matches(".extend") && document.querySelector("#edit, #answers .edited, #answers [open] form, #answers:not(:has([open])) .value");
    for (const form of started ? [...document.querySelectorAll("#answers form"), started] : []) {
      for (const [name, text] of new FormData(form)) formData.set(name, text);
    }
  });

  function count(number) {
    const badge = document.getElementById("pending");
    badge.textContent = number;
    badge.hidden = !number;
    document.title = (number ? `(${number}) ` : "") + body.dataset.title;
    if (pending !== null && number > pending) {
      announcement.textContent = number === 1 ? "1 run is waiting." : `${number} runs are waiting.`;
    }
    pending = number;
  }

  function notify(text, action, target = "") {
    if (notice.textContent.startsWith(text)) return;
    const link = Object.assign(document.createElement("a"), { href: location.pathname, textContent: action, target });
    notice.replaceChildren(document.createTextNode(`${text} `), link);
  }

  function changed(control) {
    if (control.type === "radio") return control.checked !== control.defaultChecked;
    if (!control.options) return control.value !== control.defaultValue;
    return control.selectedIndex !== Math.max(0, [...control.options].findIndex((option) => option.defaultSelected));
  }

  function inUse(region) {
    if (!("forms" in region.dataset)) return false;
    if (region.dataset.forms === "kept" || region.querySelector("details[open]")) return true;
    return region.contains(document.activeElement) || [...region.querySelectorAll("input, textarea, select")].some(changed);
  }

  // A closed item takes no input: its buttons go at once, and what was typed stays to be copied.
  function close(region, fresh) {
    const kept = region.dataset.forms === "kept"; // the server filled them with earlier input
    const controls = [...region.querySelectorAll("input:not([type=hidden]), textarea, select")];
    const typed = controls.filter((control) => control.type !== "password" && (control.type !== "radio" || control.checked));
    const texts = typed.filter((control) => (kept ? control.value : changed(control))).map((control) => control.value);
    region.replaceChildren(...fresh.childNodes);
    Object.assign(region.dataset, fresh.dataset);
    if (!texts.length) return;
    const section = Object.assign(document.createElement("section"), { className: "kept" });
    section.append(Object.assign(document.createElement("h2"), { textContent: "Your input was not used" }));
    for (const text of texts) {
      const box = Object.assign(document.createElement("textarea"), { readOnly: true, value: text });
      box.setAttribute("aria-label", "Your input");
      section.append(box);
    }
    region.append(section);
  }

  function swap(region, fresh) {
    if ("closed" in fresh.dataset && !("closed" in region.dataset) && inUse(region)) {
      notify(fresh.dataset.notice, "Show the current state");
      close(region, fresh);
      return;
    }
    if (inUse(region)) {
      if (region.dataset.state !== fresh.dataset.state) notify(fresh.dataset.notice, "Show the current state");
      return;
    }
    if (region.innerHTML === fresh.innerHTML) return;
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
        const response = await fetch(location.href, { cache: "no-store", headers: { "X-Sayso-Live": "1" } });
        if (response.redirected && new URL(response.url).pathname === "/sign-in") {
          const typed = [...document.querySelectorAll("[data-live]")].some(inUse);
          notify(`You are signed out.${typed ? " Your input stays on this page." : ""}`, "Sign in", typed ? "_blank" : "");
        } else if (response.ok) {
          const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
          skew = Number(fresh.body.dataset.now) - Date.now();
          tick(fresh);
          tick(document);
          for (const region of document.querySelectorAll("[data-live]")) {
            const other = fresh.getElementById(region.id);
            if (other) swap(region, other);
          }
        }
        await new Promise((resume) => setTimeout(resume, 300));
      }
    } catch {
      stale = false; // the stream reconnects, and its first event fetches again
    } finally {
      busy = false;
    }
  }

  const offline = document.getElementById("offline");
  let lost = null;

  function connected() {
    clearTimeout(lost);
    lost = null;
    offline.hidden = true;
  }

  function disconnected() {
    if (lost !== null || document.hidden) return;
    const since = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
    lost = setTimeout(() => {
      offline.textContent = `Not connected since ${since}. This page may be old; every decision is checked before it counts.`;
      offline.hidden = false;
    }, 5000);
  }

  function follow() {
    stream?.close();
    stream = new EventSource(body.dataset.stream);
    stream.addEventListener("inbox", (event) => count(Number(event.data)));
    stream.addEventListener("rows", (event) => {
      // The inbox takes single rows and prevents the default; other pages are fetched again.
      const changed = new CustomEvent("rows", { detail: event.data.split(" "), cancelable: true });
      if (document.dispatchEvent(changed)) refresh();
    });
    stream.addEventListener("all", refresh);
    stream.addEventListener("run", refresh);
    stream.addEventListener("open", connected);
    stream.addEventListener("error", () => {
      disconnected();
      if (stream.readyState !== EventSource.CLOSED) return;
      setTimeout(follow, 5000);
      refresh();
    });
  }

  document.addEventListener("refresh", refresh); // from inbox.js
  tick(document);
  setInterval(() => tick(document), 1000);
  if (!body.dataset.stream) return;
  if (!document.hidden || location.pathname === "/") follow();
  // A browser limits open streams: in the background only the inbox, with the count in its title, keeps one.
  document.addEventListener("visibilitychange", () => {
    if (location.pathname === "/") return;
    if (document.hidden) stream.close(); else follow();
  });
})();
