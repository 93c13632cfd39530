"""Who is asked when: the people behind the reviewers of a rule, with their delegates, holds and channels."""

from collections.abc import Iterator
from typing import NamedTuple

from sayso.errors import NotFound
from sayso.policy.engine import Policy
from sayso.records.items import Item
from sayso.records.suspensions import SuspensionRecord
from sayso.records.terms import GROUP_PREFIX, FallbackAction
from sayso.sentences.deadlines import describe_fallback
from service.channels.previews import SampleCall, build_sample
from service.duty.absences import absent_delegate, find_absence
from service.duty.holds import find_hold
from service.wiring import Wiring


class Asked(NamedTuple):
    """One person who is asked in a step, on a channel; `reason` says why not, or why later than the step."""

    step: int
    at_ms: int
    reviewer: str
    person: str
    channel: str
    sent_at_ms: int | None
    reason: str


class Plan(NamedTuple):
    """Everybody who is asked about a call, by step, and the effect of the deadline."""

    asked: tuple[Asked, ...]
    deadline_at_ms: int
    end: str


async def list_present(wiring: Wiring, person: str, at_ms: int, requester: str = "") -> tuple[str, ...]:
    """Return the present people behind a reviewer, a group, or everybody for an empty name; delegates stand in."""
    absences = await wiring.duty.list_absences()
    present: dict[str, None] = {}
    for name in await _list_names(wiring, person):
        if find_absence(absences, name, at_ms) is None:
            present[name] = None
        elif delegate := absent_delegate(absences, name, at_ms, requester):
            present[delegate] = None
    return tuple(present)


async def plan(wiring: Wiring, policy: Policy, rule_id: str, call: SampleCall, at_ms: int) -> Plan:
    """Return who is asked about a call that begins to wait under a rule; raises `NotFound` or `InvalidInput`."""
    record, _ = build_sample(policy, rule_id, call, at_ms)
    item = record.items[0]
    asked: list[Asked] = []
    for step, step_ms, reviewers in _list_steps(record, item):
        for reviewer in reviewers:
            asked += await _ask(wiring, record, item, Asked(step, step_ms, reviewer, "", "", None, ""))
    end = describe_fallback(record, item)
    return Plan(tuple(asked), item.terms.deadline_at_ms, f"{end[:1].upper()}{end[1:]}.")


def _list_steps(record: SuspensionRecord, item: Item) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield each step: its number, its time and its reviewers. An escalation as the fallback is at the deadline."""
    terms = item.terms
    yield 0, record.created_at_ms, terms.reviewers or ("",)
    for number, step in enumerate(terms.escalate, start=1):
        step_ms = record.created_at_ms + step.after_s * 1000
        if terms.fallback.action is FallbackAction.ESCALATE:
            step_ms = min(step_ms, terms.deadline_at_ms)
        if step_ms <= terms.deadline_at_ms:
            yield number, step_ms, step.reviewers


async def _ask(wiring: Wiring, record: SuspensionRecord, item: Item, base: Asked) -> list[Asked]:
    owner = record.run.owner
    present = await list_present(wiring, base.reviewer, base.at_ms, owner)
    people = [one for one in present if one != owner or not item.terms.no_self_approval]
    if not people:
        return [base._replace(reason="Nobody is present who may decide.")]
    found: list[Asked] = []
    for person in people:
        for channel in item.terms.channels:
            found.append(await _ask_on(wiring, item, base._replace(person=person, channel=channel), record))
        if not item.terms.channels:
            found.append(base._replace(person=person, reason="The rule names no channels."))
    return found


async def _ask_on(wiring: Wiring, item: Item, one: Asked, record: SuspensionRecord) -> Asked:
    if not await wiring.contacts.addresses_of(one.person, one.channel):
        return one._replace(reason=f"{one.person} has no address on {one.channel}.")
    if item.terms.urgent:
        return one._replace(sent_at_ms=one.at_ms)
    preferences = await wiring.duty.find_preferences(one.person)
    hold = find_hold(preferences, record.created_at_ms, item.terms.deadline_at_ms, one.at_ms)
    if hold is None:
        return one._replace(sent_at_ms=one.at_ms)
    if hold.until_ms >= item.terms.deadline_at_ms:
        return one._replace(reason=f"Held past the deadline: {hold.reason}; the next step is asked at once.")
    return one._replace(sent_at_ms=hold.until_ms, reason=f"Held: {hold.reason}.")


async def _list_names(wiring: Wiring, person: str) -> list[str]:
    if not person:
        return [one.name for one in await wiring.reviewers.list_all() if one.active]
    if not person.startswith(GROUP_PREFIX):
        return [person]
    try:
        return [*(await wiring.groups.read(person.removeprefix(GROUP_PREFIX))).members]
    except NotFound:
        return []
