"""The cost of a rule is one line: what it asked, the time of people, and what they denied."""

from collections import Counter
from dataclasses import replace

import pytest

from service.features.insights.facts import Metric
from service.features.insights.figures import list_rule_costs
from service.features.insights.store import Count


def count(rule: str, asked: int, decisions: int, measured: int, look_ms: int) -> Counter[Count]:
    return Counter(
        {
            (Metric.RULE_ASKED, rule): asked,
            (Metric.RULE_DECISIONS, rule): decisions,
            (Metric.RULE_MEASURED, rule): measured,
            (Metric.RULE_LOOK_MS, rule): look_ms,
        }
    )


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        (count("refunds-under-50", 412, 412, 206, 5_580_000), "refunds-under-50: 412 asks, 3.1 h, 0 denials"),
        (count("-", 1, 1, 1, 90_000), "default: 1 ask, 1.5 min, 0 denials"),
        (count("", 2, 2, 0, 0) + Counter({(Metric.RULE_DENIED, ""): 1}), "all others: 2 asks, time unknown, 1 denial"),
    ],
)
def test_cost_is_said_in_a_line(counts: Counter[Count], sentence: str) -> None:
    (cost,) = list_rule_costs(counts)
    assert cost.sentence == sentence


def test_cost_says_that_a_grant_is_proposed() -> None:
    (cost,) = list_rule_costs(count("refunds-under-50", 412, 412, 206, 5_580_000))
    said = "refunds-under-50: 412 asks, 3.1 h, 0 denials"
    assert replace(cost, proposals=1).sentence == f"{said}: a grant proposal is ready"
    assert replace(cost, proposals=2).sentence == f"{said}: 2 grant proposals are ready"


def test_rules_with_the_most_time_come_first() -> None:
    total = count("few", 9, 1, 1, 1_000) + count("many", 1, 1, 1, 60_000) + Counter({(Metric.ASKED, "tool"): 3})
    assert [one.rule for one in list_rule_costs(total)] == ["many", "few"]
