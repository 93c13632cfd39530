"""What a commit notes about rules: the calls that each decided, and the last items that each asked for."""

from collections import Counter
from collections.abc import Sequence

from sayso.clock import DAY_MS
from sayso.records.events import Event, EventType
from sayso.records.suspensions import Change, SuspensionRecord

DEFAULT = "-"
"""The name of the default among rules; no rule id begins with it."""

HITS_KEPT_MS = 40 * DAY_MS
MOST_ITEMS = 20


def count_hits(events: Sequence[Event]) -> Counter[str]:
    """Return how many calls each rule decided. Calls without an existing tool reach no rule."""
    hits: Counter[str] = Counter()
    for event in events:
        if event.type is EventType.POLICY_DECISION:
            data = event.data
            by_default = data.get("rule_version") and not data.get("error")
            if name := data.get("policy_id") or (DEFAULT if by_default else None):
                hits[name] += 1
    return hits


def list_asked(before: SuspensionRecord | None, change: Change) -> dict[str, list[str]]:
    """Return the entries of new items that wait for a person, by their rule; calls in doubt have none."""
    known = {item.item_id for item in before.items} if before is not None else set()
    new = [(change.record.id, item) for item in change.record.items if item.item_id not in known]
    if change.following is not None:
        new += [(change.following.id, item) for item in change.following.items]
    asked: dict[str, list[str]] = {}
    for suspension_id, item in new:
        if item.open and item.doubt is None and item.drill is None:
            asked.setdefault(item.terms.rule_id or DEFAULT, []).append(f"{suspension_id} {item.item_id}")
    return asked
