"""Tests of the plain-text timeline."""

from typing import Any

from demo.checks import MAX_CHARS, render_timeline
from sayso.core.records.events import EventType, TrailEntry


def entry(kind: EventType | str, at_ms: int = 1000, **data: Any) -> TrailEntry:
    return TrailEntry(seq=1, at_ms=at_ms, type=kind, data=data, hash="")


def test_render_timeline_shows_time_type_and_summary() -> None:
    trail = [
        entry(EventType.RUN_STARTED, 1000, agent="demo", title="", owner="ann"),
        entry(EventType.TOOL_BATCH_STARTED, 1250, tool_call_count=2, step=1, tool_names=["a", "b"]),
    ]

    first, second = render_timeline(trail)

    assert first == "   0.000 s  run_started           ann started demo"
    assert second.startswith("   0.250 s  tool_batch_started    ")
    assert "2 calls" in second


def test_render_timeline_shortens_long_output_to_one_line() -> None:
    loud = entry(EventType.TOOL_COMPLETED, tool_name="t", success=True, output="one\ntwo " * 100, error=None)

    (line,) = render_timeline([loud])

    assert "\n" not in line
    assert len(line) == MAX_CHARS
