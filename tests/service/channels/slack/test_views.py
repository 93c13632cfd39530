"""Modals in Slack: the item's fields as inputs, and the decision that they send."""

from typing import Any

import pytest

from sayso.core.canonical_json import JsonObject
from sayso.core.records.envelopes import ChangeRequest
from sayso.core.records.items import Answer, Item, ItemKind
from sayso.core.records.tools import ToolDefinition
from sayso.core.transitions.deciding import find_item
from sayso.errors import InvalidInput, TooLarge
from service.channels.base import CardAction
from service.channels.slack import views
from service.channels.slack.blocks import read_text
from service.channels.slack.views import Origin, build_modal, list_problems, read_origin, read_submission
from service.forms.answers import Forms, make_forms
from tests.fakes.slack_blocks import find_view_faults
from tests.sayso.samples import ask
from tests.service.channels.conformance import card_of, record_of

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "order": {"type": "string", "title": "Order number", "description": "As on the invoice."},
        "amount": {"type": "number"},
        "express": {"type": "boolean"},
        "speed": {"enum": ["slow", "fast", None, ""]},
        "note": {"type": "string"},
        "items": {"type": "array"},
    },
    "required": ["order", "amount", "express", "speed"],
}
ARGS: JsonObject = {"order": "A-1", "amount": 250.5, "express": True, "speed": "fast", "items": [{"a": 1}]}
TOOL = ToolDefinition(name="refund", description="", parameters=SCHEMA)
LIMIT = 262_144


def item_of(args: JsonObject, **fields: Any) -> Item:
    return find_item(record_of(args, **fields), "i1")


def open_modal(action: CardAction, args: JsonObject = ARGS, **fields: Any) -> tuple[dict[str, Any], Forms, Origin]:
    record = record_of(args, **fields)
    item = find_item(record, "i1")
    forms = make_forms(item, TOOL)
    origin = Origin(record.id, "i1", item.digest, "C1", "1.2")
    view = build_modal(action, card_of(record), forms, origin)
    assert find_view_faults(view) == []
    assert read_origin(view["private_metadata"]) == origin
    return view, forms, origin


def untouched(view: dict[str, Any], **typed: Any) -> dict[str, Any]:
    """Return what Slack sends for a modal in which only `typed` was changed, by label."""
    values: dict[str, Any] = {}
    for block in view["blocks"]:
        if block["type"] == "input":
            element = block["element"]
            label = block["label"]["text"]
            if element["type"] == "static_select":
                chosen = element.get("initial_option")
                if label in typed:
                    chosen = next(one for one in element["options"] if one["text"]["text"] == typed[label])
                values[block["block_id"]] = {element["action_id"]: {"type": "static_select", "selected_option": chosen}}
            else:
                text = typed.get(label, element.get("initial_value"))
                values[block["block_id"]] = {element["action_id"]: {"type": "plain_text_input", "value": text}}
    return values


def test_untouched_edit_returns_the_same_arguments() -> None:
    view, forms, origin = open_modal(CardAction.EDIT)
    sent = read_submission(CardAction.EDIT, forms, origin, untouched(view), LIMIT)
    assert (sent.action, sent.args, sent.digest) == ("approve", ARGS, origin.digest)


def test_edited_fields_keep_their_types() -> None:
    view, forms, origin = open_modal(CardAction.EDIT)
    typed = {"Order number": "B-2", "amount": "9", "express": "false", "speed": "null", "note": "hi"}
    values = untouched(view, **typed, **{"Note; the agent sees it": "Less."})
    sent = read_submission(CardAction.EDIT, forms, origin, values, LIMIT)
    expected = {**ARGS, "order": "B-2", "amount": 9, "express": False, "speed": None, "note": "hi"}
    assert (sent.args, sent.message) == (expected, "Less.")


def test_invalid_field_is_named_by_its_block() -> None:
    view, forms, origin = open_modal(CardAction.EDIT)
    values = untouched(view, amount="nine", items="[")
    with pytest.raises(InvalidInput) as refused:
        read_submission(CardAction.EDIT, forms, origin, values, LIMIT)
    problems = list_problems(CardAction.EDIT, forms, origin, values, refused.value, None)
    labels = {one["block_id"]: one["label"]["text"] for one in view["blocks"] if one["type"] == "input"}
    assert {labels[key] for key in problems} == {"amount", "items"}
    assert "Enter a number" in next(text for key, text in problems.items() if labels[key] == "amount")


def test_desk_problem_is_shown_beside_its_field() -> None:
    view, forms, origin = open_modal(CardAction.EDIT)
    error = InvalidInput("No.", problems=["args.amount: 5000 is greater than 1000"])
    problems = list_problems(CardAction.EDIT, forms, origin, untouched(view), error, None)
    assert list(problems.values()) == ["5000 is greater than 1000"]


def test_denial_sends_its_reason() -> None:
    view, forms, origin = open_modal(CardAction.DENY)
    assert [one["block_id"] for one in view["blocks"] if one["type"] == "input"] == ["message"]
    values = untouched(view, **{"Reason; the agent sees it": "Too much.\r\nSorry."})
    sent = read_submission(CardAction.DENY, forms, origin, values, LIMIT)
    assert (sent.action, sent.message) == ("deny", "Too much.\nSorry.")


def test_requested_changes_are_a_denial_with_a_text() -> None:
    view, forms, origin = open_modal(CardAction.CHANGES)
    (block,) = [one for one in view["blocks"] if one["type"] == "input"]
    assert (view["submit"]["text"], block["block_id"], block["optional"]) == ("Request changes", "message", False)
    values = untouched(view, **{"What to change; the agent sees it": "100 is enough."})
    sent = read_submission(CardAction.CHANGES, forms, origin, values, LIMIT)
    assert (sent.action, sent.message, sent.changes) == ("deny", "100 is enough.", ChangeRequest())
    with pytest.raises(InvalidInput, match="Write what to change"):
        read_submission(CardAction.CHANGES, forms, origin, untouched(view), LIMIT)


@pytest.mark.parametrize(
    ("fields", "typed", "value"),
    [
        ({"choices": ("slow", "fast", 3)}, {"Value": "3"}, 3),
        ({"response_schema": {"type": "number"}}, {"Value": "4.5"}, 4.5),
        ({"response_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}, {"a": "4"}, {"a": 4}),
        ({"target_arg": "order", "response_schema": None}, {"Order number": "Z"}, "Z"),
        ({"choices": ("y" * 90, "n")}, {"Value": '"n"'}, "n"),
    ],
)
def test_value_is_read_by_its_schema(fields: dict[str, Any], typed: dict[str, str], value: Any) -> None:
    given = ask(kind=ItemKind.INPUT)
    base = {"kind": given.kind, "allowed": (Answer.VALUE, Answer.DENY), "target_arg": None}
    view, forms, origin = open_modal(CardAction.VALUE, **{**base, **fields})
    sent = read_submission(CardAction.VALUE, forms, origin, untouched(view, **typed), LIMIT)
    assert (sent.action, sent.value) == ("value", value)


@pytest.mark.parametrize("args", [{"order": "x" * 3001}, {f"a{n}": "\n" * 80 for n in range(41)}])
def test_form_that_a_modal_cannot_hold_is_refused(args: JsonObject) -> None:
    with pytest.raises(TooLarge, match="Open the item's page"):
        open_modal(CardAction.EDIT, args)


def test_forty_fields_fit_into_a_modal() -> None:
    view, *_ = open_modal(CardAction.EDIT, {f"a{n}": n for n in range(34)})
    assert len(view["blocks"]) > 40


@pytest.mark.parametrize(
    "metadata", ["", "{}", "[1,2,3]", '["a","b"]', '["a","b","c","d","e","f"]', "[" * 9_000, "null"]
)
def test_foreign_metadata_is_refused(metadata: str) -> None:
    with pytest.raises(InvalidInput, match="not made by Sayso"):
        read_origin(metadata)


@pytest.mark.parametrize("values", [None, [], {"f0": None}, {"f0": {"input": "x"}}, {"f0": {"input": {"value": 3}}}])
def test_odd_values_count_as_empty(values: Any) -> None:
    _, forms, origin = open_modal(CardAction.EDIT)
    with pytest.raises(InvalidInput):
        read_submission(CardAction.EDIT, forms, origin, values, LIMIT)


def test_result_shows_a_sentence_of_any_length() -> None:
    for text in ("ada was first.", "", "x" * 9_000):
        view = views.result_modal(text)
        assert find_view_faults(view) == []
        assert text[:2_000] in read_text(view["blocks"])
