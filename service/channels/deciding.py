"""Decisions and questions of people on cards: one way for every channel, through the desk."""

import asyncio
from typing import NamedTuple

from sayso.core.records.decisions import Actor, DecisionRequest
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.sentences.deliveries import ASKED
from sayso.core.sentences.items import describe_quorum
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.deliveries import is_live
from sayso.errors import NotAllowed
from service.channels.base import CardAction, Channel
from service.channels.cards import Card, build_card, describe_closing
from service.store.runs.precedents import Precedents
from service.wiring import Wiring


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
    """Return the card of an item, with its tool's definition and the last denial of the same call.

    Threads build and render cards: long arguments take up to a second.
    """
    definition = await parts.runs.definition(item.tool.definition)
    denied = await parts.part(Precedents).find_denial(record, item)
    return await asyncio.to_thread(build_card, record, item, definition, parts.settings.public_url, denied)


async def decide_on_card(
    parts: Wiring, channel: Channel, card: CardRef, request: DecisionRequest, by: Actor, key: str
) -> Decided:
    """Record a decision made on a channel. `key` is the provider's id of the message, so a repetition changes nothing.

    Raises `NotAllowed` for an action that the item's card does not offer here, and what `Desk.decide` raises.
    """
    record = (await parts.desk.suspensions.read(card.suspension_id)).record
    item = find_item(record, card.item_id)
    if is_live(record, item):
        await _check_offered(parts, channel, record, item, _action_of(request))
    saved = await parts.desk.decide(
        card.suspension_id, card.item_id, request, by, key=f"{channel.name}:{key}", asker=channel.name
    )
    item = find_item(saved.record, card.item_id)
    return Decided(saved.record, item, describe_result(saved.record, item))


async def ask_on_card(parts: Wiring, channel: Channel, card: CardRef, text: str, by: Actor, key: str) -> str:
    """Put a reviewer's question to the requester, and return the sentence for the reviewer. A repeated `key` asks once.

    Raises `NotAllowed` where the channel takes no questions, and what `Desk.ask_requester` raises.
    """
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
    return f"Your decision is recorded. {describe_quorum(item)}."


async def _check_offered(
    parts: Wiring, channel: Channel, record: SuspensionRecord, item: Item, action: CardAction
) -> None:
    rendered = await asyncio.to_thread(channel.render, await read_card(parts, record, item))
    if action not in rendered.actions:
        raise NotAllowed(
            f"{channel.name} does not offer '{action}' for this item, because its card does not show everything that "
            "would run or the item does not allow it. Open the item's page to decide."
        )


def _action_of(request: DecisionRequest) -> CardAction:
    return CardAction.EDIT if request.args is not None else CardAction(request.action)
