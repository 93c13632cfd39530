"""Tokens and money of a run's model calls."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.policy.engine import Policy
from sayso.core.policy.events import ModelPrice, compute_cost
from sayso.core.policy.rules import Action
from sayso.core.records.suspensions import ModelUsage, Progress
from tests.sayso.core.policy.rule_files import parse, read_problems
from tests.sayso.rule_builders import event, policy, rule

FILE = """
version: 1
default: allow
model_prices:
  large-1: {input: 2.5, output: 10}
  "small-*": {input: 1, output: 1}
rules:
  - id: dear
    subjects: [any]
    when: run.cost > 5
    action: deny
"""
COUNTS = st.integers(0, 10**9)


def spent(*usage: tuple[str, int, int]) -> Progress:
    return Progress(usage=tuple(ModelUsage(model=name, input_tokens=a, output_tokens=b) for name, a, b in usage))


def judge(rules: Policy, progress: Progress | None, **facts: Any) -> Action:
    return rules.judge(event(progress=progress, **facts)).action


def test_cost_adds_the_prices_of_all_models() -> None:
    prices = {"large-1": ModelPrice(input=2.5, output=10), "small-*": ModelPrice(input=1, output=1)}
    assert compute_cost(spent(("large-1", 1_000_000, 100_000), ("small-2", 500_000, 0)).usage or (), prices) == 4.0
    assert compute_cost((), prices) == 0
    assert compute_cost(spent(("other", 1, 1)).usage or (), prices) is None


def test_exact_name_has_priority_over_a_pattern() -> None:
    prices = {"m-*": ModelPrice(input=1, output=1), "m-1": ModelPrice(input=9, output=9)}
    assert compute_cost(spent(("m-1", 1_000_000, 0)).usage or (), prices) == 9


def test_rule_limits_the_cost_of_a_run() -> None:
    rules = parse(FILE)
    assert judge(rules, spent(("large-1", 0, 500_000))) is Action.ALLOW
    assert judge(rules, spent(("large-1", 0, 500_001))) is Action.DENY
    call = {"event_type": "llm_before_execute"}
    assert judge(rules, spent(("large-1", 0, 600_000)), **call) is Action.DENY
    assert judge(rules, spent(), **call) is Action.ALLOW


@pytest.mark.parametrize("progress", [None, Progress(), spent(("unpriced", 1, 1)), spent(("", 1, 1))])
def test_unknown_cost_is_asked_about_and_denies_model_calls(progress: Progress | None) -> None:
    rules = parse(FILE)
    assert judge(rules, progress) is Action.REQUEST_APPROVAL
    assert judge(rules, progress, event_type="llm_before_execute") is Action.DENY


def test_tokens_need_no_prices() -> None:
    rules = policy(rule("long", when="run.tokens >= 100"))
    assert judge(rules, spent(("", 60, 40))) is Action.DENY
    assert judge(rules, spent(("", 60, 39))) is Action.ALLOW


def test_prices_are_part_of_the_version() -> None:
    other = FILE.replace("2.5", "2.6")
    assert parse(FILE).version != parse(other).version
    assert Policy.model_validate_json(parse(FILE).model_dump_json()).version == parse(FILE).version


@pytest.mark.parametrize(
    ("prices", "problem"),
    [
        ("{m: {input: 1}}", "output: is missing"),
        ("{m: {input: -1, output: 1}}", "greater than or equal to 0"),
        ("{m: {input: 1, output: 1, cached: 1}}", "there is no key `cached`"),
        ("{m: 5}", "must be"),
        ("[1]", "must be"),
        ("{'[m': {input: 1, output: 1}}", "no closing ]"),
    ],
)
def test_wrong_prices_are_faults_of_the_file(prices: str, problem: str) -> None:
    problems = read_problems(f"version: 1\ndefault: allow\nmodel_prices: {prices}\nrules: []\n")
    assert any(problem in one and "model_prices" in one for one in problems), problems


@given(turns=st.lists(st.tuples(st.sampled_from(["a", "b", ""]), COUNTS, COUNTS), max_size=20))
def test_usage_adds_up_over_turns(turns: list[tuple[str, int, int]]) -> None:
    progress = Progress(usage=())
    for name, given_tokens, made in turns:
        progress = progress.with_usage(ModelUsage(model=name, input_tokens=given_tokens, output_tokens=made))
    for name in {name for name, _, _ in turns}:
        (total,) = [one for one in progress.usage or () if one.model == name]
        assert total.input_tokens == sum(count for model, count, _ in turns if model == name)
        assert total.output_tokens == sum(count for model, _, count in turns if model == name)


def test_one_turn_without_usage_makes_it_unknown_for_good() -> None:
    progress = Progress(usage=()).with_usage(ModelUsage(model="a", input_tokens=1)).with_usage(None)
    assert progress.usage is None
    assert progress.with_usage(ModelUsage(model="a")).usage is None
