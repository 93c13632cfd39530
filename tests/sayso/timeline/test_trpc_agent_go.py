"""Tests of reading and resuming trpc-agent-go runs."""

import re
from itertools import permutations
from typing import Any

import pytest
from pydantic import JsonValue

from sayso.errors import InvalidInput
from sayso.timeline.trpc_states import (
    GoInvocation,
    build_tree,
    decode,
    decode_all,
    find_suspensions,
    write_graph_resume,
    write_tool_results,
    write_user_reply,
)
from service.core.settings import CHECKOUT
from tests.sayso.timeline.stories import CALL, TRPC, encode, go

INTERRUPT = {
    "nodeID": "review",
    "interruptKey": "ok",
    "interruptValue": {"question": "Pay?"},
    "lineageId": "l1",
    "checkpointId": "k1",
}


def interrupt(id_: str = "e1", **fields: Any) -> dict[str, Any]:
    meta = encode({**INTERRUPT, **fields})
    return go("graph.pregel.step", id_, author="graph-pregel", stateDelta={"_pregel_metadata": meta})


def asking(*calls: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return go("chat.completion", "e1", {"role": "assistant", "content": "", "tool_calls": list(calls)}, **fields)


def tree_of(roots: list[GoInvocation]) -> list[Any]:
    return [(one.id, tree_of(sorted(one.children, key=lambda child: child.id))) for one in roots]


def test_decode_reads_all_fields() -> None:
    event = decode(
        asking(
            CALL,
            tag="transfer; mine",
            branch="root/payer",
            longRunningToolIDs={"c1": {}},
            stateDelta={"n": encode({"a": 1}), "text": "aGVsbG8=", "raw": "not base64!", "null": None},
            parentInvocationId="i0",
            parentMetadata={"triggerType": "tool_call", "triggerId": "c0"},
            done=True,
        )
    )
    assert (event.id, event.response_id, event.request_id, event.trigger_id) == ("e1", "resp-1", "q1", "c0")
    assert event.tags == ("transfer", "mine")
    assert event.long_running == {"c1"}
    assert event.state == {"n": {"a": 1}, "text": "hello", "raw": "not base64!", "null": None}
    assert event.calls[0].args == {"amount": 5}
    assert event.at_ms == 1_795_262_401_123
    assert not event.completes_run


@pytest.mark.parametrize(
    ("fields", "filter_key"),
    [
        ({"version": 0, "branch": "b"}, "b"),
        ({"version": 1, "branch": "b"}, ""),
        ({"version": 1, "branch": "b", "filterKey": "f"}, "f"),
    ],
)
def test_decode_uses_the_branch_of_an_older_event_as_filter_key(fields: dict[str, Any], filter_key: str) -> None:
    assert decode(go("x", "e1", **fields)).filter_key == filter_key


@pytest.mark.parametrize("response", [None, "broken", [1], 7])
def test_decode_drops_a_malformed_response(response: Any) -> None:
    event = decode(asking(CALL, response=response))
    assert (event.response_id, event.calls[0].name) == ("", "pay")


def test_decode_keeps_invalid_arguments_as_text() -> None:
    broken = {"id": "c1", "function": {"name": "pay", "arguments": '{"amount":'}}
    assert decode(asking(broken)).calls[0].args == '{"amount":'


def test_decode_all_accepts_event_list_and_response() -> None:
    events: list[JsonValue] = [*TRPC]
    assert [event.id for event in decode_all(events[0])] == ["e1"]
    assert len(decode_all(events)) == len(TRPC)
    assert len(decode_all({"status": "completed", "events": events, "messages": []})) == len(TRPC)
    with pytest.raises(InvalidInput, match="not events of trpc-agent-go"):
        decode_all(["text"])


def test_build_tree_is_independent_of_event_order() -> None:
    ids = [("a", ""), ("b", "a"), ("c", "a"), ("d", "c"), ("lost", "nowhere"), ("x", "y"), ("y", "x")]
    events = [decode(go("x", f"e{n}", invocationId=one, parentInvocationId=up)) for n, (one, up) in enumerate(ids)]
    events.append(decode(go("x", "e9", requestID="q2", invocationId="a")))
    for place in range(len(events)):
        tree = build_tree([*reversed(events[place:]), *events[:place]])
        assert sorted(map(str, tree_of(tree["q1"]))) == sorted(
            map(str, [("a", [("b", []), ("c", [("d", [])])]), ("lost", []), ("x", []), ("y", [])])
        )
        assert tree_of(tree["q2"]) == [("a", [])]


def test_build_tree_separates_calls_of_one_agent() -> None:
    events = [
        decode(go("x", f"e{n}", invocationId=f"i{n}", branch="root/auditor", parentMetadata={"triggerId": f"c{n}"}))
        for n in (1, 2)
    ]
    assert [one.trigger_id for one in build_tree(events)["q1"]] == ["c1", "c2"]


def test_write_graph_resume_names_the_checkpoint() -> None:
    (pause,) = find_suspensions([decode(interrupt()), decode(interrupt())])
    assert (pause.mechanism, pause.key, pause.prompt) == ("graph_interrupt", "ok", {"question": "Pay?"})
    assert write_graph_resume([pause], {"ok": True}) == {
        "lineage_id": "l1",
        "checkpoint_id": "k1",
        "resume_map": {"ok": True},
    }
    (below,) = find_suspensions([decode(interrupt(checkpointNs="sub"))])
    assert write_graph_resume([below], {"ok": 1})["checkpoint_ns"] == "sub"


def test_find_suspensions_ignores_uninterrupted_steps() -> None:
    assert find_suspensions([decode(interrupt(nodeID="", nodeId="review"))]) == []


@pytest.mark.parametrize("values", [{}, {"static_interrupt_before:review": None}])
def test_write_graph_resume_needs_no_value_for_a_breakpoint(values: dict[str, Any]) -> None:
    pauses = find_suspensions(decode_all([interrupt(interruptKey="static_interrupt_before:review")]))
    assert write_graph_resume(pauses, values) == {"lineage_id": "l1", "checkpoint_id": "k1", "resume_map": values}


def test_write_graph_resume_needs_all_answers_of_one_checkpoint() -> None:
    pauses = find_suspensions([decode(interrupt("e1")), decode(interrupt("e2", interruptKey="why"))])
    with pytest.raises(InvalidInput, match=r"Missing: why\. Unknown: other"):
        write_graph_resume(pauses, {"ok": 1, "other": 2})
    apart = find_suspensions([decode(interrupt("e1")), decode(interrupt("e2", interruptKey="why", checkpointId="k2"))])
    with pytest.raises(InvalidInput, match="to 2 checkpoints"):
        write_graph_resume(apart, {"ok": 1, "why": 2})
    with pytest.raises(InvalidInput, match="No suspension waits"):
        write_tool_results(pauses, {})


def test_find_suspensions_finds_external_calls_of_an_ended_run() -> None:
    other = {"id": "c2", "function": {"name": "look_up", "arguments": "{}"}}
    ran = go("tool.response", "e2", {"role": "tool", "tool_id": "c2", "content": "found"})
    events = [decode(asking(CALL, other)), decode(ran)]
    assert find_suspensions(events) == []
    pauses = find_suspensions([*events, decode(go("runner.completion", "e3", done=True))])
    assert [(one.mechanism, one.key, one.name) for one in pauses] == [("external_tool", "c1", "pay")]
    assert write_tool_results(pauses, {"c1": "paid 5"}) == [
        {"id": "result-c1", "role": "tool", "toolCallId": "c1", "name": "pay", "content": "paid 5"}
    ]
    with pytest.raises(InvalidInput, match="Missing: c1"):
        write_tool_results(pauses, {})


def nested(id_: str, invocation: str, parent: str, **fields: Any) -> dict[str, Any]:
    return {**interrupt(id_, **fields), "invocationId": invocation, "parentInvocationId": parent}


@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
def test_nested_interrupt_names_the_child_and_the_outer_checkpoint(order: tuple[int, ...]) -> None:
    events = [
        nested("e1", "leaf", "middle", nodeID="review", checkpointId="k3", checkpointNs="leaf"),
        nested("e2", "middle", "top", nodeID="team", checkpointId="k2", checkpointNs="middle"),
        nested("e3", "top", "", nodeID="call_team", checkpointId="k1"),
        nested("e4", "other", "", nodeID="ship", interruptKey="why", checkpointId="k1"),
    ]
    pauses = find_suspensions(decode_all([events[place] for place in order]))
    found = {one.key: (one.name, one.invocation_id, one.checkpoint_id, one.checkpoint_ns) for one in pauses}
    assert found == {"ok": ("review", "leaf", "k1", ""), "why": ("ship", "other", "k1", "")}
    assert write_graph_resume(pauses, {"ok": True, "why": 1})["checkpoint_id"] == "k1"


def test_interrupts_whose_invocations_form_a_cycle_all_wait() -> None:
    events = [nested("e1", "a", "b", interruptKey="one"), nested("e2", "b", "a", interruptKey="two")]
    assert [one.key for one in find_suspensions([decode(one) for one in events])] == ["one", "two"]


def activity(*patch: tuple[str, JsonValue]) -> dict[str, JsonValue]:
    rows: list[JsonValue] = [{"op": "add", "path": path, "value": value} for path, value in patch]
    return {"type": "ACTIVITY_DELTA", "activityType": "graph.node.interrupt", "patch": rows}


def asked(node: str = "review", checkpoint: str = "k1") -> dict[str, JsonValue]:
    value: JsonValue = {
        "nodeId": node,
        "key": "ok",
        "prompt": {"question": "Pay?"},
        "checkpointId": checkpoint,
        "lineageId": "l1",
    }
    return activity(("/interrupt", value))


STARTED: dict[str, JsonValue] = {"type": "RUN_STARTED", "threadId": "t1", "runId": "q1"}
FINISHED: dict[str, JsonValue] = {"type": "RUN_FINISHED", "threadId": "t1", "runId": "q1"}


def test_agui_interrupt_is_found_and_resumed() -> None:
    (pause,) = find_suspensions(decode_all([STARTED, asked(), FINISHED]))
    assert (pause.mechanism, pause.request_id, pause.key, pause.name) == ("graph_interrupt", "q1", "ok", "review")
    assert pause.prompt == {"question": "Pay?"}
    assert write_graph_resume([pause], {"ok": True})["resume_map"] == {"ok": True}


def test_agui_nested_interrupt_has_the_last_checkpoint_and_the_first_name() -> None:
    (pause,) = find_suspensions(decode_all([STARTED, asked("review", "k3"), asked("call_team", "k1"), FINISHED]))
    assert (pause.name, pause.checkpoint_id) == ("review", "k1")


def test_agui_interrupt_that_was_resumed_does_not_wait() -> None:
    resumed = activity(("/interrupt", None), ("/resume", {"resumeMap": {"ok": True}, "checkpointId": "k1"}))
    assert find_suspensions(decode_all([STARTED, asked(), FINISHED, STARTED, resumed, FINISHED])) == []


def test_agui_external_call_waits_once_its_run_has_finished() -> None:
    call: list[JsonValue] = [
        {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "pay"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '{"amount"'},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": ":5}"},
        {"type": "TOOL_CALL_END", "toolCallId": "c1"},
    ]
    result: JsonValue = {"type": "TOOL_CALL_RESULT", "messageId": "m1", "toolCallId": "c1", "content": "paid 5"}
    assert find_suspensions(decode_all([STARTED, *call])) == []
    assert find_suspensions(decode_all([STARTED, *call, result, FINISHED])) == []
    (pause,) = find_suspensions(decode_all([STARTED, *call, FINISHED]))
    assert (pause.mechanism, pause.key, pause.name, pause.prompt) == ("external_tool", "c1", "pay", {"amount": 5})


def test_write_user_reply_answers_a_long_running_call() -> None:
    (pause,) = find_suspensions([decode(asking(CALL, longRunningToolIDs={"c1": {}}))])
    assert pause.mechanism == "long_running_tool"
    assert write_user_reply(pause, "paid") == {"role": "user", "content": "The result of pay (c1): paid"}


def test_find_suspensions_finds_a_permission_without_key() -> None:
    content = '{"status":"approval_required","tool":"pay","reason":"money"}'
    (pause,) = find_suspensions(
        [decode(go("tool.response", "e1", {"role": "tool", "tool_id": "c1", "content": content}))]
    )
    assert (pause.mechanism, pause.key, pause.name, pause.prompt) == ("permission", "", "pay", "money")


def test_documented_quick_start_resumes_a_graph() -> None:
    page = (CHECKOUT / "docs" / "frameworks.md").read_text(encoding="utf-8")
    written = re.search(r"^### trpc-agent-go\n.*?^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert written is not None
    assert len(written[1].splitlines()) <= 15
    known: dict[str, Any] = {"response": [interrupt(interruptKey="approve")]}
    exec(written[1], known)  # noqa: S102  the page's own lines
    assert known["state"] == {"lineage_id": "l1", "checkpoint_id": "k1", "resume_map": {"approve": True}}
    assert [entry.mechanism for entry in known["suspensions"]] == ["graph_interrupt"]
