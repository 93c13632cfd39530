"""Modals of Slack, made from the fields of the item's page, and the Home tab with items to decide."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import iso_utc
from sayso.core.records.decisions import Actor, DecisionRequest
from sayso.core.records.items import Answer, Item
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.sentences.items import describe_ineligibility, describe_wanted
from sayso.core.text.invisible import write_signs
from sayso.errors import InvalidInput, SaysoError, TooLarge
from service.channels.base import CardAction
from service.channels.cards import Card, item_link
from service.channels.slack import blocks as kit
from service.channels.slack import limits
from service.channels.slack.blocks import Block
from service.core.operations.masking import mask_item
from service.forms.answers import RETURNS, Forms, mark_problems, read_answer, refill
from service.forms.controls import Field

CALLBACK = "sayso:"
MESSAGE = "message"
MESSAGE_CHARS = 2000
_INPUT = "input"

FORMS = {
    CardAction.EDIT: ("Edit and approve", "Approve edited"),
    CardAction.DENY: ("Deny", "Deny"),
    CardAction.CHANGES: ("Request changes", "Request changes"),
    CardAction.VALUE: ("Enter a value", "Send value"),
    CardAction.ASK: ("Ask the requester", "Send question"),
}
"""The actions that open a modal, with the titles of the modal and of its button."""

_KEEP = ("Keep it", "Keep it")  # the same of a denial of an offer to undo a call

_LABELS = {
    CardAction.DENY: "Reason; the agent sees it",
    CardAction.CHANGES: "What to change; the agent sees it",
    CardAction.ASK: "Question to the requester",
}
_REQUIRED = frozenset({CardAction.CHANGES, CardAction.ASK})


class Origin(NamedTuple):
    """What a modal was opened for: the item, its digest, and the message with the card, if any."""

    suspension_id: str
    item_id: str
    digest: str
    channel: str = ""
    ts: str = ""


def build_modal(action: CardAction, card: Card, forms: Forms, origin: Origin) -> Block:
    """Return the modal for an action; raises `TooLarge` where a field exceeds what a modal holds."""
    keeps = bool(card.reverses) and action is CardAction.DENY
    fields, (title, submit) = _fields_of(action, forms), _KEEP if keeps else FORMS[action]
    texts = [kit.context(card.headline)]
    texts += [kit.context(f"{fact.label}: {fact.text}") for fact in card.facts if fact.label == "Question"]
    label = "Reason" if keeps else _LABELS.get(action, "Note; the agent sees it")
    element = {"type": "plain_text_input", "action_id": _INPUT, "multiline": True, "max_length": MESSAGE_CHARS}
    inputs = [
        *(_write_field(field) for field in fields),
        _input(MESSAGE, label, "", element, optional=action not in _REQUIRED),
    ]
    view = {
        "type": "modal",
        "callback_id": f"{CALLBACK}{action}",
        "title": kit.plain(title, limits.MODAL_TITLE_CHARS),
        "submit": kit.plain(submit, limits.MODAL_TITLE_CHARS),
        "close": kit.plain("Cancel", limits.MODAL_TITLE_CHARS),
        "private_metadata": json.dumps(list(origin), separators=(",", ":")),
        "blocks": [*texts, *inputs],
    }
    if len(view["blocks"]) > limits.MODAL_BLOCKS or len(str(view["private_metadata"])) > limits.METADATA_CHARS:
        raise TooLarge("This form is too large for Slack. Open the item's page to decide.")
    return view


def result_modal(text: str) -> Block:
    """Return a modal that only shows a sentence."""
    line = {"type": "rich_text_section", "elements": [kit.literal(limits.cut(text, limits.SECTION_CHARS) or "Done.")]}
    return {
        "type": "modal",
        "callback_id": f"{CALLBACK}result",
        "title": kit.plain("Sayso", limits.MODAL_TITLE_CHARS),
        "close": kit.plain("Close", limits.MODAL_TITLE_CHARS),
        "blocks": [{"type": "rich_text", "elements": [line]}],
    }


def read_origin(metadata: str) -> Origin:
    """Return what a submitted modal was opened for; raises `InvalidInput`."""
    return Origin(*_read_texts(metadata, len(Origin._fields)))


def read_reference(value: str) -> Origin:
    """Return the item that a button names; raises `InvalidInput`."""
    return Origin(*_read_texts(value, 3))


def read_submission(action: CardAction, forms: Forms, origin: Origin, values: Any, limit_bytes: int) -> DecisionRequest:
    """Return the decision of a submitted modal; raises `InvalidInput` with the problem of each field."""
    return read_answer(forms, _read_post(action, forms, origin, values), limit_bytes)


def read_question(values: Any) -> str:
    """Return the question of a submitted modal."""
    return _read_typed(values, MESSAGE)


def list_problems(
    action: CardAction, forms: Forms, origin: Origin, values: Any, error: SaysoError, target: str | None
) -> Mapping[str, str]:
    """Return the problem of each field of a submitted modal, by block; empty if none belongs to a field."""
    marked = mark_problems(refill(forms, _read_post(action, forms, origin, values)), error, target)
    faulty = [field for field in _fields_of(action, marked) if field.problem]
    return {field.key: limits.cut(field.problem, limits.SECTION_CHARS) for field in faulty}


def _fields_of(action: CardAction, forms: Forms) -> Sequence[Field]:
    return {CardAction.EDIT: forms.args, CardAction.VALUE: forms.value}.get(action, ())


def _write_field(field: Field) -> Block:
    whole = "Value" if field.requested else "Arguments as JSON"
    label = write_signs(field.shape.title or (whole if field.name is None else field.shown_name))
    if limits.count_chars(label) > limits.LABEL_CHARS:
        raise TooLarge("The name of an argument is too long for a form in Slack. Open the item's page to edit.")
    optional = not field.required or (field.shape.kind == "text" and not field.requested)
    element = _write_choice(field) if _is_choice(field) else _write_text(field)
    return _input(field.key, label, write_signs(field.shape.description), element, optional=optional)


def _is_choice(field: Field) -> bool:
    shown = [label for _, label in field.options]
    fits = 0 < len(shown) <= limits.OPTIONS and all(limits.count_chars(label) <= limits.OPTION_CHARS for label in shown)
    return field.control == "choice" and fits


def _write_choice(field: Field) -> Block:
    options = [
        {"text": kit.plain(write_signs(label) or '""', limits.OPTION_CHARS), "value": f"o{place}"}
        for place, (_, label) in enumerate(field.options)
    ]
    chosen = next((place for place, (value, _) in enumerate(field.options) if value == field.text), None)
    initial = {"initial_option": options[chosen]} if chosen is not None else {}
    return {"type": "static_select", "action_id": _INPUT, "options": options, **initial}


def _write_text(field: Field) -> Block:
    if limits.count_chars(field.text) > limits.INPUT_CHARS:
        raise TooLarge("A value is too long for a form in Slack. Open the item's page to edit.")
    element = {"type": "plain_text_input", "action_id": _INPUT, "max_length": limits.INPUT_CHARS}
    multiline = {"multiline": True} if field.control in ("lines", "json", "text") else {}
    return {**element, **multiline, **({"initial_value": field.text} if field.text else {})}


def _input(key: str, label: str, hint: str, element: Block, *, optional: bool) -> Block:
    block = {"type": "input", "block_id": key, "label": kit.plain(label, limits.LABEL_CHARS), "element": element}
    return {**block, "optional": optional, **({"hint": kit.plain(hint, limits.LABEL_CHARS)} if hint else {})}


def _read_post(action: CardAction, forms: Forms, origin: Origin, values: Any) -> dict[str, str]:
    typed = dict(_read_values(_fields_of(action, forms), values))
    changes = action is CardAction.CHANGES
    answer = Answer.DENY if changes else Answer(action)
    post = {"answer": answer, "digest": origin.digest, MESSAGE: _read_typed(values, MESSAGE), **typed}
    return post | ({RETURNS: "yes"} if changes else {})


def _read_values(fields: Sequence[Field], values: Any) -> Iterator[tuple[str, str]]:
    for field in fields:
        text = _read_typed(values, field.key)
        if _is_choice(field) and text:
            place = int(text[1:]) if text[1:].isascii() and text[1:].isdigit() else -1
            text = field.options[place][0] if 0 <= place < len(field.options) else ""
        yield field.key, text


def _read_typed(values: Any, key: str) -> str:
    control = (values.get(key) or {}).get(_INPUT) if isinstance(values, dict) else None
    if not isinstance(control, dict):
        return ""
    chosen = control.get("selected_option")
    text = chosen.get("value") if isinstance(chosen, dict) else control.get("value")
    return text if isinstance(text, str) else ""


def _read_texts(text: str, most: int) -> list[str]:
    try:
        texts: JsonValue | JsonObject = json.loads(text)
    except (ValueError, RecursionError):
        texts = None
    if not isinstance(texts, list) or not 3 <= len(texts) <= most or not all(isinstance(part, str) for part in texts):
        raise InvalidInput("This control was not made by Sayso. Open the item's page to decide.")
    return [str(part) for part in texts]


MOST_ITEMS = 30  # each takes two of the 100 blocks of a view
Pending = tuple[SuspensionRecord, Item]


def list_pending(records: Sequence[SuspensionRecord], by: Actor) -> list[Pending]:
    """Return the open items that a person may decide."""
    return [
        (record, item)
        for record in records
        if record.status is Status.PENDING
        for item in record.items
        if item.open and not describe_ineligibility(record, item, by)
    ]


def build_home(person: str, pending: Sequence[Pending], public_url: str) -> Block:
    """Return the view of a linked person. Arguments are on the item's page only."""
    blocks = [kit.header(f"Open items of {person}")]
    for record, item in pending[:MOST_ITEMS]:
        need = write_signs(", ".join(filter(None, (item.tool.name, describe_wanted(mask_item(item))))))
        until = f"{write_signs(record.run.agent)}, until {iso_utc(item.terms.deadline_at_ms)}"
        button = kit.button("Open", "open", "", url=item_link(public_url, record.id, item.item_id))
        lines = [kit.labelled(limits.cut(need, limits.PLAIN_CHARS), limits.cut(until, limits.PLAIN_CHARS))]
        blocks += [{"type": "rich_text", "elements": lines}, {"type": "actions", "elements": [button]}]
    if not pending:
        blocks.append(kit.context("Nothing waits for you."))
    if len(pending) > MOST_ITEMS:
        blocks.append(kit.context(f"{len(pending) - MOST_ITEMS} more are in the inbox: {public_url}/"))
    return {"type": "home", "callback_id": "sayso:home", "blocks": blocks}


def notice_home(text: str) -> Block:
    """Return the view of somebody who cannot decide here."""
    return {"type": "home", "callback_id": "sayso:home", "blocks": [kit.header("Sayso"), kit.context(text)]}
