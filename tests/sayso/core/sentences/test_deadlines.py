"""Sentences about what happens at the deadline, and when."""

from datetime import UTC, datetime
from typing import Any

import pytest

from sayso.core.sentences.deadlines import describe_deadline, describe_next_step, write_sentence
from sayso.core.transitions.deadlines import see
from tests.sayso.core.sentences.samples import NOW, make_item, make_record
from tests.sayso.samples import person


def clock(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M}"


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        ({}, "Denied at 00:21 if nobody answers"),
        ({"fallback": {"action": "fail"}}, "The run fails at 00:21 if nobody answers"),
        (
            {"fallback": {"action": "value", "value": "HH-1"}},
            "Runs with the value “HH-1” at 00:21 if nobody answers",
        ),
        (
            {"fallback": {"action": "escalate"}, "escalate": [{"after_s": 600, "reviewers": ["dora"]}]},
            "At 00:21 dora is asked too, until 00:26",
        ),
        (
            {"fallback": {"action": "escalate"}, "escalate": [{"after_s": 600, "reviewers": ["cleo", "dan"]}]},
            "At 00:21 cleo and dan are asked too, until 00:26",
        ),
        (
            {"fallback": {"action": "escalate"}, "escalate": [{"after_s": 60, "reviewers": ["dora"]}]},
            "Denied at 00:21 if nobody answers",
        ),
        (
            {"fallback": {"action": "approve"}, "unattended_approval": True},
            "Denied at 00:21, unless a reviewer has opened it or received its card: then it runs by itself",
        ),
    ],
)
def test_describe_deadline_names_effect_and_time(terms: dict[str, Any], sentence: str) -> None:
    item = make_item(timeout_s=300, **terms)
    assert write_sentence(describe_deadline(make_record(item), item), clock) == sentence


def test_describe_deadline_of_a_seen_item_runs_by_itself() -> None:
    item = make_item(timeout_s=300, fallback={"action": "approve"}, unattended_approval=True)
    seen = see(make_record(item), "i1", person("anna"), NOW).record
    sentence = write_sentence(describe_deadline(seen, seen.items[0]), clock)
    assert sentence == "Runs by itself at 00:21 unless someone denies"


def test_describe_next_step_before_the_deadline() -> None:
    item = make_item(timeout_s=900, escalate=[{"after_s": 600, "reviewers": ["dora"]}])
    assert write_sentence(describe_next_step(make_record(item), item), clock) == "At 00:26 dora is asked too"
    assert describe_next_step(make_record(make_item()), make_item()) == ()
