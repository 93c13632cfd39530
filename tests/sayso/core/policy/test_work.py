"""Conditions beyond a budget are deferred: their verdicts come from elsewhere, or they cannot be computed."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from sayso.core.policy.budgets import (
    INLINE_US,
    MOST_ROUNDS,
    Deferred,
    Job,
    Verdict,
    Work,
    complete,
    settle,
    settle_blocking,
    working,
)
from sayso.core.policy.conditions import ConditionError, Facts, compile_condition
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.functions import Names
from sayso.core.policy.rules import Action, PolicyRule, RuleCondition
from sayso.errors import InvalidInput
from service.core.policy.evaluations import judge_job, read_verdicts, write_job

SLOW = "select a" + ", a[1]" * 100
QUERIES = '!sql(args.query, "postgres").writes'


def policy(*whens: str, action: str = "allow") -> Policy:
    rules = (
        PolicyRule(rule_id=f"r{n}", action=Action(action), condition=RuleCondition(when=w)) for n, w in enumerate(whens)
    )
    return Policy(rules=tuple(rules), default=Action.DENY)


def event(**args: Any) -> PolicyEvent:
    return PolicyEvent(run_id="run_1", agent="a", tool_name="run", tool_args=args)


class Elsewhere:
    """Judges jobs, and counts them."""

    def __init__(self, *, gives_up: bool = False) -> None:
        self.jobs: list[Job] = []
        self._gives_up = gives_up

    def judge(self, job: Job) -> Sequence[Verdict]:
        self.jobs.append(job)
        if self._gives_up:
            return [Verdict(None, "it cannot be computed")] * len(job.whens)
        return read_verdicts(judge_job(write_job(job)))

    async def compute(self, job: Job) -> Sequence[Verdict]:
        return self.judge(job)


def judge(rules: Policy, asked: PolicyEvent, elsewhere: Elsewhere) -> PolicyDecision:
    return settle_blocking(lambda: rules.judge(asked), elsewhere.judge)


def test_cheap_conditions_are_judged_at_once() -> None:
    elsewhere = Elsewhere()
    assert judge(policy(QUERIES), event(query="select 1"), elsewhere).action is Action.ALLOW
    assert elsewhere.jobs == []


def test_costly_conditions_are_judged_elsewhere_in_one_job() -> None:
    elsewhere = Elsewhere()
    decision = judge(
        policy("has_card(args.query)", QUERIES, 'sql(args.query, "postgres").kinds == ["x"]'),
        event(query=SLOW),
        elsewhere,
    )
    assert (decision.action, decision.policy_id, decision.error) == (Action.ALLOW, "r1", None)
    assert decision.computed == {'sql(args.query, "postgres").writes': False}
    assert [[*job.whens] for job in elsewhere.jobs] == [[QUERIES, 'sql(args.query, "postgres").kinds == ["x"]']]


@pytest.mark.parametrize(("action", "ends"), [("allow", Action.REQUEST_APPROVAL), ("deny", Action.REQUEST_APPROVAL)])
def test_a_condition_without_a_verdict_is_asked_about(action: str, ends: Action) -> None:
    decision = judge(policy(QUERIES, action=action), event(query=SLOW), Elsewhere(gives_up=True))
    assert (decision.action, decision.error) == (ends, "rule r0: it cannot be computed")


def test_an_absolute_rule_without_a_verdict_denies() -> None:
    hard = PolicyRule(rule_id="h", action=Action.DENY, absolute=True, condition=RuleCondition(when=QUERIES))
    rules = Policy(rules=(hard,), default=Action.ALLOW)
    assert judge(rules, event(query=SLOW), Elsewhere(gives_up=True)).action is Action.DENY


def test_many_costly_calls_take_one_budget_together() -> None:
    work, rules = Work(), policy(QUERIES)
    with working(work):
        for number in range(500):
            query = f"select a, b, c from orders where id = {number}"  # noqa: S608 - it is only parsed
            rules.judge(event(query=query))
    assert work.left_us < INLINE_US
    assert 100 < sum(len(job.whens) for _, job in work.take()) < 500


def test_an_evaluation_that_fails_without_a_verdict_is_repeated() -> None:
    """A denial that a missing verdict causes is no denial yet."""

    @complete
    def start() -> str:
        if policy(QUERIES).judge(event(query=SLOW)).action is not Action.ALLOW:
            raise InvalidInput("denied")
        return "started"

    elsewhere = Elsewhere()
    assert settle_blocking(start, elsewhere.judge) == "started"
    with working(Work()), pytest.raises(Deferred):
        start()
    with pytest.raises(InvalidInput):
        settle_blocking(start, Elsewhere(gives_up=True).judge)


async def test_rounds_are_bounded() -> None:
    """Each round may show another condition; after the last one the rest cannot be computed."""
    turns = 0

    @complete
    def judge_another() -> PolicyDecision:
        nonlocal turns
        turns += 1
        return policy(QUERIES).judge(event(query=f"{SLOW} + {turns}"))

    async def act() -> PolicyDecision:
        return judge_another()

    decision = await settle(act, Elsewhere().compute)
    assert (decision.action, turns) == (Action.REQUEST_APPROVAL, MOST_ROUNDS + 1)


def judge_here(when: str, facts: Facts) -> tuple[bool | None, str]:
    try:
        return compile_condition(when).holds(facts), ""
    except ConditionError as error:
        return None, error.problem


FACTS = {"args": {"n": 3, "f": 2.5, "t": "a"}, "tool": "run", "agent": "a", "context": {"env": "prod"}}
NAMES = Names({"eu": ("AT", "DE")}, {"most": 5})
CONDITIONS = (
    'args.n == 3 && args.f == 2.5 && args.t == "a" && context.env == "prod"',
    'now.getHours("Europe/Berlin") == 10',
    '"AT" in lists.eu && args.n < constants.most',
    'run.tenant == "t" && subagents == ["x"]',
    "args.missing == 1",
    "args.t > 5",
    'shell(args.t).programs == ["a"]',
    'sql(args.t).kinds == ["a"]',
)


@pytest.mark.parametrize("when", CONDITIONS)
def test_a_verdict_from_elsewhere_is_what_the_condition_yields_here(when: str) -> None:
    values = {**FACTS, "claimed": {}, "run_id": "run_1", "step": 1, "now": datetime(2026, 11, 25, 9, 5, tzinfo=UTC)}
    facts = Facts(values, NAMES, lambda: {"run": {"tenant": "t"}, "subagents": ["x"]})
    (verdict,) = read_verdicts(judge_job(write_job(Job(facts.describe(), {when: None}))))
    assert verdict[:2] == judge_here(when, facts)


def test_facts_that_differ_have_another_key() -> None:
    keys = [Facts({"args": args}).key for args in ({"a": 1}, {"a": 1.5}, {"a": "1"}, {"a": True}, {"a": [1]}, {"b": 1})]
    keys += [Facts({"args": {"a": 1}, "tool": "x"}).key, Facts({"args": {"a": 1}}, NAMES).key]
    assert len({*keys}) == len(keys)
