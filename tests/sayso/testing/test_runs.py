"""Agent runs on a desk in memory."""

from pathlib import Path
from typing import Any

import pytest

from sayso import Denied, gate
from sayso.core.canonical_json import JsonObject
from sayso.core.policy.rules import Action
from sayso.core.records.events import EventType
from sayso.core.records.suspensions import RunStatus, Status
from sayso.errors import InvalidInput
from sayso.testing import InProcessDesk
from tests.sayso.rule_builders import policy, rule
from tests.sayso.runners import POLICY, Ran, fields_of, kinds, make_agent, turn

Call = tuple[str, JsonObject]

LOOK: Call = ("look", {"order": "A"})
REFUND: Call = ("refund", {"order": "A", "amount": 5})
PAY: Call = ("pay", {"order": "A"})

RULES = """
version: 1
default: deny
rules:
  - {id: looks, tool: look, action: allow}
  - {id: refunds, tool: refund, when: args.amount > 3, action: request_approval, terms: {timeout_s: 60}}
"""


def test_run_follows_the_reviewers_instructions() -> None:
    desk = InProcessDesk(POLICY)
    ran: Ran = []
    desk.reviewer.approves("refund", args={"order": "A", "amount": 2})
    desk.reviewer.answers("pay", "1234")
    end = desk.run(make_agent(ran, turn(LOOK, REFUND, PAY), turn(REFUND)), "Refund A-1")
    assert (end.status, end.result) == (RunStatus.COMPLETED, {"text": "done"})
    assert [args["amount"] for name, args, _ in ran if name == "refund"] == [2, 2]
    assert [args for name, args, _ in ran if name == "pay"] == [{"order": "A", "code": "1234"}]
    assert len({call.idempotency_key for _, _, call in ran}) == 4
    assert desk.waiting == []
    assert [one.status for one in desk.records.values()] == [Status.RESUMED] * 3


def test_review_decides_all_items_of_a_suspension() -> None:
    """The decision on the first item was lost when the second was decided."""
    desk = InProcessDesk()
    call: Any = {"args": {}, "definition": {}}
    desk.client().suspend({"mode": "poll", "calls": [{"tool": "mail", **call}, {"tool": "pay", **call}]})
    desk.reviewer.approves()
    desk.reviewer.review()
    (record,) = desk.records.values()
    assert (record.status, record.approved) == (Status.DECIDED, True)


def test_run_skips_a_denied_call() -> None:
    desk = InProcessDesk(POLICY)
    ran: Ran = []
    desk.reviewer.denies("refund", message="Never delivered")
    end = desk.run(make_agent(ran, turn(REFUND), approval_denial_policy="fail"), "Refund A-1")
    assert (ran, end.status) == ([], RunStatus.FAILED)
    assert fields_of(end.events, "tool_completed", "error") == ["Never delivered"]


def test_run_advances_the_clock_to_the_fallback() -> None:
    desk = InProcessDesk(POLICY)
    ran: Ran = []
    began_ms = desk.clock.now_ms
    end = desk.run(make_agent(ran, turn(REFUND)), "Refund A-1")
    assert (ran, end.status, desk.clock.now_ms - began_ms) == ([], RunStatus.COMPLETED, 60_000)
    assert "timed_out" in kinds(end.events)


def test_runs_lists_a_run_for_a_client_of_its_agent() -> None:
    desk = InProcessDesk(POLICY)
    desk.reviewer.approves()
    end = desk.run(make_agent([], turn(REFUND)), "Refund A-1", context={"ticket": "T-1"})
    (run,) = desk.client("support").runs().runs
    assert (run.status, run.result) == ("completed", {"text": "done"})
    assert end.events[0].type is EventType.RUN_STARTED
    assert fields_of(end.events, "permit_redeemed", "call_id") == ["c0"]
    assert kinds(end.events)[-1] == "run_completed"


def test_run_judges_an_edit_again() -> None:
    large = rule("large", "request_approval", tool_name="refund", when="args.amount > 3", terms={"timeout_s": 7})
    desk = InProcessDesk(policy(large, default=Action.REQUEST_APPROVAL))
    ran: Ran = []
    desk.reviewer.approves("refund", args={"order": "A", "amount": 4})
    end = desk.run(make_agent(ran, turn(("refund", {"order": "A", "amount": 1}))), "Refund A-1")
    assert [args["amount"] for _, args, _ in ran] == [4]
    assert "asked_again" in kinds(end.events)


def test_run_waits_for_a_quorum_of_two() -> None:
    large = rule(
        "large", "request_approval", tool_name="refund", terms={"quorum": {"approve": 2}, "remind_after_s": [5]}
    )
    desk = InProcessDesk(policy(large))
    ran: Ran = []
    desk.reviewer.approves("refund")
    desk.run(make_agent(ran, turn(REFUND)), "Refund A-1")
    assert ran == []


async def test_async_run_within_an_event_loop() -> None:
    desk = InProcessDesk(POLICY)
    ran: Ran = []
    desk.reviewer.approves()
    agent = make_agent(ran, turn(REFUND))
    with pytest.raises(InvalidInput, match="An event loop is running"):
        desk.run(agent, "Refund A-1")
    end = await desk.async_run(agent, "Refund A-1")
    assert (end.status, len(ran)) == (RunStatus.COMPLETED, 1)


@pytest.mark.parametrize("source", ["text", "path", "name"])
def test_desk_reads_rules_from_yaml(tmp_path: Path, source: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(RULES)
    given: dict[str, Any] = {"text": RULES, "path": file, "name": str(file)}
    desk = InProcessDesk(policy=given[source])
    ran: Ran = []
    desk.reviewer.denies("refund")
    small: Call = ("refund", {"order": "A", "amount": 2})
    desk.run(make_agent(ran, turn(LOOK, REFUND, small)), "Refund A-1")
    assert [name for name, _, _ in ran] == ["look"]

    @gate(client=desk.client())
    def drop(order: str) -> None:
        """Drop an order."""

    with pytest.raises(Denied):
        drop("A")


def test_desk_refuses_faulty_rules_with_their_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="policy:2:10: default: must be"):
        InProcessDesk(policy="version: 1\ndefault: perhaps\nrules: []\n")
    with pytest.raises(InvalidInput, match=r"none\.yaml:1:1: the file cannot be read"):
        InProcessDesk(policy=tmp_path / "none.yaml")


HELD = """
version: 1
default: deny
rules:
  - {id: refunds, tool: refund, action: request_approval, after_denial: deny, terms: {timeout_s: 60}}
"""
CAPPED = """
version: 1
default: deny
rules:
  - {id: refunds, tool: refund, action: request_approval, asks: {per_run: 2}, terms: {timeout_s: 60}}
"""


def test_denied_call_is_not_asked_about_again_in_its_run() -> None:
    desk = InProcessDesk(HELD)
    ran: Ran = []
    desk.reviewer.denies("refund", message="never for A")
    end = desk.run(make_agent(ran, turn(REFUND), turn(REFUND), turn(REFUND)), "Refund A-1")
    assert ran == []
    errors = fields_of(end.events, "tool_completed", "error")
    assert errors[0] == "never for A"
    assert errors[1] == errors[2]
    assert errors[1].startswith("Denied by policy: reviewer has denied this very call before: never for A.")
    assert len(fields_of(end.events, "run_paused", "tool_name")) == 1


def test_run_that_asks_too_often_is_denied_without_asking() -> None:
    desk = InProcessDesk(CAPPED)
    ran: Ran = []
    desk.reviewer.approves("refund")
    turns = [turn(("refund", {"order": "A", "amount": amount})) for amount in range(1, 5)]
    end = desk.run(make_agent(ran, *turns), "Refund A-1")
    assert [args["amount"] for _, args, _ in ran] == [1, 2]
    assert "asks people about 2 calls of a run at most" in fields_of(end.events, "tool_completed", "error")[2]


def test_gated_call_that_was_denied_stays_denied_in_its_thread() -> None:
    desk = InProcessDesk(HELD)
    desk.reviewer.denies("refund", message="never for A")
    call: Any = {"tool": "refund", "args": {"order": "A"}, "definition": {}}
    for thread, expected in (("t1", "reviewer"), ("t1", "policy"), ("t2", "reviewer")):
        desk.client().suspend({"mode": "poll", "calls": [call], "thread_id": thread})
        desk.reviewer.review()
        item = [*desk.records.values()][-1].items[0]
        assert item.outcome is not None
        assert (item.outcome.by.id, thread) == (expected, thread)
