"""The ToolResponse envelope: the output of a tool, with a type that tells a chat client how to draw it."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from sayso.core.canonical_json import JsonObject
from sayso.timeline.external_events import Fields, Kind, Part, read_json, read_parts

REQUEST, DECISION, ERROR = "approval_request", "approval_decision", "error"
_OPENING = ("open_window", "open_tab")


class ToolResponse(BaseModel):
    """The output of a tool in five keys. Clients hide it if `display_response` is false."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    response_type: str
    agent_name: str
    friendly_name: str
    response: JsonValue
    display_response: bool = True

    def to_dict(self) -> JsonObject:
        return self.model_dump(mode="json")

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)


class Drawn(NamedTuple):
    """A card for a client to draw: heading, named values and a text below."""

    heading: str
    fields: tuple[tuple[str, str], ...] = ()
    text: str = ""


Renderer = Callable[[ToolResponse], Drawn]


def ask_card(agent_name: str, suspension: Mapping[str, Any], item: Mapping[str, Any], url: str = "") -> ToolResponse:
    """Return the card of a pending item, as `GET /api/v1/suspensions/{id}` gives it."""
    response: JsonObject = {
        "suspension_id": suspension["id"],
        "item_id": item["item_id"],
        "tool": item["tool"]["name"],
        "args": item["tool"]["args"],
        "reason": item["prompt"]["reason"],
        "allowed": item["allowed"],
        "deadline_at": item["terms"]["deadline_at"],
        "url": url,
    }
    label = item["prompt"]["title"] or f"Approval of {item['tool']['name']}"
    return ToolResponse(response_type=REQUEST, agent_name=agent_name, friendly_name=label, response=response)


def decision_card(agent_name: str, suspension: Mapping[str, Any], item: Mapping[str, Any]) -> ToolResponse:
    """Return the card of a decided item. Raises `KeyError` or `TypeError` if it has no outcome."""
    outcome = item["outcome"]
    response: JsonObject = {
        "suspension_id": suspension["id"],
        "item_id": item["item_id"],
        "tool": item["tool"]["name"],
        "args": outcome["args"] or item["tool"]["args"],
        "verdict": outcome["verdict"],
        "by": outcome["by"]["id"],
        "message": outcome["message"],
        "at": outcome["at"],
    }
    label = f"{item['tool']['name']}: {outcome['verdict']}"
    return ToolResponse(response_type=DECISION, agent_name=agent_name, friendly_name=label, response=response)


def describe_refused(agent_name: str) -> Callable[[str, str], str]:
    """Return a function that writes a denial as an envelope, for `openai_agents.gate(describe_refused=…)`."""

    def write(tool: str, reason: str) -> str:
        label = f"Approval of {tool}"
        return ToolResponse(
            response_type=ERROR, agent_name=agent_name, friendly_name=label, response={"tool": tool, "message": reason}
        ).to_json()

    return write


def note_edit(output: JsonValue, note: str) -> JsonValue:
    """Add the note to the label of an envelope, not to its payload; return None if `output` is not an envelope."""
    try:
        envelope = ToolResponse.model_validate(output)
    except ValidationError:
        return None
    return envelope.model_copy(update={"friendly_name": f"{envelope.friendly_name} ({note})"}).to_dict()


def read_output(output: Any, agent_name: str = "") -> ToolResponse:
    """Wrap any output of a tool in an envelope. Incomplete envelopes, text, null and lists are accepted."""
    value: Any = read_json(output)
    kind, displayed = "other", True
    if isinstance(value, dict):
        with suppress(ValidationError):
            return ToolResponse.model_validate({"agent_name": agent_name, "friendly_name": "", **value})
        displayed = value.get("display_response", True) is not False
        kind = ERROR if "error" in value or value.get("status") == "error" else kind
    plain: JsonValue = value if isinstance(value, dict | list | str | int | float | bool | None) else str(value)
    return ToolResponse(
        response_type=kind, agent_name=agent_name, friendly_name="", response=plain, display_response=displayed
    )


def read_event(message: Any) -> ToolResponse | None:
    """Return the envelope in a `tool_output` message, or None for another message."""
    if not isinstance(message, dict) or message.get("type") != "tool_output":
        return None
    return read_output(message.get("output"), str(message.get("current_agent") or ""))


def draw(envelope: ToolResponse, renderers: Mapping[str, Renderer] | None = None) -> Drawn | None:
    """Return the card for an envelope, or None if it is hidden. Your `renderers` override the built-in ones."""
    if not envelope.display_response:
        return None
    return {**RENDERERS, **(renderers or {})}.get(envelope.response_type, _draw_any)(envelope)


def _draw_request(envelope: ToolResponse) -> Drawn:
    body = _object(envelope.response)
    fields = tuple((name, _show(value)) for name, value in _object(body.get("args")).items())
    return Drawn(envelope.friendly_name, fields, _show(body.get("reason")))


def _draw_decision(envelope: ToolResponse) -> Drawn:
    body = _object(envelope.response)
    fields = tuple((name, _show(body[name])) for name in ("verdict", "by", "at") if body.get(name))
    return Drawn(envelope.friendly_name, fields, _show(body.get("message")))


def _draw_error(envelope: ToolResponse) -> Drawn:
    body = _object(envelope.response)
    text = body.get("message") or body.get("error") or envelope.response
    return Drawn(envelope.friendly_name or "Something went wrong", (), _show(text))


def _draw_account(envelope: ToolResponse) -> Drawn:
    account = _show(next(iter(_object(envelope.response).values()), "")) or _show(envelope.response)
    return Drawn(envelope.friendly_name or "An account is needed", (), account)


def _draw_any(envelope: ToolResponse) -> Drawn:
    response = envelope.response
    if not isinstance(response, dict | list):
        return Drawn(envelope.friendly_name, (), _show(response))
    pairs = response.items() if isinstance(response, dict) else enumerate(response, start=1)
    return Drawn(envelope.friendly_name, tuple((str(name), _show(value)) for name, value in pairs))


RENDERERS: Mapping[str, Renderer] = {
    REQUEST: _draw_request,
    DECISION: _draw_decision,
    ERROR: _draw_error,
    **dict.fromkeys(("account_needed", "google_account_needed", "connect_google_account"), _draw_account),
    **dict.fromkeys(("request_google_access", "connect_plaid_account"), _draw_account),
}
"""The renderer of each `response_type`. Other types are drawn by the shape of their payload."""


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _show(value: JsonValue) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


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
    opens = card is not None and envelope.response_type in _OPENING
    link = Fields(envelope.response).text("url") if opens else ""
    return Part(Kind.RESULT, error, note, who=envelope.agent_name, ok=not failed, data=envelope.response, link=link)


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
