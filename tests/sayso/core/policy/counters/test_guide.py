"""The examples of the guide do what it says, with calls that pass and calls that try to slip by."""

from typing import Any

import pytest

from tests.pages import find_blocks, read_page
from tests.sayso.core.policy.counters.calls import Calls

SECTION = read_page("policies/memory").partition("\n## Counters\n")[2].partition("\n## ")[0]
REFUNDS, MONEY = find_blocks(SECTION, "yaml")


def test_small_refunds_run_until_a_customer_had_five() -> None:
    calls = Calls(REFUNDS)
    found = [calls.verdict("refund", customer="C1", amount=10 + n) for n in range(6)]
    assert found == ["approved"] * 5 + ["asked"]
    assert calls.verdict("refund", customer=" c1 ", amount=5) == "asked", "another spelling is the same customer"
    assert calls.verdict("refund", customer="C2", amount=5) == "approved"
    calls.desk.clock.advance(3600 * 31 / 30)
    assert calls.verdict("refund", customer="C1", amount=5) == "approved"


def test_small_refunds_run_until_the_budget_is_used_up() -> None:
    calls = Calls(REFUNDS)
    found = [calls.verdict("refund", customer=f"C{n}", amount=99.99) for n in range(11)]
    assert found == ["approved"] * 10 + ["asked"]
    assert calls.verdict("refund", customer="C12", amount=0.1) == "approved", "999.90 and 0.10 are 1000"
    assert calls.verdict("refund", customer="C13", amount=0.000001) == "asked"


@pytest.mark.parametrize("amount", [-500, "-5", "1e9", None, True])
def test_refund_with_a_strange_amount_never_runs_by_itself(amount: Any) -> None:
    assert Calls(REFUNDS).verdict("refund", customer="C1", amount=amount) == "asked"


def test_refunds_stop_at_the_end_despite_approvals() -> None:
    calls = Calls(REFUNDS)
    calls.approve("refund", customer="C1", amount=4000)
    calls.approve("refund", customer="C2", amount=900)
    assert calls.verdict("refund", customer="C3", amount=101) == "denied"
    assert calls.verdict("refund", customer="C3", amount=100) == "approved"
    assert calls.verdict("refund", customer="C4", amount=1) == "denied"
    calls.desk.clock.advance(86_400 * 31 / 30)
    assert calls.verdict("refund", customer="C4", amount=1) == "approved"


def test_same_refund_again_is_asked() -> None:
    calls = Calls(REFUNDS)
    assert [calls.verdict("refund", customer="C1", amount=10) for _ in range(2)] == ["approved", "asked"]
    assert calls.verdict("refund", amount=10.0, customer="C1") == "asked", "the same in another spelling"


def test_new_recipient_is_asked_until_a_call_ran() -> None:
    calls = Calls(MONEY)
    assert calls.verdict("send_money", recipient="anna", amount=5) == "asked"
    assert calls.verdict("send_money", recipient="anna", amount=5) == "asked", "asking makes nobody known"
    calls.approve("send_money", recipient="anna", amount=5)
    last = calls.ask("send_money", recipient="anna", amount=5)
    item = calls.desk.records[last.id].items[0]
    assert [one.rule_id for one in item.remembered] == ["new-recipient", "unusual-amount"]
    assert str(item.prompt.metadata["judging_error"]).startswith("rule unusual-amount: above: only 1 of 20")


def test_unusual_amount_is_asked_once_enough_is_known() -> None:
    calls = Calls(MONEY)
    for amount in range(20):
        calls.approve("send_money", recipient="anna", amount=amount)
    assert calls.verdict("send_money", recipient="anna", amount=18) == "approved"
    assert calls.verdict("send_money", recipient="anna", amount=19.5) == "asked"
    assert calls.verdict("send_money", recipient="Anna", amount=1) == "asked", "a new spelling is a new recipient"


def test_mails_stop_at_twenty() -> None:
    calls = Calls(MONEY)
    found = [calls.verdict("send_mail", to=f"{n}@x.test") for n in range(21)]
    assert found == ["approved"] * 20 + ["denied"]
