"""Judging several calls that start together: each counts for those after it."""

from collections.abc import Sequence

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.counters.readings import Reading, Readings
from sayso.core.policy.counters.restraining import restrain
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.rules import Action
from sayso.core.records.assessments import Assessment, Level, Question
from sayso.core.records.charges import Charge
from sayso.core.records.tools import ToolDefinition
from sayso.errors import Unavailable

NO_READINGS: Readings = {}


def remember(policy: Policy, event: PolicyEvent, times: int = 0, readings: Readings = NO_READINGS) -> PolicyEvent:
    """Return the event as rules see it after the same call was let run so often, and nothing else was.

    `readings` are what some counters held before. Assessors are not asked: every call is low.
    """
    if not policy.remembering:
        return event
    blank = {need.counter: Reading(assessment=_assume_low(need.question)) for need in policy.list_wanted(event)}
    ledger = Ledger(policy, blank | dict(readings))
    for _ in range(times):
        ledger.judge_start(event, by_person=False)
    return event.model_copy(update={"readings": ledger.readings})


def _assume_low(question: Question | None) -> Assessment | None:
    return question and Assessment(key=question.key, assessor=question.assessor, level=Level.LOW)


class Ledger:
    """The rules, and what their counters hold with the calls judged so far."""

    def __init__(self, policy: Policy, readings: Readings = NO_READINGS) -> None:
        self.policy = policy
        self.readings = dict(readings)

    def judge(self, event: PolicyEvent) -> PolicyDecision:
        """Return the decision on a call; an allowed one counts for the next.

        If it used up a limit, so that the same call once more would not be allowed, the decision is a near miss.
        """
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
            charge = limits.get(entry.counter)
            if charge is not None and charge.most is not None:
                known = self.readings.get(entry.counter)
                if known is not None and known.total + charge.amount > charge.most:
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
