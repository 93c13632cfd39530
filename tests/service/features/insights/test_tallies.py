"""A histogram's quantile is within a tenth of the true one, and late decisions are late where the reviewer is."""

from collections import Counter
from math import ceil
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.clock import HOUR_MS
from service.features.insights.facts import Facts, ItemFact, Metric, PersonFact, Step, read_facts
from service.features.insights.store import find_bucket, find_quantile, middle_of, tally

NOON_MS = 19_700 * 24 * HOUR_MS + 12 * HOUR_MS


@given(st.lists(st.integers(0, 90 * 86_400_000), min_size=1), st.sampled_from([0.5, 0.95]))
def test_quantile_is_within_a_tenth(spans: list[int], share: float) -> None:
    found = find_quantile(Counter(map(find_bucket, spans)), share)
    true = sorted(spans)[ceil(share * len(spans)) - 1]
    assert found is not None
    assert abs(found - true) <= max(0.1 * true, 100)


def test_quantile_of_nothing_is_unknown() -> None:
    assert find_quantile({}, 0.5) is None


@pytest.mark.parametrize("span_ms", [0, 99, 100, 118, 119, 1000, 10**10])
def test_buckets_are_ordered_and_hold_their_middle(span_ms: int) -> None:
    bucket = find_bucket(span_ms)
    assert find_bucket(middle_of(bucket)) == bucket <= find_bucket(span_ms + 1)


@pytest.mark.parametrize(
    ("zone", "night"), [("UTC", False), ("Asia/Tokyo", False), ("Asia/Kolkata", False), ("Pacific/Auckland", True)]
)
def test_night_is_counted_where_the_reviewer_is(zone: str, night: bool) -> None:
    person = PersonFact(name="anna", decision_id="dec_1", approved=True, look_ms=2_999)
    counts = tally(Facts(commit="sus_1 2", at_ms=NOON_MS, people=(person,)), {"anna": ZoneInfo(zone)})
    assert counts[Metric.NIGHT, "anna"] == night
    assert counts[Metric.FAST, "anna"] == 1


def test_long_or_unmeasured_looks_cost_a_bounded_time() -> None:
    spans = (2_000, 86_400_000, None)
    people = tuple(PersonFact("anna", f"dec_{look}", True, look, "refunds") for look in spans)
    counts = tally(Facts(commit="sus_1 2", at_ms=NOON_MS, people=people), {})
    assert counts[Metric.RULE_DECISIONS, "refunds"] == 3
    assert counts[Metric.RULE_MEASURED, "refunds"] == 2
    assert counts[Metric.RULE_LOOK_MS, "refunds"] == 602_000


def test_facts_of_before_rules_were_noted_count_for_no_rule() -> None:
    stored = b'["sus_1 2", 1, 1, 0, [["refund", "asked", null, false, 0]], [["anna", "dec_1", true, 900]]]'
    counts = tally(read_facts(stored), {})
    assert counts[Metric.ASKED, "refund"] == counts[Metric.BY, "anna"] == 1
    assert not [metric for metric, _ in counts if metric.startswith("rule_")]


def test_fallback_counts_no_decision_and_no_wait() -> None:
    item = ItemFact(tool="refund", step=Step.FALLBACK)
    assert tally(Facts(commit="sus_1 2", at_ms=1, left=1, items=(item,)), {}) == {
        (Metric.FALLBACK, "refund"): 1,
        (Metric.LEFT, ""): 1,
    }
