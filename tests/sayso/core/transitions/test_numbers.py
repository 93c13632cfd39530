"""Approvals that need the number that the requester sees."""

from typing import Any

import pytest

from sayso.core.records.decisions import Actor, ActorKind, Verdict
from sayso.core.records.items import ItemKind, PresetOutcome, assign_numbers
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.transitions.deciding import ask_again, decide
from sayso.errors import StaleDigest, WrongNumber
from tests.sayso.samples import T0, ask, pending, word


def numbered(**fields: Any) -> SuspensionRecord:
    drafts = assign_numbers((ask(match_number=True, **fields),), lambda: "42")
    return pending(*drafts)


@pytest.mark.parametrize("number", [None, "43", "24", "4", "042", "", "٤٢"])
def test_approval_without_the_number_is_refused(number: str | None) -> None:
    record = numbered()
    with pytest.raises(WrongNumber, match="Ask bot for the two digits"):
        decide(record, word(record, number=number), T0 + 1)


def test_approval_with_the_number_counts() -> None:
    record = numbered()
    outcome = decide(record, word(record, number="42"), T0 + 1).record.items[0].outcome
    assert outcome is not None
    assert outcome.verdict is Verdict.APPROVED


def test_edit_needs_the_number() -> None:
    record = numbered()
    edited = {"order": "A-1", "amount": 1}
    with pytest.raises(WrongNumber):
        decide(record, word(record, args=edited), T0 + 1)
    assert decide(record, word(record, args=edited, number="42"), T0 + 1).record.items[0].outcome is not None


def test_value_needs_the_number() -> None:
    record = numbered(kind=ItemKind.INPUT)
    with pytest.raises(WrongNumber):
        decide(record, word(record, "value", value=3), T0 + 1)


def test_renewal_of_an_item_needs_the_number() -> None:
    record = numbered()
    with pytest.raises(WrongNumber):
        ask_again(record, word(record, number="41"), ask(), T0 + 1)


def test_denial_needs_no_number() -> None:
    record = numbered()
    assert decide(record, word(record, "deny"), T0 + 1).record.items[0].outcome is not None


def test_every_vote_of_a_quorum_needs_the_number() -> None:
    record = numbered(quorum={"approve": 2})
    record = decide(record, word(record, number="42"), T0 + 1).record
    with pytest.raises(WrongNumber):
        decide(record, word(record, by="ben", number="41"), T0 + 2)


def test_item_that_lost_its_number_is_never_approved() -> None:
    record = pending(ask(match_number=True))
    for number in ("", "00", "42"):
        with pytest.raises(WrongNumber):
            decide(record, word(record, number=number), T0 + 1)


def test_changed_item_is_reported_before_the_number() -> None:
    record = numbered()
    with pytest.raises(StaleDigest):
        decide(record, word(record, number="41", args_digest="0" * 64), T0 + 1)


def test_only_drafts_that_need_a_number_get_one() -> None:
    policy = PresetOutcome(verdict=Verdict.APPROVED, by=Actor(id="policy", kind=ActorKind.POLICY))
    preset = ask(2, match_number=True).model_copy(update={"preset": policy})
    given = assign_numbers((ask(0), ask(1, match_number=True), preset), lambda: "42")
    assert [one.secret_number for one in given] == ["", "42", ""]
    assert assign_numbers(given, lambda: "99") == given
