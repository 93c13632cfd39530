"""What a commit notes about rules: the calls that each decided, and the last items that each asked for."""

from collections import Counter
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from sayso.core.clock import DAY_MS
from sayso.core.records.events import Event, EventType
from sayso.core.records.suspensions import Change, SuspensionRecord
from service.store.connection.commits import Commit, Update
from service.store.keys import TenantKeys

DEFAULT = "-"
"""The name of the default among rules; no rule id begins with it."""

HITS_KEPT_MS = 40 * DAY_MS
MOST_ITEMS = 20


SHADOW = "shadow:"
"""The beginning of the counts of shadow rules, `shadow:<rule>:<action>`; no rule id has a colon."""

FAILED = "failed"
"""The action of a shadow rule that could not be evaluated."""


def note_rules(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Count the calls that rules decided, and list the items that they ask for."""
    if hits := count_hits(update.change.events):
        key = keys.rule_hits(update.at_ms // DAY_MS)
        for rule_id, count in hits.items():
            commit.write("HINCRBY", key, rule_id, count)
        commit.write("PEXPIRE", key, HITS_KEPT_MS)
    for rule_id, entries in list_asked(update.before, update.change).items():
        key = keys.asked_by(rule_id)
        commit.write("LPUSH", key, *entries)
        commit.write("LTRIM", key, 0, MOST_ITEMS - 1)


def count_hits(events: Sequence[Event]) -> Counter[str]:
    """Return how many calls each rule decided, and what shadow rules would have done.

    Calls without an existing tool reach no rule.
    """
    hits: list[str] = []
    for event in events:
        if event.type is EventType.POLICY_DECISION:
            data = event.data
            by_default = data.get("rule_version") and not data.get("error")
            if name := data.get("policy_id") or (DEFAULT if by_default else None):
                hits.append(name)
            if "shadow" in data:
                hits += [f"{SHADOW}{rule_id}:{action}" for rule_id, action in _list_shadows(data["shadow"])]
    return Counter(hits) if hits else Counter()


def _list_shadows(shadows: JsonValue) -> Iterator[tuple[JsonValue, JsonValue]]:
    for shadow in shadows if isinstance(shadows, list) else ():
        if isinstance(shadow, dict):
            yield shadow["rule_id"], shadow.get("action", FAILED)


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
