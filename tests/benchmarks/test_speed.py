"""Tests of the benchmark's arithmetic: percentiles, open loops, medians of rounds and bounds."""

from math import inf

import pytest

from benchmarks.measures import percentiles, quantile, repeat_for
from benchmarks.speed.bounds import BOUNDS, print_bounds
from benchmarks.speed.main import combine
from benchmarks.speed.open_loop import POINTS, Cycle, Figures, count_backlog, summarize


def arrive(per_s: int, seconds: int, decide_ms: float, tool_ms: float) -> list[Cycle]:
    dues = [number * 1000 / per_s for number in range(per_s * seconds)]
    return [Cycle(due, due, due + decide_ms, due + tool_ms) for due in dues]


@pytest.mark.parametrize(("share", "value"), [(0.01, 1), (0.5, 50), (0.99, 99), (1, 100)])
def test_quantile_is_the_nearest_rank(share: float, value: float) -> None:
    assert quantile(list(range(100, 0, -1)), share) == value


def test_quantile_of_one_value_is_this_value() -> None:
    assert percentiles("took", [7.0]) == {"took_p50_ms": 7.0, "took_p99_ms": 7.0}


async def test_repeat_for_ends_after_the_time_and_counts_every_step() -> None:
    steps: list[int] = []

    async def step(number: int) -> None:
        steps.append(number)

    count, rate = await repeat_for(0.001, 3, step)
    assert steps == list(range(count))
    assert rate > 0 or not count


def test_summarize_counts_times_from_the_scheduled_moment() -> None:
    late = [Cycle(due_ms, due_ms + 500, due_ms + 502, due_ms + 505) for due_ms in range(0, 1000, 10)]
    figures = summarize("open", late, 2000)
    assert figures["open_decide_call_p50_ms"] == 502
    assert figures["open_decision_to_tool_p99_ms"] == 505
    assert figures["open_driver_late_p99_ms"] == 500


def test_summarize_of_steady_starts_finds_a_flat_backlog() -> None:
    figures = summarize("open", arrive(100, 6, decide_ms=5, tool_ms=45), 6100)
    assert figures["open_per_s"] == pytest.approx(100)
    assert figures["open_errors"] == 0
    assert figures["open_backlog_mean"] == pytest.approx(4, abs=0.5)
    assert figures["open_backlog_growth_pct"] == pytest.approx(0, abs=0.5)


def test_summarize_of_starved_tools_finds_a_growing_backlog() -> None:
    starved = [one._replace(started_ms=2 * one.due_ms + 10) for one in arrive(100, 6, decide_ms=5, tool_ms=0)]
    figures = summarize("open", starved, 12_000)
    assert figures["open_backlog_growth_pct"] == pytest.approx(50, abs=2)
    assert isinstance(series := figures["open_backlog"], list)
    assert len(series) == POINTS
    assert series[-1] == pytest.approx(300, abs=5)


def test_summarize_counts_what_never_started_as_error_until_the_end() -> None:
    cycles = [*arrive(100, 1, decide_ms=5, tool_ms=6)[:98], Cycle(980, 980), Cycle(990, 990, 995)]
    figures = summarize("open", cycles, 3000)
    assert figures["open_errors"] == 2
    assert figures["open_decision_to_tool_p99_ms"] == 2010
    assert figures["open_decide_call_p99_ms"] == 5
    assert summarize("open", cycles[-3:], 3000)["open_decide_call_p99_ms"] == 2020


def test_count_backlog_ignores_undecided_and_early_tools() -> None:
    cycles = [Cycle(0, 0, 10, 20), Cycle(0, 0, 10, 5), Cycle(0, 0, inf, inf), Cycle(0, 0, 10, inf)]
    assert count_backlog(cycles, [9, 10, 20]) == [0, 2, 1]


def test_combine_takes_medians_of_rounds_beside_the_other_systems() -> None:
    floor_a: Figures = {"decide_call_p50_ms": 2.0}
    ours: list[Figures] = [{"decide_call_p50_ms": one, "open_95_backlog": [one, 1.0]} for one in (9.0, 1.0, 3.0)]
    rows = combine([{"sayso": figures, "floor_a": floor_a} for figures in ours])
    others = {"floor_b": None, "restate": None}
    assert rows["decide_call_p50_ms"] == {"value": 3.0, "unit": "ms", "floor_a": 2.0, **others}
    assert rows["open_95_backlog"] == {"value": [3.0, 1.0], "unit": "calls", "floor_a": None, **others}


def test_print_bounds_counts_what_is_missed(capsys: pytest.CaptureFixture[str]) -> None:
    ours: Figures = {"cycles_per_s_16": 160.0, "open_95_errors": 0.0}
    rows = combine([{"sayso": ours, "restate": {"cycles_per_s_16": 100.0}}])
    assert print_bounds(rows) == 1
    printed = capsys.readouterr().out
    assert "| cycles/s at 16, relative to Restate | at least 1.7 | 1.60 | **not met** |" in printed
    assert "| open loop at 95 %: errors | at most 0 | 0.00 | met |" in printed
    assert printed.count("not measured") == len(BOUNDS) - 2
