// Draws the figures of the table beside it. Without this script the table stands alone.
(() => {
  "use strict";
  const { _ } = window.sayso;
  const figure = document.getElementById("plot");
  const hourly = Boolean(figure.dataset.hourly);
  const points = JSON.parse(figure.dataset.points);
  function colour(name) {
    figure.style.color = `var(${name})`; // a canvas cannot resolve light-dark() by itself
    return getComputedStyle(figure).color;
  }
  // Days are those of UTC, as they were counted; hours are the reader's.
  const named = hourly ? (at) => new Date(at * 1000) : (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC");
  const clock = points[0].at(-1) - points[0][0] < 2 * 86400;
  const words = new Intl.DateTimeFormat(document.documentElement.lang, {
    ...(clock ? { hour: "2-digit", minute: "2-digit", hour12: false } : { day: "numeric", month: "short" }),
    ...(hourly ? {} : { timeZone: "UTC" }),
  });
  let plot = null;

  function draw() {
    plot?.destroy();
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const lines = [[_("Waiting"), "--ink", []], [_("Decided"), "--good", [8, 4]], [_("Fallback"), "--bad", [2, 4]]];
    plot = new uPlot(
      {
        width: Math.max(240, figure.clientWidth),
        height: 260,
        tzDate: named,
        legend: { show: false },
        cursor: { drag: { x: false, y: false } },
        scales: { y: { range: (_, low, high) => [0, Math.max(4, Math.ceil(high * 1.1))] } },
        axes: [{ ...axis, values: (_, splits) => splits.map((at) => words.format(at * 1000)) }, { ...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000] }],
        series: [{}, ...lines.map(([label, name, dash]) => ({ label, stroke: colour(name), width: 2, dash, points: { show: false } }))],
      },
      points,
      figure,
    );
    figure.style.color = "";
    plot.root.setAttribute("aria-hidden", "true"); // the table has the figures
  }

  // Events come at every change: the figures of this page are those of the moment it was opened.
  document.addEventListener("rows", (event) => event.preventDefault());
  figure.hidden = false;
  draw();
  addEventListener("resize", () => plot.setSize({ width: Math.max(240, figure.clientWidth), height: 260 }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new MutationObserver(draw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
})();
