"""Denials: who said no, whether to ask again, and what a model reads instead of a result."""

from typing import Any

import pytest

from sayso import ChangesRequested, Denied, Suspended, gate
from sayso.errors import InvalidInput
from sayso.testing import InProcessDesk
from tests.sayso.banks import Bank, gated

NO_CALLS = "version: 1\ndefault: deny\nrules: []\n"


def deny(desk: InProcessDesk, bank: Bank, **manner: Any) -> Denied:
    """Return the denial of a call."""
    with pytest.raises(Denied) as denied:
        gated(desk, bank, **manner)("A-1", 5.0)
    assert bank.paid == []
    return denied.value


def test_denial_of_a_person_is_final(desk: InProcessDesk, bank: Bank) -> None:
    desk.reviewer.denies("refund", "Not this week.")
    denied = deny(desk, bank)
    assert (denied.decided_by, denied.may_ask_again) == ("person", False)
    assert denied.for_model == ("refund was denied by reviewer: Not this week. It did not run. Continue without it.")


def test_requested_changes_tell_what_to_change(desk: InProcessDesk, bank: Bank) -> None:
    desk.reviewer.requests_changes("refund", "At most 2.", "args.amount")
    returned = deny(desk, bank)
    assert isinstance(returned, ChangesRequested)
    assert (returned.decided_by, returned.may_ask_again, returned.paths) == ("person", False, ("args.amount",))
    assert returned.for_model == (
        "refund was returned by reviewer: Changes requested (1 of 3): At most 2. Change args.amount, and call refund "
        "again. It did not run."
    )
    desk.reviewer.approves("refund")
    assert gated(desk, bank)("A-2", 2.0) == "paid 2 for A-2"


def test_new_version_names_the_returned_call(desk: InProcessDesk, bank: Bank) -> None:
    desk.reviewer.requests_changes("refund", "At most 2.", "args.amount")
    returned = deny(desk, bank)
    assert isinstance(returned, ChangesRequested)
    desk.reviewer.approves("refund")
    refund = gated(desk, bank)
    assert refund.revising(returned.item)("A-2", 2.0) == "paid 2 for A-2"
    revises = [record.items[0].revises for record in desk.records.values()]
    assert [known and f"{known.suspension_id}/{known.item_id}" for known in revises] == [None, returned.item]
    with pytest.raises(InvalidInput, match="requested changes"):
        refund.revising("sus_0/i1")("A-3", 2.0)
    with pytest.raises(InvalidInput, match="is no item"):
        refund.revising("sus_0")


def test_denial_of_a_rule_is_final(bank: Bank) -> None:
    denied = deny(InProcessDesk(NO_CALLS), bank)
    assert (denied.decided_by, denied.may_ask_again) == ("rule", False)
    assert denied.for_model.endswith("It did not run. Continue without it.")


def test_denial_of_a_deadline_may_be_asked_again(desk: InProcessDesk, bank: Bank) -> None:
    denied = deny(desk, bank)
    assert (denied.decided_by, denied.may_ask_again) == ("time", True)
    assert denied.for_model.endswith("It did not run. Ask again later if it still matters.")


def test_denial_of_a_call_in_doubt_says_that_it_may_have_run(desk: InProcessDesk, bank: Bank) -> None:
    desk.reviewer.approves("refund")
    bank.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        gated(desk, bank)("A-1", 5.0)
    with pytest.raises(Suspended):
        gated(desk, bank, on_doubt="ask", wait_s=0)("A-1", 5.0)
    desk.reviewer.decide("value", value={"choice": "fail"})
    assert gated(desk, bank, on_denied="return")("A-1", 5.0).endswith("It may have run. Continue without it.")


def test_denial_of_a_cancelled_run_names_nobody(desk: InProcessDesk, bank: Bank) -> None:
    with pytest.raises(Suspended):
        gated(desk, bank, wait_s=0)("A-1", 5.0)
    (record,) = desk.records.values()
    desk.client().cancel(record.run.id, "No longer needed.")
    denied = deny(desk, bank)
    assert (denied.decided_by, denied.may_ask_again) == (None, False)
    assert "its run was cancelled" in denied.for_model
    assert denied.for_model.endswith("It did not run. Continue without it.")


async def test_gate_returns_a_denial_for_the_model(desk: InProcessDesk, bank: Bank) -> None:
    @gate(client=desk.async_client(), on_denied="return")
    async def mail(to: str) -> str:
        bank.paid.append((to, 0.0))
        return f"sent to {to}"

    for_model = "{} was denied by reviewer: Never. It did not run. Continue without it."
    desk.reviewer.denies("*", "Never")
    refund = gated(desk, bank, on_denied="return")
    assert refund("A-1", 5.0) == for_model.format("refund")
    assert refund.with_key("other")("A-1", 5.0) == for_model.format("refund")
    assert await mail("ann") == for_model.format("mail")
    assert bank.paid == []


def test_gate_passes_on_the_denial_of_a_call_within(desk: InProcessDesk, bank: Bank) -> None:
    desk.reviewer.approves("pay_all")
    desk.reviewer.denies("refund", "Never")

    @gate(client=desk.client(), on_denied="return")
    def pay_all() -> str:
        return str(gated(desk, bank)("A-1", 5.0))

    with pytest.raises(Denied, match="refund was denied by reviewer: Never"):
        pay_all()


def test_gate_refuses_an_unknown_way_to_deny(desk: InProcessDesk, bank: Bank) -> None:
    with pytest.raises(InvalidInput, match=r"on_denied='ignore' is unknown\. Give 'raise' or 'return'"):
        gated(desk, bank, on_denied="ignore")
    with pytest.raises(InvalidInput, match="Catch Denied around the block of deploy"):
        gate("deploy", {}, on_denied="return")
