"""Runs under rules that remember calls: counted as they start, and judged again when others were first."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest

from sayso.core.clock import now_ms
from sayso.core.policy.counters.readings import UNIT, Readings, Wanted
from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import Action
from sayso.core.records.events import Event
from sayso.core.records.judgements import Charge, place_charges
from sayso.core.records.suspensions import RunStatus
from sayso.runner.batches import PlannedCall
from sayso.runner.loop import drive
from sayso.runner.protocol import RunEnded, RunSuspended
from sayso.runner.runs import ModelRun
from sayso.runner.transcripts import RunState
from tests.sayso.rule_builders import policy, rule
from tests.sayso.runners import Ledger as Journal
from tests.sayso.runners import Ran, approve, fields_of, make_agent, reload, turn
from tests.sayso.walks import START

ASK = Action.REQUEST_APPROVAL
BUDGET: dict[str, Any] = {"budget": {"sum": "args.amount", "max": "10", "per": 3600}}
RULES = policy(
    rule("small", "allow", tool_name="refund", **BUDGET), rule("look", "allow", tool_name="look"), default=ASK
)
CAPPED = policy(
    rule("no-more", tool_name="refund", over=BUDGET, priority=200),
    rule("ask", "request_approval", tool_name="refund", when="args.amount > 3"),
)


def pay(amount: float) -> tuple[str, Any]:
    return ("refund", {"order": "A", "amount": amount})


class Busy(Journal):
    """A journal whose counters other runs use, right before this run first redeems."""

    def __init__(self, rivals: int) -> None:
        super().__init__("run_1")
        self.rivals = rivals
        self.recalls = 0
        self.wanted: list[Wanted] = []

    async def recall(self, wanted: Collection[Wanted]) -> Readings:
        self.recalls += 1
        self.wanted = [*wanted]
        return await super().recall(wanted)

    async def redeem(
        self, calls: Sequence[PlannedCall], events: Sequence[Event], state: RunState | None
    ) -> Mapping[int, str]:
        if self.rivals and self.wanted:
            rival = Charge(counter=self.wanted[0].counter, per_s=3600, amount=self.rivals * UNIT)
            self._counters.add(place_charges([rival], now_ms()))
            self.rivals = 0
        return await super().redeem(calls, events, state)


async def go(
    journal: Journal, *calls: tuple[str, Any], rules: Policy = RULES, **changes: Any
) -> tuple[RunEnded[RunState] | RunSuspended[RunState], Ran, Any]:
    ran: Ran = []
    agent = make_agent(ran, turn(*calls), **changes)
    return await drive(ModelRun(agent, START), policy=rules, journal=journal), ran, agent


async def test_calls_run_within_the_budget_and_the_next_one_is_asked() -> None:
    reached, ran, _ = await go(journal := Busy(0), pay(6), pay(5), pay(4))
    assert isinstance(reached, RunSuspended)
    assert [(one.index, one.rule_id) for one in reached.drafts] == [(1, None)]
    assert [(one.key, one.total) for one in reached.drafts[0].remembered] == [("budget", 6 * UNIT)]
    assert (ran, journal.recalls) == ([], 1), "a batch waits as a whole, and one read serves it"


async def test_call_that_others_were_before_is_judged_again() -> None:
    reached, ran, _ = await go(journal := Busy(6), pay(5))
    assert isinstance(reached, RunSuspended)
    assert ran == []
    assert journal.recalls == 2
    decided = fields_of(reached.events, "policy_decision", "action", "policy_id")
    assert decided == [("allow", "small"), ("request_approval", None)], "both judgements are recorded"


async def test_call_that_still_fits_runs() -> None:
    reached, ran, _ = await go(Busy(5), pay(5))
    assert isinstance(reached, RunEnded)
    assert [args["amount"] for _, args, _ in ran] == [5]


@pytest.mark.parametrize(("default", "runs"), [(Action.DENY, 0), (Action.ALLOW, 1)])
async def test_judging_again_follows_the_next_rule(default: Action, runs: int) -> None:
    rules = RULES.model_copy(update={"default": default})
    reached, ran, _ = await go(Busy(6), pay(5), rules=rules)
    assert isinstance(reached, RunEnded)
    assert len(ran) == runs
    assert reached.status is RunStatus.COMPLETED


async def test_allowed_call_that_waited_counts_when_it_starts() -> None:
    journal = Busy(0)
    suspended, ran, agent = await go(journal, pay(6), ("crash", {"order": "A"}), ("look", {"order": "A"}))
    assert isinstance(suspended, RunSuspended)
    journal.rivals = 6
    outcomes = {1: approve(suspended.drafts[0])}
    run = ModelRun(agent, reload(suspended.state))
    again = await drive(run, policy=RULES, journal=journal, outcomes=outcomes)
    assert isinstance(again, RunSuspended)
    assert [name for name, _, _ in ran] == ["crash", "look"], "the others need not wait again"
    assert [one.index for one in again.drafts] == [0]
    ended = await drive(
        ModelRun(agent, reload(again.state)), policy=RULES, journal=journal, outcomes={0: approve(again.drafts[0])}
    )
    assert isinstance(ended, RunEnded)
    assert [name for name, _, _ in ran] == ["crash", "look", "refund"]


@pytest.mark.parametrize(("rivals", "runs"), [(6, 1), (7, 0)])
async def test_approved_call_is_denied_once_calls_are_over_a_limit(rivals: int, runs: int) -> None:
    suspended, ran, agent = await go(journal := Busy(0), pay(4), rules=CAPPED)
    assert isinstance(suspended, RunSuspended)
    journal.rivals = rivals
    outcomes = {0: approve(suspended.drafts[0])}
    run = ModelRun(agent, reload(suspended.state))
    ended = await drive(run, policy=CAPPED, journal=journal, outcomes=outcomes)
    assert isinstance(ended, RunEnded)
    assert len(ran) == runs
    assert fields_of([*journal.events, *ended.events], "tool_completed", "success") == [bool(runs)]


async def test_headless_run_falls_back_when_the_budget_is_used_up() -> None:
    reached, ran, _ = await go(journal := Busy(6), pay(5), interaction="headless")
    assert isinstance(reached, RunEnded)
    assert ran == []
    assert fields_of([*journal.events, *reached.events], "tool_completed", "success") == [False]


async def test_rules_without_memory_read_no_counters() -> None:
    plain = policy(rule("all", "allow"))
    reached, ran, _ = await go(journal := Busy(0), pay(5), rules=plain)
    assert isinstance(reached, RunEnded)
    assert (len(ran), journal.recalls) == (1, 0)
