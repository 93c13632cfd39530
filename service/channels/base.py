"""What a channel is: it renders the card of an item, sends it, and updates it when the item changes.

A channel is one folder with the same files: `card.py` renders, `outbound.py` sends, and `inbound.py` takes decisions
where the channel allows them. `service/channels/table.py` has one row for each kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, runtime_checkable

from service.channels.cards import Card


class CardAction(StrEnum):
    """A control on a card. Every card has `open`, the link to the item's page; `ask` asks the requester."""

    OPEN = "open"
    APPROVE = "approve"
    EDIT = "edit"
    DENY = "deny"
    VALUE = "value"
    ASK = "ask"


class Recipient(NamedTuple):
    """A person and their address on the channel; the channel's own destination has no person."""

    person: str
    address: str


@dataclass(frozen=True)
class Rendered:
    """A card in the channel's own format.

    `complete` says whether it shows every byte of what will run; only then may `actions` include `approve`.
    `text` is the card as a reader sees it, for previews and tests.
    """

    body: Any
    text: str
    complete: bool
    actions: frozenset[CardAction]


class DeliveryFailed(Exception):
    """The provider did not accept a card. `reason` may be shown to anybody, so it names no secret.

    `retry_after_s` is the wait that the provider requests. A `permanent` failure is not retried: the address is gone,
    or the channel is misconfigured.
    """

    def __init__(self, reason: str, *, retry_after_s: float = 0.0, permanent: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason[:500]
        self.retry_after_s = retry_after_s
        self.permanent = permanent


class Channel(Protocol):
    """One configured channel. Its methods are called by workers, concurrently and at least once."""

    name: str
    """The name in the channels file, which rules list under `channels`."""

    kind: str
    """The row in the table of channels."""

    per_minute: int
    """The most messages a minute to the destination."""

    @property
    def destination(self) -> str:
        """The provider's host: its failures open one circuit breaker, and its messages share one limit."""

    @property
    def shared_address(self) -> str:
        """The address of the channel's own destination, such as a room; empty without one."""

    def render(self, card: Card) -> Rendered:
        """Return the card in the channel's format: a pure function."""

    async def send(self, to: Recipient, card: Card, event_id: str) -> str:
        """Send a card and return the provider's id of it, or an empty text. The same `event_id` is the same message.

        Raises `DeliveryFailed`.
        """

    async def update(self, to: Recipient, reference: str, card: Card) -> None:
        """Replace the card, or send what has changed where messages cannot be replaced. Raises `DeliveryFailed`."""

    async def remind(self, to: Recipient, reference: str, card: Card, event_id: str) -> None:
        """Remind the recipient of an open item. Raises `DeliveryFailed`."""

    async def aclose(self) -> None:
        """Close the connections."""


@runtime_checkable
class SendsDigests(Protocol):
    """A channel that can send many cards as one message, each with a link and without buttons."""

    async def send_digest(self, to: Recipient, cards: Sequence[Card], event_id: str) -> None:
        """Send one message about open items. The same `event_id` is the same message. Raises `DeliveryFailed`."""


@runtime_checkable
class SharedOnly(Protocol):
    """A channel with one destination for everybody: one card, however many reviewers a rule names."""

    shared_only: bool


@runtime_checkable
class ManyDestinations(Protocol):
    """A channel whose addresses belong to different hosts, each of which fails for itself."""

    def destination_of(self, address: str) -> str:
        """Return the host of one address."""


def destination_of(channel: Channel, to: Recipient) -> str:
    """Return the host whose circuit breaker and limits count for a message."""
    if isinstance(channel, ManyDestinations):
        return channel.destination_of(to.address)
    return channel.destination


def allowed_actions(card: Card, *, complete: bool, decides: frozenset[CardAction]) -> frozenset[CardAction]:
    """Return the actions of a card: those that the item and the channel allow, without approval if it is incomplete.

    An open item takes questions. A closed item leaves only the link.
    """
    if not card.live:
        return frozenset({CardAction.OPEN})
    wanted = {CardAction.ASK, *(CardAction(answer) for answer in card.answers)} & decides
    if not complete:
        wanted -= {CardAction.APPROVE, CardAction.EDIT, CardAction.VALUE}
    return frozenset({CardAction.OPEN, *wanted})
