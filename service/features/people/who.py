"""Who is asked when: the people behind the reviewers of a rule, with their delegates, holds and channels."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import NamedTuple
from zoneinfo import ZoneInfo

from sayso.core.policy.engine import Policy
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import FallbackAction, RuleTerms, group_of
from sayso.core.sentences.deadlines import describe_fallback
from sayso.errors import NotFound
from sayso.wire.people import Preferences
from service.channels.base import SharedOnly
from service.channels.kinds import Channels
from service.channels.previews import SampleCall, build_sample
from service.core.auth.duty import Day, find_hold, find_working_hours, list_days
from service.core.store.directory import Group, absent_delegate, find_absence
from service.core.wiring import Wiring

MOST_PEOPLE = 30


class Asked(NamedTuple):
    """One person who is asked in a step, on a channel; `reason` says why not, or why later than the step.

    A row without a person and with a time is the channel's own destination.
    """

    step: int
    at_ms: int
    reviewer: str
    person: str
    channel: str
    sent_at_ms: int | None
    reason: str
    off_duty: bool = False


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


async def find_preferences(wiring: Wiring, person: str, reviewers: Sequence[str]) -> Preferences:
    """Return how a person is notified whom these reviewers include.

    The working hours are the person's own, or those of a group through which the person is asked. Who is named in
    person, and has none, is asked at any time.
    """
    preferences = await wiring.duty.find_preferences(person)
    if person in reviewers:
        return preferences
    groups = [group for name in reviewers if (group := await _find_group(wiring, name)) is not None]
    groups.sort(key=lambda group: person not in group.members)  # a delegate is a member of none
    working = find_working_hours(preferences, groups[0] if groups else None)
    return preferences.model_copy(update={"working_hours": working})


async def plan(wiring: Wiring, channels: Channels, policy: Policy, rule_id: str, call: SampleCall, at_ms: int) -> Plan:
    """Return who is asked about a call that begins to wait under a rule; raises `NotFound` or `InvalidInput`."""
    record, _ = build_sample(policy, rule_id, call, at_ms)
    item = record.items[0]
    asked = await _Planner(wiring, channels, record, item).list_asked()
    end = describe_fallback(record, item)
    return Plan(tuple(asked), item.terms.deadline_at_ms, f"{end[:1].upper()}{end[1:]}.")


class Week(NamedTuple):
    """Who is asked in a step over a week. Above `MOST_PEOPLE`, `left_out` people are not considered."""

    step: int
    after_s: int
    days: list[Day]
    left_out: int


async def plan_weeks(wiring: Wiring, terms: RuleTerms, first: date, zone: ZoneInfo) -> list[Week]:
    """Return who is asked when over the week from a local day on, for each step of a rule."""
    absences = await wiring.duty.list_absences()
    active = {reviewer.name for reviewer in await wiring.reviewers.list_all() if reviewer.active}
    staged = tuple(name for stage in terms.stages for name in stage.reviewers)
    steps = [(0, terms.reviewers or staged), *((step.after_s, step.reviewers) for step in terms.escalate)]
    weeks = []
    for step, (after_s, reviewers) in enumerate(steps):
        listed = [await _list_names(wiring, reviewer) for reviewer in reviewers or ("",)]
        names = [name for name in dict.fromkeys(name for some in listed for name in some) if name in active]
        considered = names[:MOST_PEOPLE]
        delegates = [absence.delegate for absence in absences if absence.delegate in active]
        everybody = dict.fromkeys((*considered, *delegates))
        preferences = {name: await find_preferences(wiring, name, reviewers) for name in everybody}
        list_all = partial(list_days, preferences, considered, absences, first, zone, urgent=terms.urgent)
        weeks.append(Week(step, after_s, await asyncio.to_thread(list_all), len(names) - len(considered)))
    return weeks


@dataclass(frozen=True)
class _Planner:
    """Lists who is asked about an item. A step that reaches nobody lets the next one be asked at once."""

    wiring: Wiring
    channels: Channels
    record: SuspensionRecord
    item: Item

    async def list_asked(self) -> list[Asked]:
        """Return the rows of all steps up to the deadline; nobody gets a second card on a channel."""
        asked: dict[tuple[str, str], Asked] = {}
        early_ms: int | None = None
        for step, natural_ms in self._list_times():
            step_ms = natural_ms if early_ms is None else early_ms
            if step_ms > self.item.terms.deadline_at_ms:
                break
            for reviewer in self.item.terms.reviewers_of(step) or ("",):
                for row in await self._ask(Asked(step, step_ms, reviewer, "", "", None, "")):
                    asked.setdefault((row.person or row.reviewer, row.channel), row)
            rows = [row for row in asked.values() if row.step == step]
            reached = any(row.sent_at_ms is not None and not row.off_duty for row in rows)
            early_ms = step_ms if rows and self.item.terms.channels and not reached else None
        return [*asked.values()]

    def _list_times(self) -> Iterator[tuple[int, int]]:
        """Yield each step with its time. An escalation as the fallback is at the deadline."""
        terms = self.item.terms
        yield 0, self.record.created_at_ms
        for number, step in enumerate(terms.escalate, start=1):
            step_ms = self.record.created_at_ms + step.after_s * 1000
            escalates = terms.fallback.action is FallbackAction.ESCALATE
            yield number, min(step_ms, terms.deadline_at_ms) if escalates else step_ms

    async def _ask(self, base: Asked) -> list[Asked]:
        run, terms = self.record.run, self.item.terms
        present = await list_present(self.wiring, base.reviewer, base.at_ms, run.owner)
        people = [person for person in present if person not in run.list_excluded(terms)]
        if not terms.channels and people:
            return [await self._ask_in_browser(base._replace(person=person)) for person in people]
        rows: list[Asked] = []
        for name in terms.channels or ("",):
            row, channel = base._replace(channel=name), self.channels.find(name)
            if name and channel is None:
                rows.append(row._replace(reason=f"There is no channel named {name}."))
            elif channel is not None and (
                isinstance(channel, SharedOnly) or (not base.reviewer and bool(channel.shared_address))
            ):
                rows.append(row._replace(reviewer="", sent_at_ms=base.at_ms, reason="The channel's own destination."))
            elif not people:
                rows.append(row._replace(reason="Nobody is present who may decide."))
            else:
                rows += [await self._ask_person(row._replace(person=person)) for person in people]
        return rows

    async def _ask_in_browser(self, row: Asked) -> Asked:
        built_in = self.channels.built_in
        if built_in is None or not await self.wiring.contacts.addresses_of(row.person, built_in.name):
            return row._replace(reason="The rule names no channels.")
        return await self._ask_person(row._replace(channel=built_in.name))

    async def _ask_person(self, row: Asked) -> Asked:
        if not await self.wiring.contacts.addresses_of(row.person, row.channel):
            return row._replace(reason=f"{row.person} has no address on {row.channel}.")
        terms = self.item.terms
        if terms.urgent:
            return row._replace(sent_at_ms=row.at_ms)
        preferences = await find_preferences(self.wiring, row.person, terms.reviewers_of(row.step))
        cap = preferences.cap_per_hour
        most = f"At most {cap} interruption{'' if cap == 1 else 's'} an hour." if cap is not None else ""
        hold = find_hold(preferences, self.record.created_at_ms, terms.deadline_at_ms, row.at_ms)
        if hold is None:
            return row._replace(sent_at_ms=row.at_ms, reason=most)
        if hold.until_ms >= terms.deadline_at_ms:
            return row._replace(reason=f"Held past the deadline: {hold.reason}.")
        reason = f"Held: {hold.reason}. {most}".rstrip()
        return row._replace(sent_at_ms=hold.until_ms, reason=reason, off_duty=hold.off_duty)


async def _find_group(wiring: Wiring, reviewer: str) -> Group | None:
    name = group_of(reviewer)
    try:
        return await wiring.groups.read(name) if name is not None else None
    except NotFound:
        return None


async def _list_names(wiring: Wiring, person: str) -> list[str]:
    if not person:
        return [reviewer.name for reviewer in await wiring.reviewers.list_all() if reviewer.active]
    if group_of(person) is None:
        return [person]
    group = await _find_group(wiring, person)
    return [*group.members] if group is not None else []
