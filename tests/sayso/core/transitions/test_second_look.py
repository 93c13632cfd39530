"""A second look records the opinion of another person, and changes nothing about the call."""

from typing import Any

import pytest

from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.events import TrailEntry
from sayso.core.transitions.second_look import Opinion, Seen, read_seen, take_second_look
from sayso.errors import AlreadyDecided, InvalidInput, NotAllowed, SaysoError, SelfApproval
from tests.sayso.samples import T0, pending, person

ALLOWED = {"tool_name": "refund", "policy_id": "small", "action": "allow", "reviewers": ["anna", "group:ops"]}
AGREES = Opinion(agrees=True)


def seen(**data: Any) -> Seen:
    return read_seen(TrailEntry(seq=3, at_ms=T0, type="policy_decision", data={**ALLOWED, **data}, hash=""))


def test_opinion_is_recorded_and_nothing_else_changes() -> None:
    record = pending()
    change = take_second_look(record, seen(), Opinion(agrees=False, reason=" too much "), person("anna"), T0 + 5)
    (event,) = change.events
    assert change.record == record.model_copy(update={"updated_at_ms": T0 + 5})
    assert event.data == {
        "seen": 3,
        "tool_name": "refund",
        "rule_id": "small",
        "verdict": "allowed",
        "ran": True,
        "agrees": False,
        "reason": "too much",
        "by": {"id": "anna", "kind": "human", "channel": "api"},
    }


@pytest.mark.parametrize(
    ("by", "error"),
    [
        (Actor(id="bot", kind=ActorKind.AGENT), NotAllowed),
        (person("bot"), SelfApproval),
        (person("eva"), NotAllowed),
        (person("ben", "ops"), AlreadyDecided),
        (person("dora"), AlreadyDecided),
    ],
)
def test_second_look_needs_another_reviewer(by: Actor, error: type[SaysoError]) -> None:
    decided = seen(verdict="approved", by={"id": "dora"}, reviewers=["anna", "dora", "group:ops"])
    with pytest.raises(error):
        take_second_look(pending(), decided._replace(deciders=(*decided.deciders, "ben")), AGREES, by, T0)


@pytest.mark.parametrize("by", [person("anna"), person("eva", "ops")])
def test_second_look_is_open_to_reviewers_and_groups(by: Actor) -> None:
    assert take_second_look(pending(), seen(), AGREES, by, T0).events[0].data["agrees"] is True


def test_second_look_without_reviewers_is_open_to_everybody() -> None:
    assert take_second_look(pending(), seen(reviewers=[]), AGREES, person("eva"), T0).events


@pytest.mark.parametrize("reason", ["", "  ", "x" * 2001])
def test_disagreement_needs_a_short_reason(reason: str) -> None:
    with pytest.raises(InvalidInput):
        take_second_look(pending(), seen(), Opinion(agrees=False, reason=reason), person("anna"), T0)


@pytest.mark.parametrize(
    ("verdict", "ran"), [(None, True), ("approved", True), ("answered", True), ("denied", False), ("failed", False)]
)
def test_call_ran_if_it_was_allowed_or_approved(verdict: str | None, ran: bool) -> None:
    assert seen(verdict=verdict).ran is ran
