"""Test cards: an operator sends one to a person to check a channel. They ask nobody and decide nothing."""

import asyncio
from dataclasses import dataclass

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import iso_utc, new_id
from sayso.errors import InvalidInput, NotFound
from service.channels.base import Channel, DeliveryFailed, Recipient
from service.channels.cards import Card, Line
from service.channels.table import Channels
from service.store.attempts import Allowance
from service.wiring import Wiring

ATTEMPT_S = 15.0
_CLOSING = "This is a test card. Nobody needs to decide anything, and nothing runs."


@dataclass(frozen=True)
class Answer:
    """The provider's answer at one address: its id of the message, or the reason of the failure."""

    accepted: bool
    text: str


def build_test_card(channel: str, person: str, by: str, at_ms: int, public_url: str) -> Card:
    """Return a card that is marked as a test and has no control but the link."""
    facts = (Line("Test for", person or channel), Line("Sent by", by), Line("Sent at", iso_utc(at_ms)))
    return build_plain_card("test", f"Test card of {channel}", facts, _CLOSING, f"{public_url}/me", {"test": True})


def build_plain_card(
    kind: str, headline: str, facts: tuple[Line, ...], closing: str, link: str, args: JsonObject | None = None
) -> Card:
    """Return a card that is about no item: it decides nothing and has no control but the link."""
    return Card(
        suspension_id=f"sus_{kind}",
        item_id=kind,
        digest="",
        version=kind,
        headline=headline,
        tool=kind,
        agent="Sayso",
        facts=facts,
        claims=(),
        warnings=(),
        args=args or {},
        masked=False,
        answers=(),
        choices=None,
        response_schema=None,
        target_arg=None,
        decisions=(),
        live=False,
        closing=closing,
        ended=closing,
        link=link,
        urgent=False,
    )


async def send_test_card(parts: Wiring, channels: Channels, name: str, person: str, by: str) -> tuple[Answer, ...]:
    """Send a test card to every address of a person, or to the channel's own destination for an empty name.

    Raises `NotFound` for an unknown channel, `InvalidInput` without an address, and `TooManyRequests` over the
    channel's limit.
    """
    channel = channels.find(name)
    if channel is None:
        known = ", ".join(sorted(channels.by_name)) or "none"
        raise NotFound(f"There is no channel {name!r}. Configured channels: {known}.")
    places = await _find_places(parts, channel, person)
    at_ms = await parts.schedule.now_ms()
    card = build_test_card(name, person, by, at_ms, parts.settings.public_url)
    return tuple([await send_card(parts, channel, to, card, new_id("test")) for to in places])


async def _find_places(parts: Wiring, channel: Channel, person: str) -> list[Recipient]:
    if not person:
        if not channel.shared_address:
            raise InvalidInput(f"{channel.name} has no destination of its own. Name a person.")
        return [Recipient("", channel.shared_address)]
    addresses = await parts.contacts.addresses_of(person, channel.name)
    if not addresses:
        raise InvalidInput(
            f"{person} has no address on {channel.name}, or is deactivated. They link one on their account page."
        )
    return [Recipient(person, address) for address in addresses]


async def send_card(parts: Wiring, channel: Channel, to: Recipient, card: Card, message_id: str) -> Answer:
    """Send a card that is about no item; return the provider's answer. Raises `TooManyRequests` over the limit."""
    await parts.attempts.count(Allowance("channel", channel.per_minute, 60), channel.destination)
    try:
        async with asyncio.timeout(ATTEMPT_S):
            reference = await channel.send(to, card, message_id)
    except TimeoutError:
        return Answer(False, f"{channel.destination} did not respond within {ATTEMPT_S:g} s.")
    except DeliveryFailed as failure:
        return Answer(False, failure.reason)
    return Answer(True, reference)
