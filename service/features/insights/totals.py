"""Totals of a tenant since its first day: verdicts of rules, decisions, fallbacks and how long people took to decide.

The commit of a change adds them itself, so each counts once, whichever process makes the change.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
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
_OVER, _SUM = "over", "ms"
_NAMES: Mapping[str, str] = MappingProxyType(
    {Action.ALLOW: "allow", Action.DENY: "deny", **dict.fromkeys(ASKING, "ask")}
)


class Totals(NamedTuple):
    """How often rules gave each verdict and items had each outcome, and the times to decide."""

    verdicts: Mapping[str, int]
    outcomes: Mapping[str, int]
    decisions: Delays  # within each of `BOUNDS_S`


def note_totals(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Add what a change decided to the totals."""
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
                place = bisect_left(BOUNDS_S, item.wait_ms / 1000)
                within = str(BOUNDS_S[place]) if place < len(BOUNDS_S) else _OVER
                counts.update({item.verdict.value: 1, within: 1, _SUM: item.wait_ms})
    return counts


def parse_totals(fields: Mapping[str, int]) -> Totals:
    """Return the totals of their stored fields."""
    within = tuple(accumulate(fields.get(str(bound), 0) for bound in BOUNDS_S))
    return Totals(
        {name: fields.get(name, 0) for name in VERDICTS},
        {name: fields.get(name, 0) for name in OUTCOMES},
        Delays(within, within[-1] + fields.get(_OVER, 0), fields.get(_SUM, 0)),
    )


class TotalsStore(StorePart):
    """The totals of one tenant."""

    async def read(self) -> Totals:
        """Return the totals."""
        fields = await self._redis.hgetall(self._keys.totals)
        return parse_totals({text(field): int(by) for field, by in fields.items()})
