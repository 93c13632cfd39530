"""Judging several calls that start together: each counts for those after it."""

from collections.abc import Sequence

from sayso.errors import Unavailable
from sayso.policy.engine import Action, Policy, PolicyDecision, PolicyEvent
from sayso.policy.memory.recalling import Reading, Readings
from sayso.records.memory.charges import Charge

NO_READINGS: Readings = {}


def remember(policy: Policy, event: PolicyEvent, times: int = 0, readings: Readings = NO_READINGS) -> PolicyEvent:
    """Return the event as rules see it after the same call was let run so often, and nothing else was.

    `readings` are what some counters held before.
    """
    if not policy.remembering:
        return event
    ledger = Ledger(policy, {one.counter: Reading() for one in policy.list_wanted(event)} | dict(readings))
    for _ in range(times):
        ledger.judge_start(event, by_person=False)
    return event.model_copy(update={"memory": ledger.readings})


class Ledger:
    """The rules, and what their counters hold with the calls judged so far."""

    def __init__(self, policy: Policy, readings: Readings = NO_READINGS) -> None:
        self.policy = policy
        self.readings = dict(readings)

    def judge(self, event: PolicyEvent) -> PolicyDecision:
        """Return the decision on a call; an allowed one counts for the next."""
        decision = self._judge(event)
        if decision.action is Action.ALLOW:
            self._count(decision.due_charges)
        return decision

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
        if any(one.counter not in self.readings for one in self.policy.list_wanted(event)):
            raise Unavailable("The rules have changed while the call was judged; nothing was started. Try again.")

    def _judge(self, event: PolicyEvent) -> PolicyDecision:
        if self.policy.remembering:
            event = event.model_copy(update={"memory": self.readings.copy()})
        return self.policy.judge(event)

    def _count(self, charges: Sequence[Charge], times: int = 1) -> None:
        for one in charges:
            known = self.readings.get(one.counter)
            if known is not None and not one.sample:
                self.readings[one.counter] = Reading(total=known.total + times * one.amount)
