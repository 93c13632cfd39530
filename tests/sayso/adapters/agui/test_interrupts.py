"""The rules of https://docs.ag-ui.com/concepts/interrupts, as questions to the desk and answers to the agent."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import JsonValue

from sayso.adapters.agui import interrupts as asked
from sayso.adapters.agui.interrupts import Interrupt, Kept
from sayso.adapters.agui.streams import BadStream, CallsSeen
from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Outcome
from sayso.core.records.items import ItemTool
from sayso.errors import Denied
from sayso.wire.items import ItemView
from tests.sayso.views import view

APPROVAL: JsonObject = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "editedArgs": {"type": "object"}, "reason": {"type": "string"}},
}
QUARTER: JsonObject = {"type": "object", "properties": {"quarter": {"type": "string"}}, "required": ["quarter"]}
ARGS = {"to": "ann"}


def interrupt(**fields: Any) -> Interrupt:
    """Return an interrupt."""
    return Interrupt.model_validate({"id": "i", "reason": "tool_call", **fields})


def item(message: str | None = None) -> ItemView:
    """Return a decided item about `ARGS`."""
    outcome = None if message is None else view(Outcome, message=message)
    return view(ItemView, tool=view(ItemTool, name="pay", args=ARGS), outcome=outcome)


def finished(*interrupts: Any) -> dict[str, Any]:
    """Return the end of a run with interrupts."""
    return {"type": "RUN_FINISHED", "outcome": {"type": "interrupt", "interrupts": list(interrupts)}}


def test_other_ends_ask_nothing() -> None:
    others: list[JsonValue] = [None, {"type": "success"}, {"type": "cancelled"}, "interrupt"]
    for outcome in others:
        assert asked.read_interrupts({"type": "RUN_FINISHED", "outcome": outcome}) == ()


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (finished(), "1 to 50 answers"),
        (finished(*[{"id": str(n), "reason": "r"} for n in range(51)]), "1 to 50 answers"),
        (finished({"reason": "r"}), "id: Field required"),
        (finished({"id": "", "reason": "r"}), "id: "),
        (finished({"id": "i" * 201, "reason": "r"}), "id: "),
        (finished({"id": "i", "reason": 7}), "reason: "),
        (finished({"id": "i", "reason": "r", "expiresAt": "soon"}), "expiresAt: "),
        (finished({"id": "i", "reason": "r"}, {"id": "i", "reason": "s"}), "the same id"),
        (finished(7), "invalid"),
    ],
)
def test_invalid_interrupts_are_refused(event: Any, message: str) -> None:
    with pytest.raises(BadStream, match=message):
        asked.read_interrupts(event)


def test_tool_call_is_asked_with_the_arguments_of_the_agent() -> None:
    seen = CallsSeen()
    seen.note({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "pay"})
    seen.note({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": '{"to": "ann"}'})
    approval = interrupt(toolCallId="c", message="Pay?", responseSchema=APPROVAL)
    definition = {"parameters": {"type": "object"}}
    call = {"tool": "bank.pay", "args": ARGS, "call_id": "i", "definition": definition}
    assert asked.write_calls([approval], seen, "bank") == [call]


def test_confirmation_of_another_call_is_asked_as_that_call() -> None:
    seen = CallsSeen()
    seen.note({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "pay"})
    original: JsonObject = {"id": "c", "name": "refund", "args": {"to": "eve"}}
    confirmation = interrupt(
        toolCallId="d", reason="confirmation", metadata={"adk": {"originalFunctionCall": original}}
    )
    (call,) = asked.write_calls([confirmation], seen, "")
    assert isinstance(call, dict)
    assert (confirmation.kept.call_id, call["tool"], call["args"]) == ("c", "pay", {})
    for adk in (None, 7, {}, {"originalFunctionCall": 7}, {"originalFunctionCall": {"id": 7}}):
        assert interrupt(toolCallId="d", metadata={"adk": adk}).call_id == "d"


def test_interrupts_of_one_reason_share_a_definition() -> None:
    first = interrupt(reason="input_required", message="Which?", responseSchema=QUARTER)
    second = interrupt(id="j", reason="input_required", message="Why?", responseSchema={"type": "string"})
    calls: Any = asked.write_calls([first, second], CallsSeen(), "")
    assert [call["args"] for call in calls] == [{"message": "Which?"}, {"message": "Why?"}]
    assert calls[0]["definition"] == calls[1]["definition"]


@pytest.mark.parametrize(
    ("hidden", "message"),
    [
        (interrupt(toolCallId="unknown"), "has not sent"),
        (interrupt(reason="no name of a tool \x00"), "cannot name"),
    ],
)
def test_call_that_cannot_be_shown_is_refused(hidden: Interrupt, message: str) -> None:
    with pytest.raises(BadStream, match=message):
        asked.write_calls([hidden], CallsSeen(), "")


def test_response_schema_becomes_the_form_of_the_value() -> None:
    form = interrupt(reason="input_required", message="Which?", responseSchema=QUARTER, metadata={"year": 2026})
    (call,) = asked.write_calls([form], CallsSeen(), "")
    assert isinstance(call, dict)
    assert call["args"] == {"message": "Which?", "details": {"year": 2026}}
    assert call["definition"] == {"parameters": {"type": "object", "properties": {"answer": QUARTER}}}


def test_first_expiry_limits_all_answers() -> None:
    times = ("2026-12-02T00:00:00Z", "2026-12-01T00:00:00", None)
    interrupts = [interrupt(expiresAt=at) for at in times]
    assert asked.find_expiry(interrupts) == datetime(2026, 12, 1, tzinfo=UTC)
    assert asked.find_expiry([interrupt()]) is None


def answer(schema: Any, args: Any, message: str | None = None, reason: str = "tool_call") -> Any:
    """Return status and payload of the answer to an interrupt."""
    kept: Kept = interrupt(reason=reason, responseSchema=schema).kept
    entry = asked.write_entry(Kept.model_validate_json(kept.model_dump_json()), item(message), args)
    assert entry["interruptId"] == "i"
    return entry["status"], entry.get("payload")


BOB = {"to": "bob"}


@pytest.mark.parametrize(
    ("schema", "args", "payload"),
    [
        (APPROVAL, ARGS, {"approved": True, "editedArgs": ARGS}),
        (APPROVAL, BOB, {"approved": True, "editedArgs": BOB}),
        (None, ARGS, {"approved": True}),
        ({"type": "boolean"}, ARGS, True),
        ({"properties": {"approved": {}}}, ARGS, {"approved": True}),
        (QUARTER, {"answer": {"quarter": "Q1"}}, {"quarter": "Q1"}),
        ({"type": "string"}, {"answer": "Q1"}, "Q1"),
    ],
)
def test_approval_answers_as_the_schema_says(schema: Any, args: Any, payload: Any) -> None:
    assert answer(schema, args) == ("resolved", payload)


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        (APPROVAL, {"approved": False, "reason": "no"}),
        (None, {"approved": False, "reason": "no"}),
        ({"properties": {"approved": {}}}, {"approved": False}),
        ({"type": "boolean"}, False),
    ],
)
def test_denial_is_an_answer(schema: Any, payload: Any) -> None:
    assert answer(schema, None, "no") == ("resolved", payload)


def test_edit_that_the_agent_cannot_take_is_refused_with_the_arguments() -> None:
    status, payload = answer(None, BOB)
    assert (status, payload["approved"]) == ("resolved", False)
    assert '{"to":"bob"}' in payload["reason"]
    assert answer({"type": "boolean"}, BOB) == ("resolved", False)


@pytest.mark.parametrize("args", [None, {}, {"answer": {}}, {"answer": 7}, {"answer": {"year": 1}}])
def test_form_without_its_values_is_cancelled(args: Any) -> None:
    assert answer(QUARTER, args, "no") == ("cancelled", None)


OUTCOMES = {"type": "string", "enum": ["pay", "leave"]}


@pytest.mark.parametrize("schema", [OUTCOMES, None])
@pytest.mark.parametrize("args", [None, ARGS, {"answer": ""}, {"answer": " \n"}, {"answer": True}])
def test_flow_that_takes_a_refusal_for_its_first_outcome_gets_none(schema: Any, args: Any) -> None:
    with pytest.raises(Denied, match=r"no\. The agent gets no answer"):
        answer(schema, args, "no.", reason="crewai:human_feedback")
    assert answer(schema, {"answer": "leave"}, reason="crewai:human_feedback") == ("resolved", "leave")


def test_confirmation_without_a_schema_is_yes_or_no() -> None:
    assert answer(None, ARGS, reason="confirmation") == ("resolved", True)
    assert answer(None, None, reason="confirmation") == ("resolved", False)


@pytest.mark.parametrize(
    ("schema", "args", "runs"),
    [
        (APPROVAL, ARGS, True),
        (APPROVAL, None, False),
        (None, BOB, False),
        ({"type": "boolean"}, ARGS, True),
        ({"type": "boolean"}, None, False),
        (QUARTER, {"answer": {"quarter": "Q1"}}, True),
        (QUARTER, {}, False),
    ],
)
def test_only_approvals_let_the_agent_go_on(schema: Any, args: Any, runs: bool) -> None:
    entry = asked.write_entry(interrupt(responseSchema=schema).kept, item(), args)
    assert asked.lets_run(entry) is runs
