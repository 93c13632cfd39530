// The page of alike items: counts and sums what is ticked, lets Approve send only after every row was on the screen, and
// reports with the decision which rows were.
(() => {
  "use strict";
  const { ngettext, readRows } = window.sayso;
  const form = document.getElementById("batch");
  const rows = [...form.querySelectorAll(".alike-rows tbody tr")];
  const boxes = rows.map((row) => row.querySelector("input[type=checkbox]"));
  const approve = form.querySelector(".approve");
  const counted = document.querySelector(".counted");
  const unseen = new Set(rows);
  const label = document.createElement("span");
  let sent = null;

  const ticked = (within = form) => [...within.querySelectorAll("tbody input:checked")];

  // Sums are exact: units are whole numbers of the smallest decimal.
  function write(units, decimals, group, point) {
    const digits = units.toString().replace("-", "").padStart(decimals + 1, "0");
    const whole = digits.slice(0, digits.length - decimals).replace(/\B(?=(\d{3})+$)/g, group);
    return `${units < 0n ? "-" : ""}${whole}${decimals ? `${point}${digits.slice(-decimals)}` : ""}`;
  }

  function add(table) {
    const chosen = ticked(table).map((box) => box.closest("tr"));
    const count = table.querySelector("tfoot .picked");
    if (!count) return;
    count.textContent = chosen.length;
    for (const sum of table.querySelectorAll("tfoot .sum")) {
      const cell = sum.closest("td");
      const { decimals, currency, group, point } = cell.dataset;
      const total = chosen.reduce((so_far, row) => so_far + BigInt(row.cells[cell.cellIndex].dataset.units), 0n);
      const written = write(total, Number(decimals), group, point);
      const parts = "first" in cell.dataset ? [currency, written] : [written, currency];
      sum.textContent = parts.filter(Boolean).join(" ");
    }
  }

  function guard() {
    const count = ticked().length;
    for (const place of form.querySelectorAll(".decide .picked")) {
      if (place.textContent !== String(count)) place.textContent = count;
    }
    const amount = form.querySelector("tfoot .amount")?.textContent;
    for (const place of form.querySelectorAll(".decide .total")) {
      if (place.textContent !== amount) place.textContent = amount;
    }
    const lacking = ngettext("%(num)s row not yet shown", "%(num)s rows not yet shown", unseen.size);
    const rest = unseen.size ? ` · ${lacking}` : "";
    if (label.textContent !== rest) label.textContent = rest;
    approve.toggleAttribute("aria-disabled", Boolean(unseen.size || !count));
    if (approve.hasAttribute("aria-disabled")) approve.setAttribute("aria-disabled", "true");
    counted.textContent = unseen.size ? "" : ngettext("%(num)s row shown", "All %(num)s rows shown", rows.length);
  }

  function update() {
    form.querySelectorAll(".alike-rows").forEach(add);
    guard();
  }

  function watch() {
    const covered = document.querySelector(".decide").offsetHeight; // the bar hides what is below it
    const ends = new IntersectionObserver((seen) => {
      for (const { isIntersecting, target } of seen) {
        if (!isIntersecting) continue;
        ends.unobserve(target);
        unseen.delete(target.closest("tr"));
        target.remove();
      }
      guard();
    }, { rootMargin: `0px 0px -${covered}px 0px` });
    for (const row of rows) {
      const end = Object.assign(document.createElement("span"), { className: "end" });
      row.lastElementChild.append(end);
      ends.observe(end);
    }
  }

  // An item that was decided elsewhere loses its tick at once. The page asks for the ids that the stream names.
  async function look(ids) {
    const mine = ids.filter((id) => rows.some((row) => row.id.startsWith(`${id}-`)));
    if (!mine.length) return;
    const fresh = await readRows(mine).catch(() => null);
    if (!fresh) return; // every decision is checked before it counts
    for (const closed of fresh.querySelectorAll("li.gone")) {
      const row = rows.find((one) => one.id === closed.id);
      const box = row?.querySelector("input:not(:disabled)");
      if (!box) continue;
      box.checked = false;
      box.disabled = true;
      row.classList.add("gone");
      row.lastElementChild.replaceChildren(closed.textContent.trim());
      unseen.delete(row);
    }
    update();
  }

  approve.firstElementChild.append(label);
  approve.addEventListener("click", (event) => {
    if (!approve.hasAttribute("aria-disabled")) return;
    event.preventDefault();
    const next = rows.find((row) => unseen.has(row)) ?? rows[0];
    next.scrollIntoView({ block: "start" });
    next.querySelector("input, a").focus({ preventScroll: true });
  });
  form.addEventListener("change", ({ target }) => { if (boxes.includes(target)) update(); });
  form.addEventListener("submit", (event) => {
    if (event.submitter?.name !== "deny" && (unseen.size || !ticked().length)) event.preventDefault();
    sent = event.defaultPrevented ? null : form;
  });
  form.addEventListener("formdata", ({ formData }) => {
    if (!sent) return; // other scripts read forms that are not sent
    formData.set("unseen", [...unseen].map((row) => row.id).join());
    formData.set("look_ms", Math.round(performance.now()));
  });
  document.addEventListener("rows", (event) => {
    event.preventDefault();
    look(event.detail);
  });
  watch();
  update();
})();
