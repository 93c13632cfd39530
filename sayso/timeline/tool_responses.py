"""Read a chat's WebSocket messages and the ToolResponse envelopes in them, or an envelope by itself."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sayso.canonical_json import JsonObject
from sayso.formats.external_events import Fields, Kind, Piece, describe_unknown
from sayso.formats.tool_responses import ERROR, ToolResponse, draw, read_output

Tell = Callable[[Fields], tuple[Piece, ...]]


def read(event: JsonObject) -> tuple[Piece, ...]:
    """Return what the message shows."""
    fields = Fields(event)
    if "response_type" in event and "type" not in event:
        return (_result(read_output(event)),)
    kind = fields.word("type")
    tell = TELLERS.get(kind)
    pieces = tell(fields) if tell is not None else (describe_unknown(fields, kind),)
    return tuple(replace(piece, who=piece.who or fields.word("current_agent")) for piece in pieces)


def _output(fields: Fields) -> tuple[Piece, ...]:
    return (_result(read_output(fields.value("output"), fields.word("current_agent"))),)


def _result(said: ToolResponse) -> Piece:
    """An envelope is the result of the call before it: such chats tell no ids."""
    drawn = draw(said)
    words = drawn.heading if drawn is not None else "Not shown to its user"
    failed = said.response_type == ERROR
    note = "\n".join(one for one in (words, drawn.text if drawn is not None and drawn.fields else "") if one)
    error = drawn.text if failed and drawn is not None else ""
    return Piece(Kind.RESULT, error, note, who=said.agent_name, ok=not failed, data=said.response)


def _call(fields: Fields) -> tuple[Piece, ...]:
    return (Piece(Kind.CALL, note=fields.word("description"), name=fields.word("name")),)


def _updated(fields: Fields) -> tuple[Piece, ...]:
    return (Piece(Kind.STEP, f"{fields.word('new_agent', 'name') or 'Another agent'} took over"),)


def _prompts(fields: Fields) -> tuple[Piece, ...]:
    return (Piece(Kind.QUIET, "Suggested what to ask next", "\n".join(fields.words("prompts"))),)


TELLERS: Mapping[str, Tell] = {
    "user_prompt": lambda fields: (Piece(Kind.TEXT, fields.word("prompt", "text", "content"), who="user"),),
    "raw_response_event": lambda fields: (Piece(Kind.TEXT, fields.word("delta"), whole=False),),
    "llm_response": lambda fields: (Piece(Kind.TEXT, fields.word("response")),),
    "tool_call": _call,
    "tool_output": _output,
    "agent_updated": _updated,
    "handoff": lambda fields: (Piece(Kind.STEP, f"Handed over to {fields.word('name') or 'another agent'}"),),
    "suggested_prompts": _prompts,
    "end_of_stream": lambda fields: (Piece(Kind.QUIET, "End of the answer"),),
}
