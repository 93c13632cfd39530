"""Measure rounds, and print and write what they found."""

import gc
import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import uvloop

from benchmarks.clients import Stamps
from benchmarks.speed.bounds import print_bounds
from benchmarks.speed.open_loop import Figure, Figures
from benchmarks.speed.plots import draw_plots
from benchmarks.speed.rounds import Extent, measure_round
from service.core.settings import CHECKOUT

LATEST = CHECKOUT / "benchmarks" / "latest.json"
SYSTEMS = ("sayso", "floor_a", "floor_b", "restate")
_UNITS = {
    "_per_s": "1/s",
    "_per_s_16": "1/s",
    "_two_workers": "1/s",
    "_ms": "ms",
    "_us": "µs",
    "_s": "s",
    "_pct": "%",
    "_bytes": "bytes",
    "_run": "bytes",
    "_backlog": "calls",
    "_mean": "calls",
    "_errors": "calls",
}
"""Unit of a measure by the end of its name, the first that fits."""


def main(rounds: int, extent: Extent, plots: bool) -> int:
    """Measure, write and print; return 1 if a bound is not met."""
    gc.disable()  # collecting the driver's garbage would delay its requests and stamps by up to 90 ms
    rows = uvloop.run(measure(rounds, extent))
    LATEST.write_text(json.dumps(rows, indent=2) + "\n")
    if plots:
        draw_plots(rows)
    print_table(rows)
    return int(print_bounds(rows) > 0)


async def measure(rounds: int, extent: Extent) -> dict[str, dict[str, Any]]:
    """Return each measure with Sayso's value, its unit and the other systems' values: medians of the rounds."""
    stamps = Stamps()
    await stamps.listen()
    found: list[dict[str, Figures]] = []
    for number in range(rounds):
        found.append(await measure_round(stamps, extent))
        print(json.dumps({"round": number + 1, **found[-1]}), flush=True)
    return combine(found)


def combine(rounds: Sequence[Mapping[str, Figures]]) -> dict[str, dict[str, Any]]:
    """Return the rows of the table from the figures of each system in each round."""
    names = dict.fromkeys(name for figures in rounds for system in SYSTEMS for name in figures.get(system, {}))
    rows: dict[str, dict[str, Any]] = {}
    for name in names:
        unit = next(unit for ending, unit in _UNITS.items() if name.partition("_at_")[0].endswith(ending))
        values = {system: _median([one.get(system, {}).get(name) for one in rounds]) for system in SYSTEMS}
        rows[name] = {"value": values.pop("sayso"), "unit": unit, **values}
    return rows


def print_table(rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the measures as a Markdown table; series are for the plots alone."""
    print("\n| measure | Sayso | floor A | ratio | floor B | Restate | ratio |\n|" + " --- |" * 7)
    for name, row in rows.items():
        if not any(isinstance(value, list) for value in row.values()):
            value, floor, rival = row["value"], row["floor_a"], row["restate"]
            shown = (value, floor, _divide(value, floor), row["floor_b"], rival, _divide(value, rival))
            print(f"| {name} ({row['unit']}) | {' | '.join(map(_show, shown))} |")


def _median(values: Sequence[Figure | None]) -> Figure | None:
    """Return the median of the rounds, or for series the median of each place."""
    series = [value for value in values if isinstance(value, list)]
    if series:
        return [median(place) for place in zip(*series, strict=True)]
    numbers = [value for value in values if isinstance(value, int | float)]
    return median(numbers) if numbers else None


def _divide(value: float | None, other: float | None) -> float | None:
    return value / other if value is not None and other else None


def _show(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"
