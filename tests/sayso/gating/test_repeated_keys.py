"""Gated calls under a key that was used before: changed definitions, and items that time has ended."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sayso import gate
from sayso.core.records.events import EventType
from sayso.errors import DeadlinePassed, Denied, IdempotencyConflict, Suspended
from sayso.testing import InProcessDesk
from tests.sayso.banks import Bank, gated

PAGE = (Path(__file__).parents[3] / "docs" / "policies-cookbook.md").read_text()
NIGHT = """
version: 1
default: deny
rules:
  - id: night
    tool: "*"
    action: request_approval
    terms: {timeout_s: 600, fallback: {action: deny, message: Nobody is here at night.}}
"""


def ask(desk: InProcessDesk, bank: Bank, **options: Any) -> str:
    """Ask about the refund, and return its suspension."""
    with pytest.raises(Suspended) as suspended:
        gated(desk, bank, wait_s=0, **options)("A-1", 5.0)
    return suspended.value.suspension_id


@pytest.mark.parametrize("change", [{"description": "Pay now."}, {"step": 2}, {"thread_id": "t"}, {"idempotent": True}])
@pytest.mark.parametrize("state", ["waiting", "approved", "ran"])
def test_changed_definition_is_asked_again_unless_the_call_ran(
    desk: InProcessDesk, bank: Bank, state: str, change: dict[str, Any]
) -> None:
    first = ask(desk, bank)
    if state != "waiting":
        desk.reviewer.decide("approve")
    if state == "ran":
        assert gated(desk, bank)("A-1", 5.0) == "paid 5 for A-1"
        assert gated(desk, bank, **change)("A-1", 5.0) == "paid 5 for A-1"
        assert len(bank.paid) == len(desk.records) == 1
        return
    second = ask(desk, bank, **change)
    before, now = desk.records[first], desk.records[second]
    assert (before.status, before.following_id, now.previous_id) == ("cancelled", second, first)
    assert "changed definition" in (now.items[0].prompt.reason or "")
    assert bank.paid == []
    desk.reviewer.decide("approve")
    assert gated(desk, bank, **change)("A-1", 5.0) == "paid 5 for A-1"
    assert len(bank.paid) == 1


def test_allowed_call_that_changed_before_it_ran_is_judged_again(bank: Bank) -> None:
    desk = InProcessDesk("version: 1\ndefault: allow\nrules: []\n")
    desk.client().suspend(_body("Pay."), "k")
    second = desk.client().suspend(_body("Pay now."), "k")
    assert (second.status, second.previous_id is not None) == ("decided", True)
    assert desk.client().suspend(_body("Pay now."), "k").id == second.id


def _body(description: str) -> dict[str, Any]:
    return {"mode": "poll", "calls": [{"tool": "pay", "args": {"n": 1}, "definition": {"description": description}}]}


@pytest.mark.parametrize("end", ["undecided", "not started"])
def test_call_that_time_ended_is_asked_again_in_a_linked_item(bank: Bank, end: str) -> None:
    desk = InProcessDesk(NIGHT)
    first = ask(desk, bank)
    if end == "not started":
        desk.reviewer.decide("approve")
    desk.clock.advance(7_200)
    refusal = Denied if end == "undecided" else DeadlinePassed
    with pytest.raises(refusal) as refused:
        gated(desk, bank)("A-1", 5.0)
    assert ("again=True" in refused.value.message) == (end == "not started")
    second = ask(desk, bank, again=True)
    assert (desk.records[first].following_id, desk.records[second].previous_id) == (second, first)
    assert desk.records[first].items[0].outcome is not None
    assert ask(desk, bank, again=True) == second, "an item that waits is not asked again"
    desk.reviewer.decide("approve")
    assert gated(desk, bank, again=True)("A-1", 5.0) == "paid 5 for A-1"
    assert gated(desk, bank, again=True)("A-1", 5.0) == "paid 5 for A-1"
    assert len(bank.paid) == 1


def test_call_is_asked_again_each_night_until_somebody_decides(bank: Bank) -> None:
    desk = InProcessDesk(NIGHT)
    for _ in range(3):
        with pytest.raises(Denied, match="Nobody is here at night") as denied:
            gated(desk, bank, again=True)("A-1", 5.0)
        assert denied.value.may_ask_again
    desk.reviewer.denies(message="Not this one.")
    for _ in range(2):
        with pytest.raises(Denied, match="Not this one") as denied:
            gated(desk, bank, again=True)("A-1", 5.0)
        assert not denied.value.may_ask_again
    assert len(desk.records) == 4
    (trail,) = desk.trails.values()
    assert [event.type for event in trail].count(EventType.ASKED_AGAIN) == 3


def _spend(desk: InProcessDesk, bank: Bank) -> None:
    desk.reviewer.approves()
    bank.error = RuntimeError("the bank hung up")
    with pytest.raises(RuntimeError):
        gated(desk, bank)("A-1", 5.0)


def _start(desk: InProcessDesk, bank: Bank) -> None:
    desk.reviewer.approves()
    bank.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        gated(desk, bank)("A-1", 5.0)


@pytest.mark.parametrize("begin", [_spend, _start])
def test_call_that_may_have_run_is_never_asked_again(
    desk: InProcessDesk, bank: Bank, begin: Callable[[InProcessDesk, Bank], None]
) -> None:
    begin(desk, bank)
    desk.clock.advance(200_000)
    for change in ({}, {"description": "Pay now."}):
        with pytest.raises(Exception, match=r"ran before|was started") as refused:
            gated(desk, bank, again=True, **change)("A-1", 5.0)
        assert "new key" not in str(refused.value)
    assert (len(bank.paid), len(desk.records)) == (1, 1)


def test_key_of_another_call_names_the_argument(desk: InProcessDesk, bank: Bank) -> None:
    ask(desk, bank)
    with pytest.raises(IdempotencyConflict, match=r"^The key 'refund-A-1' belongs to another .*: args\.amount"):
        gated(desk, bank)("A-1", 6.0)


def test_edits_that_another_rule_asks_about_leave_the_key_with_the_agents_call(bank: Bank) -> None:
    desk = InProcessDesk(
        "version: 1\ndefault: request_approval\nrules:\n"
        "  - {id: large, tool: refund, when: args.amount > 10, action: request_approval}\n"
    )
    ask(desk, bank)
    desk.reviewer.decide("approve", args={"order": "A-1", "amount": 20.0})
    desk.reviewer.decide("approve")
    assert gated(desk, bank)("A-1", 5.0) == "paid 20 for A-1"
    assert gated(desk, bank, description="Pay now.")("A-1", 5.0) == "paid 20 for A-1"
    with pytest.raises(IdempotencyConflict, match="args differs"):
        gated(desk, bank, description="Pay now.")("A-1", 20.0)


def test_block_is_asked_again_after_a_deadline(bank: Bank) -> None:
    desk = InProcessDesk(NIGHT)

    def deploy(**options: Any) -> None:
        with gate("deploy", {"version": "1"}, key="deploy-{version}", client=desk.client(), quiet=True, **options):
            bank.keys.append("deployed")

    with pytest.raises(Denied):
        deploy()
    with pytest.raises(Denied):
        deploy()
    desk.reviewer.approves()
    deploy(again=True)
    assert (bank.keys, len(desk.records)) == (["deployed"], 2)


def test_nightly_agent_of_the_cookbook_asks_again_the_next_night() -> None:
    recipe = PAGE.partition("\n### Agents without people\n")[2]
    rules, block = re.findall(r"^```(?:yaml|python)\n(.*?)^```", recipe, re.DOTALL | re.MULTILINE)[:2]
    desk = InProcessDesk(rules)
    client, names = desk.client("nightly-report"), dict[str, Any]()
    exec(block.replace("@gate(", "@gate(client=client, "), {"client": client}, names)  # noqa: S102  it is our own page
    for nights in (1, 2):
        told = names["write_file"]("a.md", "x")
        assert told.startswith("write_file was denied by timeout: Nobody is here at night. Write it into the report.")
        assert len(desk.records) == nights
        desk.clock.advance(86_400)
    first, second = desk.records.values()
    assert (first.following_id, second.previous_id) == (second.id, first.id)
