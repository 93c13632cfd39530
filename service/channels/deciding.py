"""Decisions and questions of people on cards: one way for every channel, through the desk."""

import asyncio
from typing import NamedTuple

from pydantic import JsonValue

from sayso.core.canonical_json import canonical_json, parse_json
from sayso.core.clock import iso_utc
from sayso.core.records.decisions import Actor, DecisionRequest
from sayso.core.records.envelopes import ChangeRequest
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.records.undoing import is_offer
from sayso.core.sentences.deliveries import (
    ASKED,
    LINKED,
    LONGEST_REASON,
    UNDONE,
    WRITE_CHANGES,
    describe_long_reason,
)
from sayso.core.sentences.items import describe_quorum
from sayso.core.sentences.stages import describe_stages
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.deliveries import is_live
from sayso.errors import InvalidInput, InvalidJson, NotAllowed
from service.channels.base import CardAction, Channel
from service.channels.cards import Card, build_card, describe_closing
from service.core.store.precedents import Precedents
from service.core.wiring import Wiring


async def find_actor(parts: Wiring, channel: Channel, address: str) -> Actor | None:
    """Return the active reviewer who linked this address of the channel, with their groups; or None."""
    person = await parts.contacts.find_person(channel.name, address)
    if person is None:
        return None
    made = await parts.contacts.find_made(channel.name, address)
    return await parts.reviewers.find_actor(person, channel.name, made)


async def link_address(parts: Wiring, channel: Channel, code: str, address: str, label: str) -> str:
    """Link an address to the creator of the code, and return the sentence for them; repeatable."""
    try:
        await parts.contacts.redeem_code(channel.name, code, address, label)
    except InvalidInput:
        if await parts.contacts.find_person(channel.name, address) is None:
            raise
    return LINKED.format(await parts.contacts.find_person(channel.name, address))


def read_value(typed: str, item: Item, definition: ToolDefinition | None) -> JsonValue:
    """Return the value that a person typed: one of the choices, the text where a text is wanted, or JSON."""
    typed = typed.strip()
    for choice in item.choices or ():
        if typed == choice or typed == canonical_json(choice).decode():
            return choice
    schema: JsonValue = item.response_schema
    if schema is None and definition is not None:
        properties = definition.parameters.get("properties")
        schema = properties.get(item.target_arg or "") if isinstance(properties, dict) else None
    if not isinstance(schema, dict):
        return typed
    kind, listed = schema.get("type"), schema.get("enum")
    wants_text = kind == "string" or (isinstance(kind, list) and "string" in kind)
    if wants_text or (isinstance(listed, list) and typed in listed):
        return typed
    try:
        return parse_json(typed)
    except InvalidJson:
        return typed


def read_denial(typed: str, digest: str, *, changes: bool) -> DecisionRequest:
    """Return a denial with this reason, or one that requests these changes; raises `InvalidInput`."""
    typed = typed.strip()
    if len(typed) > LONGEST_REASON:
        raise InvalidInput(describe_long_reason(typed))
    if changes and not typed:
        raise InvalidInput(WRITE_CHANGES)
    requested = ChangeRequest() if changes else None
    return DecisionRequest(action="deny", digest=digest, message=typed or None, changes=requested)


class CardRef(NamedTuple):
    """What a control of a card names: the item, and the digest that the card showed."""

    suspension_id: str
    item_id: str


class Decided(NamedTuple):
    """The item after a decision, and the sentence for the person who made it."""

    record: SuspensionRecord
    item: Item
    sentence: str


async def read_card(parts: Wiring, record: SuspensionRecord, item: Item) -> Card:
    """Return the card of an item, with its tool's definition and the last denial of the same call."""
    definition = await parts.runs.definition(item.tool.definition)
    denied = await parts.part(Precedents).find_denial(record, item)
    return await asyncio.to_thread(build_card, record, item, definition, parts.settings.public_url, denied)


async def decide_on_card(
    parts: Wiring, channel: Channel, card: CardRef, request: DecisionRequest, by: Actor, key: str
) -> Decided:
    """Record a channel's decision, once for a `key`; raises `NotAllowed` for what the card does not offer."""
    record = (await parts.desk.suspensions.read(card.suspension_id)).record
    item = find_item(record, card.item_id)
    if is_live(record, item) and item.undoable is None:  # the desk knows the same decision again
        await _check_offered(parts, channel, record, item, _find_action(request))
    saved = await parts.desk.decide(
        card.suspension_id, card.item_id, request, by, key=f"{channel.name}:{key}", asker=channel.name
    )
    item = find_item(saved.record, card.item_id)
    return Decided(saved.record, item, describe_result(saved.record, item))


def _find_action(request: DecisionRequest) -> CardAction:
    if request.changes is not None:
        return CardAction.CHANGES
    return CardAction.EDIT if request.args is not None else CardAction(request.action)


async def undo_on_card(parts: Wiring, card: CardRef, by: Actor) -> str:
    """Take back a decision before it takes effect, for its author; repeatable."""
    await parts.desk.retract(card.suspension_id, card.item_id, by)
    return UNDONE


async def ask_on_card(parts: Wiring, channel: Channel, card: CardRef, text: str, by: Actor, key: str) -> str:
    """Put a reviewer's question to the requester, once for a `key`; raises `NotAllowed` where the card takes none."""
    record = (await parts.desk.suspensions.read(card.suspension_id)).record
    item = find_item(record, card.item_id)
    if is_live(record, item):
        await _check_offered(parts, channel, record, item, CardAction.ASK)
    await parts.desk.ask_requester(card.suspension_id, card.item_id, text, by, key=f"{channel.name}:{key}")
    return ASKED.format(record.run.owner)


def describe_result(record: SuspensionRecord, item: Item) -> str:
    """Return what a decision has led to: the outcome, or what the quorum still needs."""
    if not item.open:
        return describe_closing(record, item)
    if item.undoable is not None:
        way = "you can take it back" if is_offer(item) else "Undo takes it back"
        return f"Your decision takes effect at {iso_utc(item.undoable.until_ms)}. Until then, {way}."
    return f"Your decision is recorded. {describe_quorum(item) or describe_stages(item)}."


async def _check_offered(
    parts: Wiring, channel: Channel, record: SuspensionRecord, item: Item, action: CardAction
) -> None:
    rendered = await asyncio.to_thread(channel.render, await read_card(parts, record, item))
    if action not in rendered.actions:
        raise NotAllowed(
            f"{channel.name} does not offer '{action}' for this item, because its card does not show everything that "
            "would run or the item does not allow it. Open the item's page to decide."
        )
