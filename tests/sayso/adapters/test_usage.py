"""Tests of adding up the tokens that a framework reports."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.adapters.base import UsageMeter
from sayso.core.records.suspensions import ModelUsage

COUNTS = st.tuples(st.integers(1, 10**9), st.integers(0, 10**9))


def used(model: str, given_tokens: int, made: int, calls: int = 1) -> ModelUsage:
    return ModelUsage(model=model, input_tokens=given_tokens, output_tokens=made, model_calls=calls)


def test_meter_without_calls_has_used_nothing() -> None:
    assert UsageMeter().read() == ()


@given(calls=st.lists(st.tuples(st.sampled_from(["a", "b"]), COUNTS), max_size=9), inner=st.lists(COUNTS, max_size=9))
def test_meter_adds_up_by_model_and_up_to_the_total(calls: list[Any], inner: list[tuple[int, int]]) -> None:
    """What only the framework's total has is of a model without a name."""
    meter = UsageMeter()
    for name, (given_tokens, made) in calls:
        meter.note(name, given_tokens, made)
    everything = [*(counts for _, counts in calls), *inner]
    meter.note_total(sum(one for one, _ in everything), sum(two for _, two in everything), len(everything))
    found = {one.model: one for one in meter.read() or ()}
    for name, parts in [("a", None), ("b", None), ("", inner)]:
        own = parts if parts is not None else [counts for model, counts in calls if model == name]
        total = used(name, sum(one for one, _ in own), sum(two for _, two in own), len(own))
        assert found.get(name) == (total if own else None)


@pytest.mark.parametrize(
    ("given_tokens", "made"),
    [(None, 5), (5, None), (0, 0), (0, 5), (-1, 5), (5, -1), (True, 5), ("5", 5), (5.0, 5), (2**53 + 1, 5)],
)
def test_one_call_without_tokens_makes_the_usage_unknown(given_tokens: Any, made: Any) -> None:
    meter = UsageMeter()
    meter.note("m", 5, 5)
    meter.note("m", given_tokens, made)
    meter.note("m", 5, 5)
    assert meter.read() is None
    meter.note_total(10, 10, 3)
    assert meter.read() is None, "a total cannot make up for a call without tokens"


def test_total_that_is_less_than_the_noted_calls_counts_alone() -> None:
    """The messages of a framework can hold those of an earlier part of the run."""
    meter = UsageMeter()
    meter.note("m", 100, 10)
    meter.note("m", 200, 20)
    meter.note_total(200, 20, 1)
    assert meter.read() == (used("", 200, 20),)


def test_retries_count_as_calls_with_the_tokens_of_the_last() -> None:
    meter = UsageMeter()
    meter.note("m", 100, 10, calls=3)
    meter.note_total(100, 10, 3)
    assert meter.read() == (used("m", 100, 10, 3),)


def test_tokens_of_rejected_responses_count_without_a_call() -> None:
    meter = UsageMeter()
    meter.note("m", 100, 10)
    meter.note_total(160, 15, 1)
    assert meter.read() == (used("m", 100, 10), used("", 60, 5, 0))


def test_more_calls_without_more_tokens_are_unknown() -> None:
    meter = UsageMeter()
    meter.note("m", 100, 10)
    meter.note_total(100, 10, 2)
    assert meter.read() is None


def test_name_that_is_no_text_is_unknown() -> None:
    meter = UsageMeter()
    meter.note(None, 1, 1)
    meter.note(5, 1, 1)
    assert meter.read() == (used("", 2, 2, 2),)
