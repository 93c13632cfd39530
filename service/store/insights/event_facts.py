"""What the events of a commit add to its facts: calls that may get a second look, and counters of rules."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sayso.core.policy.rules import ASKING, Action
from sayso.core.records.events import Event, EventType
from service.store.connection.commits import Commit, Update
from service.store.insights.metrics import Metric
from service.store.keys import TenantKeys
from service.store.suspensions.rule_hits import DEFAULT


class Candidate(NamedTuple):
    """A call that was allowed or decided: the number of its trail event, and the share of like calls to draw."""

    run_id: str
    seq: int
    share: float


def list_candidates(run_id: str, events: Sequence[Event], first_seq: int) -> tuple[Candidate, ...]:
    """Return the calls of new trail events that may be drawn; the first event has the number `first_seq`."""
    candidates: list[Candidate] = []
    for seq, event in enumerate(events, start=first_seq):
        share = event.data.get("second_look")
        if isinstance(share, int | float):
            candidates.append(Candidate(run_id, seq, share))
    return tuple(candidates)


def note_taken(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Draw no call again whose second look the events of the update record."""
    run_id, events = update.after.run.id, update.change.events
    taken = [name_call(run_id, event.data["seen"]) for event in events if event.type is EventType.SECOND_LOOK_TAKEN]
    if taken:
        commit.write("ZREM", keys.second_look, *taken)


def list_noted(events: Sequence[Event]) -> Iterator[tuple[str, str]]:
    """Yield the counters to raise by 1, each with its rule."""
    for event in events:
        if event.type is EventType.POLICY_DECISION:
            if ("near_miss" in event.data or "shadow" in event.data) and event.data.get("action") == Action.ALLOW:
                yield from ((Metric.RULE_NEAR, rule) for rule in _list_near(event.data))
        elif event.type is EventType.SECOND_LOOK_TAKEN:
            rule = event.data["rule_id"] or DEFAULT
            yield Metric.RULE_SECOND_LOOK, rule
            if not event.data["agrees"]:
                yield Metric.RULE_DISAGREED, rule
                if event.data["ran"]:
                    yield Metric.RULE_WRONG, rule


def _list_near(data: dict[str, Any]) -> Iterator[str]:
    """Yield the rules that nearly stopped an allowed call: by a limit that it used up, or as shadow rules."""
    if "near_miss" in data:
        yield data["near_miss"]
    yield from (rule["rule_id"] for rule in data.get("shadow", ()) if rule.get("action") in (*ASKING, Action.DENY))


def name_call(run_id: str, seq: int) -> str:
    """Return the name of a call among those that wait for a second look."""
    return f"{run_id} {seq}"
