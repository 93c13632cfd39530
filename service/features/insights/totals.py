"""Totals of a tenant since its first day: verdicts of rules, decisions, fallbacks, and how long people and tools took.

The commit of a change adds them itself, so each counts once, whichever process makes the change.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import NamedTuple

from sayso.core.policy.rules import ASKING, Action
from sayso.core.records.decisions import Verdict
from sayso.core.records.events import EventType
from service.core.store.connection.commits import Commit, Update
from service.core.store.connection.connecting import text
from service.core.store.keys import TenantKeys
from service.core.store.load import Delays
from service.core.store.tenants import StorePart
from service.features.insights.facts import Step, list_items

VERDICTS = ("allow", "ask", "deny")
OUTCOMES = (*(verdict.value for verdict in Verdict), "fallback")
BOUNDS_S = (5, 15, 60, 300, 900, 3_600, 14_400, 86_400, 604_800)
SOURCES = ("execute", "replay")
TOOL_BOUNDS_S = (0.005, 0.025, 0.1, 0.25, 1, 2.5, 10, 60, 300)
_OVER, _SUM = "over", "ms"
_NAMES: Mapping[str, str] = MappingProxyType(
    {Action.ALLOW: "allow", Action.DENY: "deny", **dict.fromkeys(ASKING, "ask")}
)


class Totals(NamedTuple):
    """How often rules gave each verdict and items had each outcome, the times to decide, and those of tools."""

    verdicts: Mapping[str, int]
    outcomes: Mapping[str, int]
    decisions: Delays  # within each of `BOUNDS_S`
    calls: Mapping[str, Delays]  # by source, within each of `TOOL_BOUNDS_S`
    batches: Mapping[str, Delays]


def note_totals(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Add what a change decided and reported to the totals."""
    for field, by in count_totals(update).items():
        commit.write("HINCRBY", keys.totals, field, by)


def count_totals(update: Update) -> Counter[str]:
    """Return what a change adds to the totals, by field."""
    counts: Counter[str] = Counter()
    for event in update.change.events:
        if event.type is EventType.POLICY_DECISION and (verdict := _NAMES.get(event.data.get("action", ""))):
            counts[verdict] += 1
    for before, after in update.pairs:
        for item in list_items(before, after):
            if item.step is Step.FALLBACK:
                counts["fallback"] += 1
            elif item.step is Step.DECIDED and item.verdict is not None:
                counts.update({item.verdict.value: 1, **_place("", BOUNDS_S, item.wait_ms)})
    for kind, latency_ms in _list_latencies(update):
        counts.update(_place(f"{kind} ", TOOL_BOUNDS_S, latency_ms))
    return counts


def _list_latencies(update: Update) -> Iterator[tuple[str, float]]:
    """Yield what a change reports of tools: `call` or `batch` with a source, and the latency, ms.

    `replay` is the result that an earlier attempt saved: the call did not run again. A batch is one if no call of it
    ran. Calls that never ran have no latency.
    """
    record = update.before
    attempt = record.lease.attempt if record is not None and record.lease is not None else None
    journal = record.journal if record is not None else ()
    earlier = {intent.index for intent in journal if intent.attempt != attempt}
    sources: set[str] = set()
    for event in update.change.events:
        latency_ms = event.data.get("latency_ms")
        if not isinstance(latency_ms, int | float):
            continue
        if event.type is EventType.TOOL_COMPLETED:
            source = "replay" if event.data.get("index") in earlier else "execute"
            sources.add(source)
            yield f"call {source}", latency_ms
        elif event.type is EventType.TOOL_BATCH_COMPLETED and sources:
            yield f"batch {min(sources)}", latency_ms


def _place(prefix: str, bounds_s: Sequence[float], ms: float) -> dict[str, int]:
    """Return what a delay adds: one to the first bound that is not shorter, and the delay to the sum."""
    place = bisect_left(bounds_s, ms / 1000)
    within = str(bounds_s[place]) if place < len(bounds_s) else _OVER
    return {f"{prefix}{within}": 1, f"{prefix}{_SUM}": round(ms)}


def parse_totals(fields: Mapping[str, int]) -> Totals:
    """Return the totals of their stored fields."""

    def read(prefix: str, bounds_s: Sequence[float]) -> Delays:
        within = tuple(accumulate(fields.get(f"{prefix}{bound}", 0) for bound in bounds_s))
        return Delays(within, within[-1] + fields.get(f"{prefix}{_OVER}", 0), fields.get(f"{prefix}{_SUM}", 0))

    return Totals(
        {name: fields.get(name, 0) for name in VERDICTS},
        {name: fields.get(name, 0) for name in OUTCOMES},
        read("", BOUNDS_S),
        {source: read(f"call {source} ", TOOL_BOUNDS_S) for source in SOURCES},
        {source: read(f"batch {source} ", TOOL_BOUNDS_S) for source in SOURCES},
    )


class TotalsStore(StorePart):
    """The totals of one tenant."""

    async def read(self) -> Totals:
        """Return the totals."""
        fields = await self._redis.hgetall(self._keys.totals)
        return parse_totals({text(field): int(by) for field, by in fields.items()})
