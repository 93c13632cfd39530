"""What the figures must show, and whether they do."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Rows = Mapping[str, Mapping[str, Any]]
"""Each measure by its name: `value` of Sayso, `unit`, and the other systems' values."""


class Bound(NamedTuple):
    """A bound of one figure that is computed from the rows; a figure may be at most the limit, or at least."""

    name: str
    compute: Callable[[Rows], float]
    limit: float
    at_least: bool = False


def _ratio(measure: str, other: str = "", system: str = "value") -> Callable[[Rows], float]:
    """Return Sayso's measure relative to another one of Sayso's, or to that of another system."""
    return lambda rows: float(rows[measure]["value"]) / float(rows[other or measure][system])


def _value(measure: str) -> Callable[[Rows], float]:
    return lambda rows: float(rows[measure]["value"])


BOUNDS = (
    Bound("decision to tool p50, relative to Restate", _ratio("decision_to_tool_p50_ms", system="restate"), 0.8),
    Bound("decision to tool p99, relative to Restate", _ratio("decision_to_tool_p99_ms", system="restate"), 1),
    Bound("decision to tool p99, relative to floor A", _ratio("decision_to_tool_p99_ms", system="floor_a"), 1.5),
    Bound(
        "sparse decision to tool p50, relative to hot",
        _ratio("sparse_decision_to_tool_p50_ms", "decision_to_tool_p50_ms"),
        1.3,
    ),
    Bound(
        "decision to tool p50 of runs, relative to calls",
        _ratio("runs_decision_to_tool_p50_ms", "decision_to_tool_p50_ms"),
        1.3,
    ),
    Bound("cycles/s at 16, relative to Restate", _ratio("cycles_per_s_16", system="restate"), 1.7, at_least=True),
    Bound("cycles/s of runs, relative to calls", _ratio("runs_cycles_per_s_16", "cycles_per_s_16"), 0.7, at_least=True),
    Bound("open loop at 95 %: decide p99 (ms)", _value("open_95_decide_call_p99_ms"), 50),
    Bound("open loop at 95 %: decision to tool p99 (ms)", _value("open_95_decision_to_tool_p99_ms"), 200),
    Bound("open loop at 95 %: backlog's growth (% of arrivals)", _value("open_95_backlog_growth_pct"), 1),
    Bound("open loop at 95 %: errors", _value("open_95_errors"), 0),
    Bound(
        "old decisions to tool p50, most suspended relative to fewest",
        _ratio("old_decision_to_tool_p50_ms_at_100000", "old_decision_to_tool_p50_ms_at_1000"),
        1.15,
    ),
    Bound("deadlines within a second: all applied after (s)", _value("deadlines_applied_s"), 1.5),
    Bound(
        "decide p99 while deadlines pass, relative to idle",
        _ratio("deadlines_decide_call_p99_ms", "deadlines_idle_decide_call_p99_ms"),
        3,
    ),
)


def print_bounds(rows: Rows) -> int:
    """Print each bound beside its figure; return how many are not met. A figure that was not measured counts as met."""
    missed = 0
    print("\n| bound | limit | figure | |\n| --- | --- | --- | --- |")
    for bound in BOUNDS:
        limit = f"at {'least' if bound.at_least else 'most'} {bound.limit:g}"
        try:
            figure = bound.compute(rows)
        except (KeyError, TypeError):
            print(f"| {bound.name} | {limit} | | not measured |")
            continue
        met = figure >= bound.limit if bound.at_least else figure <= bound.limit
        missed += not met
        print(f"| {bound.name} | {limit} | {figure:,.2f} | {'met' if met else '**not met**'} |")
    return missed
