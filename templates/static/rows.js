// Reads the inbox's rows of suspensions anew.
(() => {
  "use strict";
  const MOST = 50; // as service/edge/web/inbox.py
  const ANSWER_MS = 15000;

  // Resolves to a document with the rows of the first 50, and fails where they cannot be read, as after a sign-out.
  async function readRows(ids, facts = {}) {
    const given = Object.entries({ ids: ids.slice(0, MOST).join(), ...facts }).filter(([, text]) => text);
    const response = await fetch(`/rows?${new URLSearchParams(given)}`, { cache: "no-store", headers: { "X-Sayso-Live": "1" }, signal: AbortSignal.timeout(ANSWER_MS) });
    if (!response.ok || response.redirected) throw new Error("the rows cannot be read");
    return new DOMParser().parseFromString(`<ul>${await response.text()}</ul>`, "text/html");
  }

  Object.assign(window.sayso, { readRows, MOST_ROWS: MOST });
})();
