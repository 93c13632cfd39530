// One stream of events for all tabs of a browser, which opens at most six connections to a server over HTTP/1.1.
// The tab that holds a lock reads the stream and passes its events on. Another takes the lock once that tab is closed,
// hidden or silent. Where locks are missing, such as without HTTPS, each visible page and each inbox asks again every few
// seconds. Either way a page that hears nothing for 15 seconds says that it is not connected.
(() => {
  "use strict";
  const STALE_MS = 15000, CHECK_MS = 1000, AGAIN_MS = 5000, SPREAD_MS = 3000, LINGER_MS = 1000;
  const NAMES = ["seen", "inbox", "rows", "all", "run", "here", "ping"];
  const { body } = document;
  if (!body.dataset.stream) return;
  const place = new URL(body.dataset.stream, location.href);
  const run = place.searchParams.get("run");
  const topic = `sayso stream ${document.querySelector(".who")?.textContent}`;
  const { seen, runSeen } = body.dataset;
  const own = crypto.getRandomValues(new Uint32Array(2)).join("-");
  const patience = STALE_MS + (crypto.getRandomValues(new Uint32Array(1))[0] % SPREAD_MS); // not all steal at once
  const framed = window !== parent; // the page around it leads
  const shared = Boolean(navigator.locks && window.BroadcastChannel);
  const wants = new Map(), last = new Map(), owed = new Map(), retired = new Set();
  let channel = null, standing = null, release = null, source = null;
  let lost = false, lingering = null, heardAt = Date.now(), left = true, connected = false;

  // A hidden page needs no events, except the inbox: its title has the count.
  const isActive = () => !left && (!document.hidden || location.pathname === "/");
  const tell = (type, detail) => document.dispatchEvent(new CustomEvent(type, { detail }));

  function hear(name, data) {
    heardAt = Date.now();
    if (!connected) {
      connected = true;
      tell("connected");
    }
    if (name !== "run" || data === run) tell("stream", { name, data });
  }

  function lose(stale) {
    connected = false;
    tell("disconnected", { stale });
  }

  const share = (message) => {
    channel.postMessage(message);
    take(message);
  };

  function take({ kind, from, to, name, data, events }) {
    if (kind === "event" && isActive()) hear(name, data);
    else if (kind === "lost" && isActive()) lose(false);
    else if (kind === "check" && isActive()) tell("stream", { name: "check" }); // the session may have ended
    else if (kind === "lead" && isActive()) want();
    else if (kind === "hello" && to === own) greeted(events);
    else if (kind === "gone") wants.delete(from);
    else if (kind === "seen" && document.hidden) release?.();
    else if (kind === "want" && release) admit(from, data);
  }

  // Marks of the stream that equal those of the page say that nothing has changed since the page was read.
  function greeted(events) {
    const [tenant, ...runs] = (events.find(([one]) => one === "seen")?.[1] ?? "").split(" ");
    const isCurrent = seen && seen === tenant && (!run || runs.includes(`${run}=${runSeen}`));
    for (const [one, text] of events) if (!isCurrent || !["all", "run"].includes(one)) hear(one, text);
  }

  function admit(from, wanted) {
    wants.set(from, wanted);
    owed.set(from, wanted);
    if (wanted && source && !new URL(source.url).searchParams.getAll("run").includes(wanted)) connect(true);
    else if (source?.readyState === EventSource.OPEN) greet();
  }

  // A page that joins is fetched again once, for what changed between its text and its first event.
  function greet() {
    for (const [to, wanted] of owed) share({ kind: "hello", to, events: [...last, ["all", ""], ["run", wanted]] });
    owed.clear();
  }

  function retire() {
    clearTimeout(lingering);
    lingering = null;
    retired.forEach((old) => old.close());
    retired.clear();
  }

  // With `joined` the new stream replaces the old one, which stays open for a while after the first event of the new one:
  // a stream rests between two events, and may owe changes from before the other was subscribed. At most one such stream
  // stays; where another has to go early, all pages are fetched again.
  function connect(joined = false) {
    const url = new URL(place.pathname, location.href);
    new Set(wants.values()).forEach((one) => { if (one) url.searchParams.append("run", one); });
    if (joined && retired.size) wants.forEach((wanted, to) => owed.set(to, wanted));
    retire();
    if (joined && source) retired.add(source);
    else source?.close();
    if (retired.size) url.searchParams.set("joined", "1");
    if (!joined && seen && !lost && !source) {
      url.searchParams.set("seen", seen);
      if (runSeen) url.searchParams.set("run_seen", runSeen);
    }
    const next = source = new EventSource(url);
    for (const name of NAMES) {
      next.addEventListener(name, ({ data }) => {
        if (next !== source && !retired.has(next)) return;
        if (["seen", "inbox", "here"].includes(name)) last.set(name, data);
        share({ kind: "event", name, data });
        if (next !== source) return;
        if (retired.size) lingering ??= setTimeout(retire, LINGER_MS);
        greet();
      });
    }
    next.addEventListener("open", () => {
      if (next !== source) return;
      share({ kind: "event", name: lost ? "all" : "ping", data: "" });
      lost = false;
    });
    next.addEventListener("error", () => {
      if (next !== source) return;
      retire();
      lost = true;
      share({ kind: "lost" });
      if (next.readyState !== EventSource.CLOSED) return;
      setTimeout(() => { if (next === source) connect(); }, AGAIN_MS);
      share({ kind: "check" });
    });
  }

  function lead() {
    return new Promise((resolve) => {
      for (const known of [wants, last, owed]) known.clear();
      wants.set(own, run);
      lost = false;
      release = () => {
        release = null;
        retire();
        source?.close();
        source = null;
        resolve();
      };
      heardAt = Date.now();
      channel.postMessage({ kind: "lead" });
      connect();
    });
  }

  function stand(options = {}) {
    if (framed || (standing && !options.steal)) return;
    standing?.abort();
    const control = standing = new AbortController();
    const request = options.steal ? options : { signal: control.signal };
    navigator.locks.request(topic, request, () => (left ? null : lead())).catch(() => {
      if (standing === control) release?.(); // another page has taken the lock
    }).finally(() => {
      if (standing !== control) return;
      standing = null;
      if (isActive()) stand();
    });
  }

  function want() {
    heardAt = Date.now();
    channel.postMessage({ kind: "want", from: own, data: run });
  }

  function check() {
    if (!isActive() || Date.now() - heardAt < patience) return;
    heardAt = Date.now();
    lose(true);
    if (release) connect();
    else if (shared && !document.hidden) stand({ steal: true });
  }

  function start() {
    left = false;
    channel ??= new BroadcastChannel(topic);
    channel.onmessage = ({ data }) => take(data);
    if (!isActive()) return;
    stand();
    if (!document.hidden) channel.postMessage({ kind: "seen" });
    want();
  }

  function pause() {
    channel?.postMessage({ kind: "gone", from: own });
    release?.();
    if (!isActive()) standing?.abort();
  }

  function stop() {
    left = true;
    pause();
    channel?.close();
    channel = null;
  }

  function poll() {
    if (isActive()) tell("stream", { name: "check" });
  }

  // What a hidden page heard last says nothing about the line, unless it went on hearing.
  function turn() {
    if (document.hidden) {
      if (shared) pause();
      if (!isActive()) connected = false;
      return;
    }
    if (!connected) lose(false);
    heardAt = Date.now();
    if (shared) start();
    else poll();
  }

  if (shared) {
    addEventListener("pagehide", stop);
    addEventListener("pageshow", ({ persisted }) => { if (persisted) start(); });
    document.addEventListener("freeze", stop);
    document.addEventListener("resume", start);
    addEventListener("online", () => { if (release) connect(); });
    start();
  } else {
    left = false;
    document.addEventListener("fetched", ({ detail }) => hear("inbox", parseInt(detail.getElementById("pending")?.textContent ?? "0", 10)));
    document.addEventListener("unreachable", () => lose(false));
    addEventListener("online", poll);
    setInterval(poll, AGAIN_MS);
    poll();
  }
  document.addEventListener("visibilitychange", turn);
  setInterval(check, CHECK_MS);
  addEventListener("offline", () => lose(true));
})();
