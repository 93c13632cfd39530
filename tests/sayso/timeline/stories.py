"""One story in the events of each framework: a message, a call, its result and the end."""

import base64
import json
from typing import Any

Event = dict[str, Any]


def chunk(id_: str, content: str) -> Event:
    """A fragment of an AutoGen message."""
    kind = "ModelClientStreamingChunkEvent"
    return {"type": kind, "id": id_, "source": "payer", "content": content, "full_message_id": "x"}


AFK: list[Event] = [
    {"type": "run_started", "run_id": "r1", "data": {"agent_name": "payer", "resumed": False}},
    {"type": "step_started", "run_id": "r1", "step": 1, "data": {}},
    {"type": "text_delta", "run_id": "r1", "data": {"delta": "I will "}},
    {"type": "text_delta", "run_id": "r1", "data": {"delta": "pay Ann."}},
    {"type": "llm_completed", "run_id": "r1", "data": {"tool_call_count": 1, "text": "I will pay Ann."}},
    {"type": "tool_batch_started", "run_id": "r1", "data": {"tool_names": ["pay"], "tool_call_ids": ["c1"]}},
    {"type": "policy_decision", "run_id": "r1", "data": {"action": "request_approval", "reason": "money"}},
    {"type": "run_paused", "run_id": "r1", "message": "Waiting for deferred approval", "data": {}},
    {"type": "run_resumed", "run_id": "r1", "message": "Deferred approval resolved", "data": {}},
    {
        "type": "tool_completed",
        "run_id": "r1",
        "data": {"tool_name": "pay", "tool_call_id": "c1", "success": True, "output": {"paid": 5}, "error": None},
    },
    {"type": "run_completed", "run_id": "r1", "data": {}},
]

AUTOGEN: list[Event] = [
    {"type": "ThoughtEvent", "id": "m0", "source": "payer", "content": "Ann is owed 5."},
    chunk("m1", "I will "),
    chunk("m2", "pay."),
    {
        "type": "ToolCallRequestEvent",
        "id": "m3",
        "source": "payer",
        "content": [{"id": "c1", "name": "pay", "arguments": '{"amount": 5}'}],
    },
    {
        "type": "ToolCallExecutionEvent",
        "id": "m4",
        "source": "payer",
        "content": [{"call_id": "c1", "name": "pay", "content": "paid 5", "is_error": False}],
    },
    {
        "chat_message": {"type": "TextMessage", "id": "m5", "source": "payer", "content": "Done."},
        "inner_messages": [
            {
                "type": "ToolCallRequestEvent",
                "id": "m3",
                "source": "payer",
                "content": [{"id": "c1", "name": "pay", "arguments": '{"amount": 5}'}],
            }
        ],
    },
]

PARSIMONY: list[Event] = [
    {"type": "reasoning_delta", "content": "Ann is ", "message_id": "r", "delta": True},
    {"type": "reasoning_delta", "content": "owed 5.", "message_id": "r", "delta": True},
    {"type": "text_delta", "content": "I will ", "message_id": "t", "delta": True},
    {"type": "text_delta", "content": "pay.", "message_id": "t", "delta": True},
    {
        "type": "llm_call_completed",
        "iteration": 1,
        "response_text": "I will pay.",
        "reasoning_text": "Ann is owed 5.",
        "tool_calls": [{"id": "c1", "function": {"name": "pay", "arguments": '{"amount": 5}'}}],
        "latency_ms": 7,
    },
    {"type": "tool_event", "tool_name": "pay", "tool_call_id": "c1", "tool_type": "utility", "completed": False},
    {"type": "tool_event", "tool_name": "pay", "tool_call_id": "c1", "tool_type": "utility", "completed": True},
    {"type": "tool_result_observed", "tool_call_id": "c1", "tool_name": "pay", "llm_content": "paid 5"},
    {"type": "user_input_requested", "question": "Also Ben?", "choices": ["yes", "no"], "suspension_record": {}},
]

TOOL_RESPONSES: list[Event] = [
    {"type": "user_prompt", "prompt": "Pay Ann"},
    {"type": "raw_response_event", "delta": "I will ", "current_agent": "Bank"},
    {"type": "raw_response_event", "delta": "pay.", "current_agent": "Bank"},
    {"type": "llm_response", "response": "I will pay.", "current_agent": "Bank"},
    {"type": "tool_call", "name": "pay", "description": "Pays", "current_agent": "Bank"},
    {
        "type": "tool_output",
        "current_agent": "Bank",
        "output": {
            "response_type": "payment",
            "agent_name": "Bank",
            "friendly_name": "Paid Ann",
            "response": {"paid": 5},
            "display_response": True,
        },
    },
    {"type": "end_of_stream"},
]


def encode(value: Any) -> str:
    """Bytes in Go's JSON."""
    return base64.b64encode(json.dumps(value).encode()).decode()


def go(object_: str, id_: str, message: Any = None, delta: Any = None, **fields: Any) -> Event:
    """An event of trpc-agent-go."""
    choices = [{"index": 0, "message": message or {"role": "", "content": ""}, "delta": delta or {}}]
    return {
        "object": object_,
        "id": id_,
        "requestID": "q1",
        "invocationId": "i1",
        "author": "payer",
        "timestamp": f"2026-11-21T12:00:0{id_[-1]}.123456789Z",
        "version": 1,
        "choices": choices if message or delta else [],
        "response": {"id": "resp-1"},
        **fields,
    }


CALL = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": '{"amount":5}'}}
TRPC: list[Event] = [
    go("chat.completion.chunk", "e1", delta={"content": "I will "}, is_partial=True),
    go("chat.completion.chunk", "e2", delta={"content": "pay."}, is_partial=True),
    go("chat.completion", "e3", {"role": "assistant", "content": "I will pay.", "tool_calls": [CALL]}, done=True),
    go("tool.response", "e4", {"role": "tool", "tool_id": "c1", "tool_name": "pay", "content": '{"paid":5}'}),
    go(
        "chat.completion",
        "e5",
        {"role": "assistant", "content": "Looked it up."},
        invocationId="i2",
        parentInvocationId="i1",
        author="auditor",
        done=True,
    ),
    go("runner.completion", "e6", done=True),
]

SAYSO: list[Event] = [
    {"type": "message", "who": "payer", "data": {"role": "user", "text": "Pay Ann"}},
    {"type": "reasoning_delta", "who": "payer", "data": {"text": "Ann is "}},
    {"type": "reasoning_delta", "who": "payer", "data": {"text": "owed 5."}},
    {"type": "tool_call", "data": {"name": "pay", "call_id": "c1", "args": {"amount": 5}}},
    {"type": "tool_result", "data": {"call_id": "c1", "success": False, "error": "no funds"}},
]

STORIES: dict[str, list[Event]] = {
    "afk": AFK,
    "autogen": AUTOGEN,
    "parsimony": PARSIMONY,
    "tool_responses": TOOL_RESPONSES,
    "trpc_agent_go": TRPC,
    "sayso": SAYSO,
}
