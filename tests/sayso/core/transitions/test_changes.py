"""Denials that request changes: who may, how often, what the agent reads, and that the call never runs."""

from typing import Any

import pytest
from pydantic import ValidationError

from sayso.core.records.decisions import Decision, DecisionRequest, Verdict
from sayso.core.records.envelopes import ChangeRequest, Revision
from sayso.core.records.items import Drill, ItemDraft, ItemKind
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.transitions.deciding import ask_again, decide
from sayso.core.transitions.decision_checks import request_changes, takes_changes
from sayso.core.transitions.superseding import find_revision
from sayso.errors import IdempotencyConflict, InvalidInput
from tests.sayso.samples import T0, ask, pending, word

TEXT = "Pay back 100 at most."


def requesting(record: SuspensionRecord, by: str = "ada", *paths: str, **fields: Any) -> Decision:
    item = record.items[0]
    request = DecisionRequest(action="deny", digest=item.digest, message=TEXT, changes=ChangeRequest(paths=paths))
    return word(record, "deny", by, message=TEXT, changes=request_changes(item, request), **fields)


def revising(number: int, **terms: Any) -> ItemDraft:
    return ask(**terms).model_copy(update={"revises": Revision(suspension_id="sus_0", item_id="i1", round=number)})


def test_request_denies_the_call_and_tells_the_agent_what_to_change() -> None:
    record = pending()
    decided = decide(record, requesting(record, "ada", "args.amount"), T0 + 1).record
    outcome = decided.items[0].outcome
    assert outcome is not None
    assert (decided.status, outcome.verdict, outcome.may_run, outcome.refuses) == (
        Status.DECIDED, Verdict.DENIED, False, False,
    )  # fmt: skip
    assert outcome.message == (
        "Changes requested (1 of 3): Pay back 100 at most. Change args.amount, and call refund again."
    )


def test_request_without_paths_leaves_open_what_to_change() -> None:
    record = pending()
    outcome = decide(record, requesting(record), T0 + 1).record.items[0].outcome
    assert outcome is not None
    assert outcome.message == ("Changes requested (1 of 3): Pay back 100 at most. Change the call, and make it again.")


@pytest.mark.parametrize("on_deny", ["degrade", "fail"])
def test_request_ends_no_run(on_deny: str) -> None:
    record = pending().model_copy(update={"on_deny": on_deny})
    decided = decide(record, requesting(record), T0 + 1).record
    assert not decided.stops_calls
    plain = decide(record, word(record, "deny"), T0 + 1).record
    assert plain.stops_calls


def test_each_version_counts_until_the_rounds_are_over() -> None:
    for number in (1, 2):
        record = pending(revising(number))
        decision = requesting(record)
        assert decision.changes is not None
        assert (decision.changes.round, decision.changes.rounds) == (number + 1, 3)
        assert takes_changes(record.items[0])
    record = pending(revising(3))
    assert not takes_changes(record.items[0])
    with pytest.raises(InvalidInput, match="can be requested 3 times"):
        requesting(record)


def test_plain_denial_requests_nothing() -> None:
    item = pending().items[0]
    assert request_changes(item, DecisionRequest(action="deny", digest=item.digest)) is None


def test_rule_can_forbid_requests() -> None:
    record = pending(ask(rounds=0))
    assert not takes_changes(record.items[0])
    with pytest.raises(InvalidInput, match="can be requested 0 times"):
        requesting(record)


def test_question_for_a_value_takes_no_request() -> None:
    with pytest.raises(InvalidInput, match="Only the arguments of a call"):
        requesting(pending(ask(kind=ItemKind.INPUT)))


def test_one_plain_denial_of_a_quorum_wins_over_requests() -> None:
    record = pending(ask(quorum={"deny": 2}))
    plain = decide(record, word(record, "deny", "ben"), T0 + 1).record
    outcome = decide(plain, requesting(plain), T0 + 2).record.items[0].outcome
    assert outcome is not None
    assert outcome.refuses


def test_approval_of_another_reviewer_leaves_a_request_as_it_is() -> None:
    record = pending(ask(quorum={"approve": 2}))
    record = decide(record, word(record, by="ben"), T0 + 1).record
    outcome = decide(record, requesting(record), T0 + 2).record.items[0].outcome
    assert outcome is not None
    assert outcome.changes is not None


def test_requests_of_a_quorum_are_joined() -> None:
    record = pending(ask(quorum={"deny": 2}))
    record = decide(record, requesting(record, "ben", "args.order"), T0 + 1).record
    outcome = decide(record, requesting(record, "ada", "args.amount", "args.order"), T0 + 2).record.items[0].outcome
    assert outcome is not None
    assert outcome.changes is not None
    assert outcome.changes.paths == ("args.order", "args.amount")


def test_same_decision_with_other_marks_is_another() -> None:
    record = pending(ask(quorum={"deny": 2}))
    decision = requesting(record, "ada", "args.amount")
    changed = decide(record, decision, T0 + 1).record
    assert decide(changed, decision, T0 + 2).record is changed
    with pytest.raises(IdempotencyConflict):
        decide(changed, requesting(changed, "ada", "args.order"), T0 + 2)


def test_renewed_item_stays_a_version() -> None:
    record = pending(revising(2))
    renewed = ask_again(record, word(record), ask(timeout_s=60), T0 + 1).record.items[0]
    assert renewed.revises == record.items[0].revises


@pytest.mark.parametrize(
    "fields",
    [
        {"action": "approve", "message": TEXT},
        {"action": "deny"},
        {"action": "deny", "message": "  "},
        {"action": "deny", "message": TEXT, "offer": {"at_most": {"args.amount": 100}}},
    ],
)
def test_request_needs_a_denial_with_a_text(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="changes need the action deny and a message"):
        DecisionRequest.model_validate({"digest": "0" * 64, "changes": {}, **fields})


def returned() -> SuspensionRecord:
    record = pending()
    return decide(record, requesting(record), T0 + 1).record


def test_call_that_names_its_returned_version_revises_it() -> None:
    record = returned()
    known = find_revision(record, f"{record.id}/i1", record.run, "refund")
    assert known == Revision(suspension_id=record.id, item_id="i1", round=1)


@pytest.mark.parametrize(
    ("item", "tool", "run"),
    [("i2", "refund", {}), ("i1", "pay", {}), ("i1", "refund", {"owner": "x"}), ("i1", "refund", {"agent": "x"})],
)
def test_call_of_another_agent_or_tool_revises_nothing(item: str, tool: str, run: dict[str, str]) -> None:
    record = returned()
    with pytest.raises(InvalidInput, match="of which a reviewer requested changes"):
        find_revision(record, f"{record.id}/{item}", record.run.model_copy(update=run), tool)


def test_only_a_request_for_changes_is_revised() -> None:
    record = returned()
    drill = Drill(template="x", signs=("No order",), planted_by="root")
    drilled = record.with_item(record.items[0].model_copy(update={"drill": drill}))
    denied = decide(pending(), word(pending(), "deny"), T0 + 1).record
    for other in (None, pending(), denied, drilled):
        with pytest.raises(InvalidInput):
            find_revision(other, f"{record.id}/i1", record.run, "refund")
