"""Latencies of tools are totals by source: a call that ran, or the result that an earlier attempt saved."""

from typing import Any

import pytest

from sayso.core.records.events import Event, EventType
from sayso.core.records.suspensions import Change, Intent, Lease, SuspensionRecord
from service.core.store.connection.commits import Update
from service.features.insights.totals import count_totals, parse_totals
from tests.sayso.samples import T0, draft, intent


def completed(index: int, latency_ms: float | None) -> Event:
    return Event(EventType.TOOL_COMPLETED, {"tool_name": "refund", "index": index, "latency_ms": latency_ms})


def batch(latency_ms: float) -> Event:
    return Event(EventType.TOOL_BATCH_COMPLETED, {"tool_call_count": 2, "latency_ms": latency_ms})


def report(journal: tuple[Intent, ...], *events: Event) -> dict[str, tuple[int, int]]:
    """Return the count and sum, ms, of calls and batches by source after attempt 2 has reported these events."""
    lease: Any = Lease(holder="w2", attempt=2, until_ms=T0)
    record: SuspensionRecord = draft(journal=journal, lease=lease)
    update = Update(record, Change(record, events), record, ((record, record),), 1, T0)
    totals = parse_totals(count_totals(update))
    both = {"call": totals.calls, "batch": totals.batches}
    delays = {f"{kind} {source}": delay for kind, by in both.items() for source, delay in by.items()}
    return {name: (delay.total, delay.sum_ms) for name, delay in delays.items() if delay.total}


NOW, EARLIER = intent(attempt=2), intent(index=1, result={"call_id": "call_1", "tool_name": "refund", "success": True})


@pytest.mark.parametrize(
    ("journal", "events", "expected"),
    [
        ((NOW,), (completed(0, 30), batch(31)), {"call execute": (1, 30), "batch execute": (1, 31)}),
        ((EARLIER,), (completed(1, 30), batch(0)), {"call replay": (1, 30), "batch replay": (1, 0)}),
        (
            (NOW, EARLIER),
            (completed(0, 400_000), completed(1, 2), batch(400_001)),
            {"call execute": (1, 400_000), "call replay": (1, 2), "batch execute": (1, 400_001)},
        ),
        ((), (completed(0, None), batch(0)), {}),
    ],
    ids=["ran", "saved earlier", "both", "denied"],
)
def test_latencies_count_by_source(
    journal: tuple[Intent, ...], events: tuple[Event, ...], expected: dict[str, tuple[int, int]]
) -> None:
    assert report(journal, *events) == expected


def test_latency_counts_within_the_first_bound_that_is_not_shorter() -> None:
    record = draft(journal=(NOW,))
    events = tuple(completed(0, latency_ms) for latency_ms in (5, 5.001, 300_001))
    update = Update(record, Change(record, events), record, (), 1, T0)
    calls = parse_totals(count_totals(update)).calls["replay"]
    assert (calls.within[:3], calls.within[-1], calls.total) == ((1, 2, 2), 2, 3)
