"""Tests of the ToolResponse envelope."""

import json
from typing import Any

import pytest

from sayso.timeline.tool_responses import (
    Drawn,
    ToolResponse,
    ask_card,
    decision_card,
    describe_refused,
    draw,
    note_edit,
    read_event,
    read_output,
)

KEYS = {"response_type", "agent_name", "friendly_name", "response", "display_response"}
SUSPENSION = {"id": "sus_1"}
ITEM: dict[str, Any] = {
    "item_id": "i1",
    "tool": {"name": "send_mail", "args": {"to": "ann"}},
    "prompt": {"title": None, "reason": "Nothing is sent unread"},
    "allowed": ["approve", "deny"],
    "terms": {"deadline_at": "2026-11-21T12:00:00.000Z"},
    "outcome": {
        "verdict": "approved",
        "args": {"to": "bob"},
        "by": {"id": "anna"},
        "message": None,
        "at": "2026-11-21T11:59:00.000Z",
    },
}


def test_ask_card_has_five_keys() -> None:
    card = ask_card("GMail", SUSPENSION, ITEM, "http://sayso/items")
    assert card.to_dict().keys() == KEYS
    assert draw(card) == ("Approval of send_mail", (("to", "ann"),), "Nothing is sent unread")


def test_decision_card_has_the_arguments_that_ran() -> None:
    card = decision_card("GMail", SUSPENSION, ITEM)
    assert card.to_dict().keys() == KEYS
    assert card.to_dict()["response"]["args"] == {"to": "bob"}  # type: ignore[index,call-overload]
    drawn = draw(card)
    assert drawn is not None
    assert ("verdict", "approved") in drawn.fields


def test_describe_refused_writes_an_envelope() -> None:
    response = json.loads(describe_refused("GMail")("send_mail", "Not today."))
    assert response.keys() == KEYS
    assert (response["response_type"], response["response"]["message"]) == ("error", "Not today.")


def test_note_edit_changes_only_the_label() -> None:
    said = ToolResponse(response_type="inbox", agent_name="GMail", friendly_name="Inbox", response=[{"id": 1}])
    noted = read_output(note_edit(said.to_dict(), "It ran with {}."))
    assert (noted.friendly_name, noted.response) == ("Inbox (It ran with {}.)", [{"id": 1}])
    assert noted.to_dict().keys() == KEYS


@pytest.mark.parametrize("output", [None, "words", {"response": 1}, [1]])
def test_note_edit_returns_none_for_other_output(output: Any) -> None:
    assert note_edit(output, "It ran with {}.") is None


def test_draw_uses_the_clients_renderers() -> None:
    said = ToolResponse(response_type="inbox", agent_name="GMail", friendly_name="Inbox", response=[1, 2])
    assert draw(said, {"inbox": lambda one: Drawn(one.friendly_name, (), "2 mails")}) == ("Inbox", (), "2 mails")
    hidden = said.model_copy(update={"display_response": False})
    assert draw(hidden, {"inbox": lambda one: Drawn("never")}) is None


def test_draw_returns_none_for_hidden_output() -> None:
    said = ToolResponse(response_type="x", agent_name="a", friendly_name="f", response=[1], display_response=False)
    assert draw(read_output(said.to_json())) is None
    assert draw(read_output({"anything": 1, "display_response": False})) is None


@pytest.mark.parametrize("output", [None, [], [1, {"a": 2}], 3, "words", "null", '{"a": 1', "{}", {"error": "broken"}])
def test_draw_accepts_any_output(output: Any) -> None:
    said = read_event({"type": "tool_output", "output": output, "current_agent": "Yelp"})
    assert said is not None
    assert said.agent_name == "Yelp"
    assert draw(said) is not None


def test_draw_shows_an_error_without_an_envelope() -> None:
    assert draw(read_output({"status": "error", "message": "No such mail."})) == (
        "Something went wrong",
        (),
        "No such mail.",
    )


def test_read_event_returns_none_for_other_messages() -> None:
    assert read_event({"type": "llm_response", "response": "hi"}) is None
    assert read_event("hi") is None
