"""Reader for a chat's WebSocket messages, the ToolResponse envelopes in them, and single envelopes."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sayso.canonical_json import JsonObject
from sayso.formats.external_events import Fields, Kind, Part, read_parts
from sayso.formats.tool_responses import ERROR, ToolResponse, draw, read_output

Read = Callable[[Fields], Part | list[Part]]


def read(event: JsonObject) -> tuple[Part, ...]:
    """Return the parts of a message."""
    fields = Fields(event)
    if "response_type" in event and "type" not in event:
        return (_result(read_output(event)),)
    parts = read_parts(READERS, fields.text("type"), fields)
    return tuple(replace(part, who=part.who or fields.text("current_agent")) for part in parts)


def _result(envelope: ToolResponse) -> Part:
    """Read an envelope as the result of the last call: such chats send no ids."""
    card = draw(envelope)
    failed = envelope.response_type == ERROR
    if card is None:
        error, note = "", "Not shown to the user"
    else:
        error = card.text if failed else ""
        note = "\n".join(filter(None, (card.heading, card.text if card.fields else "")))
    return Part(Kind.RESULT, error, note, who=envelope.agent_name, ok=not failed, data=envelope.response)


READERS: Mapping[str, Read] = {
    "user_prompt": lambda fields: Part(Kind.TEXT, fields.text("prompt", "text", "content"), who="user"),
    "raw_response_event": lambda fields: Part(Kind.TEXT, fields.text("delta"), whole=False),
    "llm_response": lambda fields: Part(Kind.TEXT, fields.text("response")),
    "tool_call": lambda fields: Part(Kind.CALL, note=fields.text("description"), name=fields.text("name")),
    "tool_output": lambda fields: _result(read_output(fields.value("output"), fields.text("current_agent"))),
    "agent_updated": lambda fields: Part(Kind.STEP, f"{fields.text('new_agent', 'name') or 'Another agent'} took over"),
    "handoff": lambda fields: Part(Kind.STEP, f"Handed off to {fields.text('name') or 'another agent'}"),
    "suggested_prompts": lambda fields: Part(
        Kind.QUIET, "Suggested the next prompts", "\n".join(fields.texts("prompts"))
    ),
    "end_of_stream": lambda fields: Part(Kind.QUIET, "End of the answer"),
}
