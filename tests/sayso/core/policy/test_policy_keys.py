"""Keys of a rules file that remember calls: what they may say, and what is refused with what to do."""

import pytest

from sayso.core.policy.engine import Policy
from sayso.core.policy.rule_keys import Budget, Limit, read_period, write_period
from tests.sayso.core.policy.rule_files import HEAD, parse, read_problems

ALLOW, DENY = "  - {id: a, action: allow, %s}\n", "  - {id: a, action: deny, %s}\n"


def test_keys_of_an_allow_rule() -> None:
    text = ALLOW % "limit: {count: 5, per: 1h, by: [agent, args.to.id]}, budget: {sum: args.sum, max: 10.5, per: 7d}"
    condition = parse(HEAD + text).rules[0].condition
    assert condition.limit == Limit(count=5, per=3600, by=("agent", "args.to.id"))
    assert condition.budget == Budget.model_validate({"sum": "args.sum", "max": "10.5", "per": 7 * 86_400})


def test_keys_survive_publication() -> None:
    policy = parse(HEAD + ALLOW % "budget: {sum: args.sum, max: 0.1, per: 1d}")
    again = Policy.model_validate_json(policy.model_dump_json())
    assert (again, again.version) == (policy, policy.version)


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (DENY % "limit: {count: 1, per: 1h}", "rule a: write `limit` below `over:` here"),
        (DENY % "budget: {sum: args.a, max: 1, per: 1h}", "rule a: write `budget` below `over:` here"),
        (ALLOW % "over: {limit: {count: 1, per: 1h}}", "rule a: `over` is for rules that ask or deny"),
        (ALLOW % "unseen: {value: args.a, within: 1d}", "rule a: `unseen` is for rules that ask or deny"),
        (ALLOW % "limit: {count: 1, per: 1h}, subjects: [llm_call]", "rule a: model calls are not remembered"),
        (DENY % "over: {}", "rule a: over: needs `limit`, `budget` or both"),
        (ALLOW % "limit: {count: 0, per: 1h}", "rule a: limit.count: must be greater than or equal to 1, not 0"),
        (ALLOW % "limit: {count: 1}", "rule a: limit.per: is missing"),
        (ALLOW % "limit: {count: 1, per: 1h, per_day: 1}", "rule a: limit: there is no key `per_day` here"),
        (ALLOW % "limit: {count: 1, per: 1y}", "rule a: limit.per: '1y' is not a period; write a number and s"),
        (ALLOW % "limit: {count: 1, per: 5s}", "rule a: limit.per: a period is between 10s and 366d"),
        (ALLOW % "limit: {count: 1, per: 1h, by: team}", "rule a: limit.by.0: 'team' cannot be counted by"),
        (ALLOW % "limit: {count: 1, per: 1h, by: args}", "rule a: limit.by.0: 'args' cannot be counted by"),
        (ALLOW % "budget: {sum: amount, max: 1, per: 1h}", "rule a: budget.sum: 'amount' is not an argument"),
        (ALLOW % "budget: {sum: context.a, max: 1, per: 1h}", "rule a: budget.sum: 'context.a' is not an argument"),
        (ALLOW % "budget: {sum: args.a, max: -1, per: 1h}", "rule a: budget.max: must be greater than 0, not -1"),
        (DENY % "above: {of: args.a, within: 1d, percentile: 100}", "rule a: above.percentile: must be less than"),
        (DENY % "repeats: {within: 10m, more_than: 0}", "rule a: repeats.more_than: must be greater than or equal"),
        (DENY % "unseen: args.recipient", "rule a: unseen: must be a mapping"),
    ],
)
def test_refused_keys_say_what_to_do(rule: str, problem: str) -> None:
    (found,) = read_problems(HEAD + rule)
    assert problem in found


@pytest.mark.parametrize("period", ["10s", "90m", "8h", "7d"])
def test_period_is_written_as_it_is_read(period: str) -> None:
    assert write_period(read_period(period)) == period
