"""Reviewers of a desk in memory: several of them, and instructions and rules that match nothing."""

from datetime import UTC, datetime

import pytest

from sayso import gate
from sayso.errors import InvalidInput
from sayso.testing import InProcessDesk, ManualClock

RULES = """
version: 1
default: deny
rules:
  - {id: small, tool: refund, when: args.amount < 10, action: allow}
  - {id: large, tool: refund, when: args.amount >= 10, action: request_approval, terms: {quorum: {approve: 2}}}
"""


def refund_on(desk: InProcessDesk, amount: float) -> str:
    @gate(client=desk.client(), quiet=True, on_denied="return")
    def refund(amount: float) -> str:
        return f"paid {amount:g}"

    return refund(amount)


def test_two_reviewers_meet_a_quorum() -> None:
    with InProcessDesk(policy=RULES) as desk:
        desk.reviewer.approves("refund")
        desk.add_reviewer("ben").approves("refund")
        assert refund_on(desk, 50) == "paid 50"
        desk.check_used("large")


def test_one_reviewer_of_two_leaves_a_call_to_its_deadline() -> None:
    desk = InProcessDesk(policy=RULES)
    desk.reviewer.approves("refund")
    assert refund_on(desk, 50).endswith("It did not run. Ask again later if it still matters.")


def leave(desk: InProcessDesk, error: Exception | None = None) -> None:
    with desk:
        if error is not None:
            raise error


def test_instruction_that_matches_nothing_fails_at_the_end() -> None:
    desk = InProcessDesk()
    desk.add_reviewer("ben").denies("refnd")
    desk.reviewer.approves("refund")
    refund_on(desk, 50)
    with pytest.raises(AssertionError, match=r"^ben's instruction to deny refnd matched no call. The desk was asked"):
        leave(desk)


def test_failure_of_the_block_is_not_hidden_by_an_instruction() -> None:
    desk = InProcessDesk()
    desk.reviewer.denies("refund")
    with pytest.raises(ZeroDivisionError):
        leave(desk, ZeroDivisionError())


def test_rule_that_decided_nothing_fails() -> None:
    desk = InProcessDesk(policy=RULES)
    refund_on(desk, 5)
    with pytest.raises(AssertionError, match=r"^The rule 'large' decided about no call"):
        desk.check_used("large")
    with pytest.raises(AssertionError, match=r"^There is no rule 'larg'. The rules are large, small.$"):
        desk.check_used("larg")


def test_name_of_a_reviewer_is_given_once() -> None:
    with pytest.raises(InvalidInput, match="There is a reviewer 'reviewer' already"):
        InProcessDesk().add_reviewer("reviewer")


def test_clock_begins_at_a_moment_with_a_zone() -> None:
    assert ManualClock.at(datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)) == ManualClock()
    with pytest.raises(InvalidInput, match="has no time zone"):
        ManualClock.at(datetime(2023, 11, 14))  # noqa: DTZ001 - a moment without a zone is the fault
