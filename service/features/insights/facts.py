"""Facts for the insights: what one commit asked and decided. They are saved in that commit and counted later."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from json import JSONEncoder
from typing import NamedTuple

from pydantic import TypeAdapter

from sayso.core.policy.rules import ASKING, Action
from sayso.core.records.decisions import ActorKind, Verdict
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Item
from sayso.core.records.suspensions import Status, SuspensionRecord
from service.core.store.connection.commits import Commit, Update
from service.core.store.keys import TenantKeys, name_call
from service.core.store.rules import DEFAULT


class Metric(StrEnum):
    """The counters: of suspensions, then of tools, people and rules. A histogram's bucket follows its name."""

    CAME = "came"
    LEFT = "left"

    ASKED = "asked"
    DECIDED = "decided"
    APPROVED = "approved"
    DENIED = "denied"
    EDITED = "edited"
    FALLBACK = "fallback"
    WAIT = "wait"

    BY = "by"
    FAST = "fast"
    NIGHT = "night"
    LOOK = "look"
    YES = "yes"
    NO = "no"
    YES_LOOK = "yes_look"

    RULE_ASKED = "rule_asked"
    RULE_DECIDED = "rule_decided"
    RULE_APPROVED = "rule_approved"
    RULE_DENIED = "rule_denied"
    RULE_EDITED = "rule_edited"
    RULE_FALLBACK = "rule_fallback"
    RULE_DECISIONS = "rule_decisions"
    RULE_MEASURED = "rule_measured"
    RULE_LOOK_MS = "rule_look_ms"
    RULE_SECOND_LOOK = "rule_second_look"
    RULE_DISAGREED = "rule_disagreed"
    RULE_WRONG = "rule_wrong"
    RULE_NEAR = "rule_near"


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
            # Rules that nearly stopped an allowed call: by a limit that it used up, or as shadow rules.
            if ("near_miss" in event.data or "shadow" in event.data) and event.data.get("action") == Action.ALLOW:
                if "near_miss" in event.data:
                    yield Metric.RULE_NEAR, event.data["near_miss"]
                for rule in event.data.get("shadow", ()):
                    if rule.get("action") in (*ASKING, Action.DENY):
                        yield Metric.RULE_NEAR, rule["rule_id"]
        elif event.type is EventType.SECOND_LOOK_TAKEN:
            rule = event.data["rule_id"] or DEFAULT
            yield Metric.RULE_SECOND_LOOK, rule
            if not event.data["agrees"]:
                yield Metric.RULE_DISAGREED, rule
                if event.data["ran"]:
                    yield Metric.RULE_WRONG, rule


class Step(StrEnum):
    """What happened to an item."""

    ASKED = "asked"
    DECIDED = "decided"
    FALLBACK = "fallback"


class ItemFact(NamedTuple):
    """An item that was asked, or its outcome; `wait_ms` is the time to a person's decision.

    `rule` is the rule that asked, `-` for the default, and empty in facts of before rules were noted.
    """

    tool: str
    step: Step
    verdict: Verdict | None = None
    edited: bool = False
    wait_ms: int = 0
    rule: str = ""


class PersonFact(NamedTuple):
    """One decision of a person; `look_ms` is None where it was not measured."""

    name: str
    decision_id: str
    approved: bool
    look_ms: int | None = None
    rule: str = ""
    denied: bool = False
    drill: bool = False


class Facts(NamedTuple):
    """The facts of one commit. `commit` makes equal facts of two commits two members of the queue.

    `came` and `left` count suspensions that began to wait for people, or stopped. `drawable` may be drawn for a second
    look. `noted` are counters of rules to raise by 1, each with its rule.
    """

    commit: str
    at_ms: int
    came: int = 0
    left: int = 0
    items: tuple[ItemFact, ...] = ()
    people: tuple[PersonFact, ...] = ()
    drawable: tuple[Candidate, ...] = ()
    noted: tuple[tuple[str, str], ...] = ()


_STORED = TypeAdapter(Facts)
_write = JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def note_facts(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Queue the facts of a change, to be counted later."""
    facts = write_facts(update.before, update.after, update.change.following, update.change.events, update.first_seq)
    if facts is not None:
        commit.write("ZADD", keys.facts, update.at_ms, facts)


def write_facts(
    before: SuspensionRecord | None,
    after: SuspensionRecord,
    following: SuspensionRecord | None,
    events: Sequence[Event] = (),
    first_seq: int = 1,
) -> str | None:
    """Return the facts of a change, as stored; None if there are none. The first event has the number `first_seq`."""
    pairs = [(before, after), *([(None, following)] if following is not None else [])]
    items = tuple(fact for prior, record in pairs for fact in list_items(prior, record))
    came = sum(_is_pending(record) and not _is_pending(prior) for prior, record in pairs)
    left = int(_is_pending(before) and not _is_pending(after))
    people = tuple(_list_people(before, after)) if before is not None else ()
    drawable, noted = list_candidates(after.run.id, events, first_seq), tuple(list_noted(events))
    if not (items or people or came or left or drawable or noted):
        return None
    commit = f"{after.id} {after.version}"
    facts = Facts(commit, after.updated_at_ms, came, left, items, people, drawable, noted)
    return _write(facts)


def read_facts(stored: bytes) -> Facts:
    """Return stored facts; raises `ValidationError` for those of another version."""
    return _STORED.validate_json(stored)


def _is_pending(record: SuspensionRecord | None) -> bool:
    return record is not None and record.status is Status.PENDING


def list_items(before: SuspensionRecord | None, after: SuspensionRecord) -> Iterator[ItemFact]:
    """Yield what was asked and how it ended. What a rule decided at once was never asked; drills do not count."""
    priors = {item.item_id: item for item in before.items} if before is not None else {}
    for item in after.items:
        prior, outcome = priors.get(item.item_id), item.outcome
        if (
            prior is item
            or item.drill is not None
            or item.reverses is not None
            or (prior is not None and not prior.open)
        ):
            continue
        by = outcome.by.kind if outcome is not None else None
        if prior is None and by in (None, ActorKind.TIMEOUT):
            yield ItemFact(item.tool.name, Step.ASKED, rule=_name_rule(item))
        if by is ActorKind.TIMEOUT:
            yield ItemFact(item.tool.name, Step.FALLBACK, rule=_name_rule(item))
        elif by is ActorKind.HUMAN and prior is not None and outcome is not None:
            edited = outcome.verdict is Verdict.APPROVED and outcome.args is not None
            wait_ms = max(0, outcome.at_ms - after.created_at_ms)
            yield ItemFact(item.tool.name, Step.DECIDED, outcome.verdict, edited, wait_ms, _name_rule(item))


def _name_rule(item: Item) -> str:
    return item.terms.rule_id or DEFAULT


def _list_people(before: SuspensionRecord, after: SuspensionRecord) -> Iterator[PersonFact]:
    known = {decision.id for item in before.items for decision in item.decisions}
    for item in after.items:
        for decision in item.decisions:
            if decision.id not in known and decision.by.kind is ActorKind.HUMAN:
                look_ms = decision.shown.look_ms if decision.shown is not None else None
                approved, denied = decision.action == "approve", decision.action == "deny"
                drill = item.drill is not None
                yield PersonFact(decision.by.id, decision.id, approved, look_ms, _name_rule(item), denied, drill)
