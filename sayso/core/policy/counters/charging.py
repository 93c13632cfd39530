"""Which charges a change of a suspension adds to counters and which it takes back; counters in memory.

Of calls that start together, each counts for those judged after it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.counters.readings import (
    Reading,
    Readings,
    Wanted,
    list_counters,
    list_mandate_counters,
    name_scope,
    name_scope_of,
)
from sayso.core.policy.counters.recalling import find_percentile
from sayso.core.policy.counters.restraining import MOST_DENIALS, list_denials, restrain
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.rule_keys import MOST_SAMPLES
from sayso.core.policy.rules import Action
from sayso.core.records.decisions import EarlierDenial
from sayso.core.records.judgements import Assessment, Charge, Level, assess_unanswered, find_slot, first_slot
from sayso.core.records.permissions import Grant, GrantState, Mandate
from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.errors import OverLimit, Unavailable

_OVER = (Status.RESUMED, Status.CANCELLED, Status.FAILED)


class Counted(NamedTuple):
    """The charges that a change adds and those that it takes back."""

    added: tuple[Charge, ...] = ()
    removed: tuple[Charge, ...] = ()


NOTHING = Counted()


def find_counted(before: SuspensionRecord | None, change: Change) -> Counted:
    """Return what a change does to counters.

    A call that was allowed when it was asked holds its charges until its suspension ends without it. Other calls are
    charged when they start. Charges of a call that has started stay, unless the change releases them; those of asking
    about a call stay.
    """
    was = list(_list_held(before)) if before is not None else []
    now = list(_list_held(change.record))
    if change.following is not None:
        now += _list_held(change.following)
    begun, begins = (_list_begun(before) if before is not None else []), _list_begun(change.record)
    if was == now and begun == begins and not change.released:
        return NOTHING
    if not (was or begun or change.released):
        return Counted((*now, *begins))
    added = Counter((*now, *begins)) - Counter((*was, *begun))
    removed = Counter(was) - Counter(now) + Counter(change.released)
    return Counted(tuple(added.elements()), tuple(removed.elements()))


def list_limits(added: Iterable[Charge]) -> dict[str, tuple[Charge, int | None]]:
    """Return each counter's latest charge, and the most it may hold before the charges for all to be within limits."""
    sums: dict[str, int] = {}
    limits: dict[str, tuple[Charge, int | None]] = {}
    for charge in added:
        if charge.sample:
            continue
        total = sums[charge.counter] = sums.get(charge.counter, 0) + charge.amount
        latest, room = limits.get(charge.counter, (charge, None))
        if charge.most is not None:
            spare = charge.most - total
            room = spare if room is None else min(room, spare)
        limits[charge.counter] = (charge if charge.slot > latest.slot else latest, room)
    return limits


def _list_held(record: SuspensionRecord) -> Iterator[Charge]:
    over = record.status in _OVER
    for item in record.items:
        yield from item.asked
        if item.charges and (item.permit is not None or (not over and item.outcome and item.outcome.may_run)):
            yield from item.charges


def _list_begun(record: SuspensionRecord) -> list[Charge]:
    return [charge for intent in record.journal for charge in intent.charges]


class CounterBook:
    """Counters in the memory of one process, for runs and desks without a store."""

    def __init__(self) -> None:
        self._sums: dict[str, Counter[int]] = {}
        self._samples: dict[str, list[tuple[int, int]]] = {}
        self._grants: dict[str, Grant] = {}
        self._mandates: dict[str, Mandate] = {}
        self._denials: dict[str, tuple[EarlierDenial, ...]] = {}

    def read(self, wanted: Iterable[Wanted], now_ms: int) -> Readings:
        readings: dict[str, Reading] = {}
        for need in wanted:
            if need.question is not None:
                fault = assess_unanswered(need.question, "this desk asks no assessors")
                readings[need.counter] = Reading(assessment=fault)
                continue
            if need.denials:
                readings[need.counter] = Reading(denials=self._denials.get(need.counter, ()))
                continue
            name = need.counter
            grants, mandates = tuple[Grant, ...](), tuple[Mandate, ...]()
            if need.grants:
                named = (grant for grant in self._grants.values() if name_scope(grant.rule_id, grant.agent) == name)
                grants = tuple(grant for grant in named if grant.find_state(now_ms) is GrantState.IN_FORCE)
            if need.tool is not None:
                plans = (mandate for mandate in self._mandates.values() if name_scope_of(mandate) == name)
                mandates = tuple(plan for plan in plans if plan.find_state(now_ms) is GrantState.IN_FORCE)
            held = need.grants or need.tool is not None
            readings[need.counter] = Reading(grants=grants, mandates=mandates) if held else self._read(need, now_ms)
            counters = [counter for grant in grants for counter in list_counters(grant)]
            counters += [counter for mandate in mandates for counter in list_mandate_counters(mandate, need.tool)]
            readings |= {counter.counter: self._read(counter, now_ms) for counter in counters}
        return readings

    def apply(self, before: SuspensionRecord | None, change: Change) -> None:
        """Count what a change adds and takes back; raises `OverLimit`, and then counts nothing."""
        counted = find_counted(before, change)
        if change.grant is not None:
            self._grants[change.grant.id] = change.grant
        if change.mandate is not None:
            self.keep_mandate(change.mandate)
        self.add(counted.added)
        self.remove(counted.removed)
        for name, denial in list_denials(before, change.record):
            self.note_denial(name, denial)

    def note_denial(self, name: str, denial: EarlierDenial) -> None:
        self._denials[name] = (*self._denials.get(name, ()), denial)[-MOST_DENIALS:]

    def find_mandate(self, mandate_id: str) -> Mandate | None:
        return self._mandates.get(mandate_id)

    def keep_mandate(self, mandate: Mandate) -> None:
        self._mandates[mandate.id] = mandate

    def add(self, charges: Iterable[Charge]) -> None:
        """Count placed charges, all or none; raises `OverLimit`."""
        charges = tuple(charges)
        for counter, (charge, room) in list_limits(charges).items():
            first = first_slot(charge.per_s, charge.slot)
            if room is not None and _sum(self._sums.get(counter, Counter()), first) > room:
                raise OverLimit
        for charge in charges:
            if charge.sample:
                samples = [*self._samples.get(charge.counter, []), (charge.slot, charge.amount)]
                self._samples[charge.counter] = samples[-MOST_SAMPLES:]
            else:
                self._sums.setdefault(charge.counter, Counter())[charge.slot] += charge.amount

    def remove(self, charges: Iterable[Charge]) -> None:
        for charge in charges:
            if charge.sample and (charge.slot, charge.amount) in self._samples.get(charge.counter, []):
                self._samples[charge.counter].remove((charge.slot, charge.amount))
            elif not charge.sample:
                self._sums.setdefault(charge.counter, Counter())[charge.slot] -= charge.amount

    def _read(self, wanted: Wanted, now_ms: int) -> Reading:
        first = first_slot(wanted.per_s, find_slot(wanted.per_s, now_ms))
        if wanted.percentile is None:
            return Reading(total=_sum(self._sums.get(wanted.counter, Counter()), first))
        amounts = [amount for slot, amount in self._samples.get(wanted.counter, []) if slot >= first]
        return Reading(total=find_percentile(amounts, wanted.percentile), samples=len(amounts))


def _sum(slots: Counter[int], first: int) -> int:
    return sum(amount for slot, amount in slots.items() if slot >= first)


NO_READINGS: Readings = {}


def remember(policy: Policy, event: PolicyEvent, times: int = 0, readings: Readings = NO_READINGS) -> PolicyEvent:
    """Return the event as rules see it after the same call ran so often, from `readings`; assessors say low."""
    if not policy.remembering:
        return event
    blank: dict[str, Reading] = {}
    for need in policy.list_wanted(event):
        asked = need.question
        low = asked and Assessment(key=asked.key, assessor=asked.assessor, level=Level.LOW)
        blank[need.counter] = Reading(assessment=low)
    ledger = Ledger(policy, blank | dict(readings))
    for _ in range(times):
        ledger.judge_start(event, by_person=False)
    return event.model_copy(update={"readings": ledger.readings})


class Ledger:
    """The rules, and what their counters hold with the calls judged so far."""

    def __init__(self, policy: Policy, readings: Readings = NO_READINGS) -> None:
        self.policy = policy
        self.readings = dict(readings)

    def judge(self, event: PolicyEvent) -> PolicyDecision:
        """Return the decision on a call; an allowed one counts, a near miss if the same call again would not be."""
        decision = self._judge(event)
        if decision.action is not Action.ALLOW:
            return decision
        self._count(decision.due_charges)
        rule_id = self._find_used_up(decision)
        if rule_id is None or self._judge(event).action is Action.ALLOW:
            return decision
        return decision.model_copy(update={"near_miss": rule_id})

    def judge_request(self, event: PolicyEvent) -> PolicyDecision:
        """Return the decision on a call that an agent requests: as `judge`, unless its rule does not ask again."""
        decision = restrain(self.policy.live, event, self.judge(event), self.readings)
        self._count(decision.asked)
        return decision

    def judge_beside(
        self, event: PolicyEvent, definition: ToolDefinition, *, registered: bool = True
    ) -> JsonObject | None:
        """Return what to record of a candidate about a call that is about to be judged; None without a candidate."""
        known = event.model_copy(update={"readings": event.readings | self.readings})
        return self.policy.judge_beside(known, definition, registered=registered)

    def judge_start(
        self, event: PolicyEvent, charged: Sequence[Charge] = (), *, by_person: bool = True
    ) -> PolicyDecision:
        """Return the decision on a call that is about to start; it counts unless it is denied.

        A call that is `charged` already is judged as if it were not. One that was approved `by_person` takes nothing of
        what a rule allows. Raises `Unavailable` if a counter was not read: the call would start uncounted.
        """
        self._check_read(event)
        self._count(charged, -1)
        decision = self._judge(event)
        if by_person and decision.allowance:
            decision = decision.model_copy(update={"allowance": ()})
        self._count(charged)
        if decision.action is not Action.DENY and not charged:
            self._count(decision.due_charges)
        return decision

    def peek(self, event: PolicyEvent, charged: Sequence[Charge] = ()) -> PolicyDecision:
        """Return the decision on a call that is `charged` already; it does not count. Raises as `judge_start`."""
        self._check_read(event)
        self._count(charged, -1)
        decision = self._judge(event)
        self._count(charged)
        return decision

    def _check_read(self, event: PolicyEvent) -> None:
        if any(need.counter not in self.readings for need in self.policy.list_wanted(event)):
            raise Unavailable("The rules have changed while the call was judged; nothing was started. Try again.")

    def _find_used_up(self, decision: PolicyDecision) -> str | None:
        """Return the first rule with a limit that has no room for the same call again; None with a grant or mandate."""
        if decision.granted_by:
            return None
        limits = {charge.counter: charge for charge in decision.due_charges if charge.most is not None}
        for entry in decision.remembered:
            charge, known = limits.get(entry.counter), self.readings.get(entry.counter)
            if charge is None or charge.most is None or known is None:
                continue
            if known.total + charge.amount > charge.most:
                return entry.rule_id
        return None

    def _judge(self, event: PolicyEvent) -> PolicyDecision:
        if self.policy.remembering:
            event = event.model_copy(update={"readings": event.readings | self.readings})
        return self.policy.judge(event)

    def _count(self, charges: Sequence[Charge], times: int = 1) -> None:
        for charge in charges:
            known = self.readings.get(charge.counter)
            if known is not None and not charge.sample:
                self.readings[charge.counter] = Reading(total=known.total + times * charge.amount)
