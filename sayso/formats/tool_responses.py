"""Speak the ToolResponse envelope: five keys in which a tool's output reaches a chat client that draws it by its type.

Requests and decisions become cards in that shape, a denial reaches the model as one, and `tool_output` messages of such
a chat are read whatever they hold. `docs/frameworks.md` shows how to use it with OpenAI Agents.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from sayso.canonical_json import JsonObject, parse_json
from sayso.errors import InvalidInput

REQUEST, DECISION, ERROR = "approval_request", "approval_decision", "error"
_FRIENDLY = "Approval"


class ToolResponse(BaseModel):
    """What a tool says: its kind, who says it, a label, the payload, and whether people are to see it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    response_type: str
    agent_name: str
    friendly_name: str
    response: JsonValue
    display_response: bool = True

    def to_dict(self) -> JsonObject:
        """Return the five keys."""
        return self.model_dump(mode="json")

    def to_json(self) -> str:
        """Return the five keys as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False)


class Drawn(NamedTuple):
    """A card as a client may draw it: its heading, named values, and a text below."""

    heading: str
    fields: tuple[tuple[str, str], ...] = ()
    text: str = ""


Renderer = Callable[[ToolResponse], Drawn]


def ask_card(agent_name: str, suspension: Mapping[str, Any], item: Mapping[str, Any], url: str = "") -> ToolResponse:
    """Return the card that says what waits for a person: an item as `GET /api/v1/suspensions/{id}` gives it."""
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
    """Return the card that says what became of an item; raises `KeyError` or `TypeError` for one that still waits."""
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
    """Return what writes a denial for the model as the envelope, for `openai_agents.gate(describe_refused=…)`."""

    def tell(tool: str, why: str) -> str:
        label = f"{_FRIENDLY} of {tool}"
        return ToolResponse(
            response_type=ERROR, agent_name=agent_name, friendly_name=label, response={"tool": tool, "message": why}
        ).to_json()

    return tell


def note_edit(output: JsonValue, note: str) -> JsonValue:
    """Return an envelope with the note in its label, where both the model and people read it; None for anything else.

    The payload stays as its renderer knows it.
    """
    try:
        said = ToolResponse.model_validate(output)
    except ValidationError:
        return None
    return said.model_copy(update={"friendly_name": f"{said.friendly_name} ({note})"}).to_dict()


def read_output(output: Any, agent_name: str = "") -> ToolResponse:
    """Return a tool's output as an envelope, whatever it is: text, null, lists and half-made envelopes included."""
    value = _parse(output) if isinstance(output, str) else output
    if isinstance(value, dict):
        try:
            return ToolResponse.model_validate({"agent_name": agent_name, "friendly_name": "", **value})
        except ValidationError:
            shown = value.get("display_response", True) is not False
            kind = ERROR if "error" in value or value.get("status") == "error" else "other"
            return _wrap(kind, agent_name, value, shown)
    return _wrap("other", agent_name, value, True)


def read_event(message: Any) -> ToolResponse | None:
    """Return the envelope in a chat's `tool_output` message, or None for a message of any other kind."""
    if not isinstance(message, dict) or message.get("type") != "tool_output":
        return None
    return read_output(message.get("output"), str(message.get("current_agent") or ""))


def draw(said: ToolResponse, renderers: Mapping[str, Renderer] | None = None) -> Drawn | None:
    """Return the card to draw, by its `response_type`, yours before ours; None where people are not to see it."""
    if not said.display_response:
        return None
    return {**RENDERERS, **(renderers or {})}.get(said.response_type, _draw_any)(said)


def _draw_request(said: ToolResponse) -> Drawn:
    body = _object(said.response)
    fields = tuple((name, _say(value)) for name, value in _object(body.get("args")).items())
    return Drawn(said.friendly_name, fields, _say(body.get("reason")))


def _draw_decision(said: ToolResponse) -> Drawn:
    body = _object(said.response)
    fields = tuple((name, _say(body[name])) for name in ("verdict", "by", "at") if body.get(name))
    return Drawn(said.friendly_name, fields, _say(body.get("message")))


def _draw_error(said: ToolResponse) -> Drawn:
    body = _object(said.response)
    words = body.get("message") or body.get("error") or said.response
    return Drawn(said.friendly_name or "Something went wrong", (), _say(words))


def _draw_account(said: ToolResponse) -> Drawn:
    wanted = _say(next(iter(_object(said.response).values()), "")) or _say(said.response)
    return Drawn(said.friendly_name or "An account is needed", (), wanted)


def _draw_any(said: ToolResponse) -> Drawn:
    if isinstance(said.response, dict):
        return Drawn(said.friendly_name, tuple((name, _say(value)) for name, value in said.response.items()))
    if isinstance(said.response, list):
        return Drawn(said.friendly_name, tuple((str(at), _say(one)) for at, one in enumerate(said.response, start=1)))
    return Drawn(said.friendly_name, (), _say(said.response))


RENDERERS: Mapping[str, Renderer] = {
    REQUEST: _draw_request,
    DECISION: _draw_decision,
    ERROR: _draw_error,
    **dict.fromkeys(
        (
            "account_needed",
            "google_account_needed",
            "connect_google_account",
            "request_google_access",
            "connect_plaid_account",
        ),
        _draw_account,
    ),
}
"""What draws which `response_type`; whatever is not here is drawn by its shape."""


def _wrap(kind: str, agent_name: str, value: Any, shown: bool) -> ToolResponse:
    plain: JsonValue = value if isinstance(value, dict | list | str | int | float | bool | None) else str(value)
    return ToolResponse(
        response_type=kind, agent_name=agent_name, friendly_name="", response=plain, display_response=shown
    )


def _parse(text: str) -> Any:
    try:
        return parse_json(text)
    except InvalidInput:
        return text


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _say(value: JsonValue) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
