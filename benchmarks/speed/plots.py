"""Plots of `benchmarks/latest.json` for docs/performance.md: `make bench ARGS=--plots` draws them after measuring.

`python -m benchmarks.speed.plots` draws them again.
"""

import json
from collections.abc import Mapping, Sequence
from math import log10
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader

from benchmarks.speed.bounds import Rows
from benchmarks.speed.rounds import SIZES
from service.core.settings import CHECKOUT

FOLDER = CHECKOUT / "docs" / "images"
_WIDTH, _HEIGHT = 760, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 740, 40, 280
_TICKS = 5
_SYSTEMS = {"value": ("Sayso", "#2f81f7"), "floor_a": ("Floor A", "#8c959f"), "restate": ("Restate", "#d4702b")}
_KINDS = {
    "hot p50": "decision_to_tool_p50_ms",
    "hot p99": "decision_to_tool_p99_ms",
    "sparse p50": "sparse_decision_to_tool_p50_ms",
    "runs p50": "runs_decision_to_tool_p50_ms",
    "runs p99": "runs_decision_to_tool_p99_ms",
    "open loop p50": "open_95_decision_to_tool_p50_ms",
}

Points = list[tuple[float, float]]


class Line(NamedTuple):
    """One system's points, in the units of the axes."""

    name: str
    color: str
    points: Points
    joined: bool = True
    dots: bool = True


class Axis(NamedTuple):
    """The name of an axis, its greatest value, and the texts of its ticks by their values."""

    name: str
    most: float
    ticks: Mapping[float, str]


def draw_plots(rows: Rows) -> None:
    """Write one file a plot into docs/images. A plot whose measures are missing stays as it is."""
    for name, draw in {"latency": _draw_latency, "backlog": _draw_backlog, "suspended": _draw_suspended}.items():
        text = draw(rows)
        if text is not None:
            (FOLDER / f"speed-{name}.svg").write_text(text, encoding="utf-8")


def _draw_latency(rows: Rows) -> str | None:
    kinds = [kind for kind in _KINDS if _KINDS[kind] in rows]
    lines = [
        line._replace(points=[(x + 0.1 * place - 0.1, y) for x, y in line.points], joined=False)
        for place, line in enumerate(_list_lines(rows, [_KINDS[kind] for kind in kinds]))
    ]
    axis = Axis("", len(kinds), {place + 0.5: kind for place, kind in enumerate(kinds)})
    return _draw("From a decision to its tool (ms)", axis, lines)


def _draw_backlog(rows: Rows) -> str | None:
    if "open_95_backlog" not in rows:
        return None
    lines = []
    loop_s = float(rows["open_loop_s"]["value"])
    for system, (name, color) in _SYSTEMS.items():
        if series := rows["open_95_backlog"][system]:
            points = [(loop_s * place / len(series), count) for place, count in enumerate(series, 1)]
            lines.append(Line(name, color, points, dots=False))
    axis = Axis("seconds", loop_s, {loop_s * part / 4: f"{loop_s * part / 4:g}" for part in range(5)})
    return _draw("Decided calls that have not started, at 95 % of each system's maximum", axis, lines)


def _draw_suspended(rows: Rows) -> str | None:
    measures = [f"old_decision_to_tool_p50_ms_at_{size}" for size in SIZES]
    lines = _list_lines(rows, [measure for measure in measures if measure in rows])
    ticks = {place + 0.5: f"{size:,}" for place, size in enumerate(SIZES)}
    return _draw("From an old decision to its tool, p50 (ms)", Axis("suspended calls", len(SIZES), ticks), lines)


def _list_lines(rows: Rows, measures: Sequence[str]) -> list[Line]:
    """Return a line for each system with a point for each measure that it has, at 0.5, 1.5 and so on."""
    found = []
    for system, (name, color) in _SYSTEMS.items():
        values = [(place + 0.5, rows[measure][system]) for place, measure in enumerate(measures)]
        found.append(Line(name, color, [(place, float(value)) for place, value in values if value is not None]))
    return [line for line in found if line.points]


def _draw(title: str, axis: Axis, lines: Sequence[Line]) -> str | None:
    """Return the plot; None without any point."""
    if not lines:
        return None
    most = _round_up(max(y for line in lines for _, y in line.points))

    def place_x(x: float) -> float:
        return round(_LEFT + (_RIGHT - _LEFT) * x / axis.most, 1)

    def place_y(y: float) -> float:
        return round(_BOTTOM - (_BOTTOM - _TOP) * y / most, 1)

    shares: dict[str, Any] = {
        "lines": [one._replace(points=[(place_x(x), place_y(y)) for x, y in one.points]) for one in lines],
        "x_ticks": [{"at": place_x(x), "text": text} for x, text in axis.ticks.items()],
        "y_ticks": [{"at": place_y(most * n / _TICKS), "text": f"{most * n / _TICKS:g}"} for n in range(_TICKS + 1)],
    }
    edges = {"width": _WIDTH, "height": _HEIGHT, "left": _LEFT, "right": _RIGHT, "bottom": _BOTTOM}
    environment = Environment(loader=FileSystemLoader(CHECKOUT / "benchmarks" / "speed"), autoescape=True)
    return environment.get_template("chart.svg.j2").render(title=title, x_name=axis.name, **shares, **edges) + "\n"


def _round_up(most: float) -> float:
    """Return the next of 1, 2, 2.5, 5 and 10 times a power of ten."""
    power = 10.0 ** int(log10(max(most, 1)))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= most)


if __name__ == "__main__":
    draw_plots(json.loads((CHECKOUT / "benchmarks" / "latest.json").read_text(encoding="utf-8")))
