"""What a channel is: it renders the card of an item, sends it, and updates it when the item changes.

In each folder `card.py` renders, `outbound.py` sends, and `inbound.py` takes decisions where the channel allows them.
Failures of requests to a provider name neither addresses nor secrets.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from enum import StrEnum
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import httpx
import structlog

from sayso.errors import SaysoError
from service.channels.cards import Card
from service.channels.config import ChannelConfig


class CardAction(StrEnum):
    """A control on a card. Every card has `open`, the link to the item's page; `ask` asks the requester.

    `changes` denies and requests changes. `undo` takes a decision back before it takes effect, and is all that a card
    then has beside `open`.
    """

    OPEN = "open"
    APPROVE = "approve"
    EDIT = "edit"
    DENY = "deny"
    CHANGES = "changes"
    VALUE = "value"
    ASK = "ask"
    UNDO = "undo"


class Recipient(NamedTuple):
    """A person and their address on the channel; the channel's own destination has no person."""

    person: str
    address: str


class Rendered(NamedTuple):
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
        """Send a card, once for an `event_id`; return the provider's id or an empty text. Raises `DeliveryFailed`."""

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
    """Return the actions of a card: those that the item and the channel allow, without approval if it is incomplete."""
    if not card.live:
        return frozenset({CardAction.OPEN})
    if card.undoable:
        return frozenset({CardAction.OPEN, *({CardAction.UNDO} & decides)})
    wanted = {CardAction(answer) for answer in card.answers}
    if card.takes_questions:
        wanted.add(CardAction.ASK)
    if card.takes_changes and CardAction.DENY in wanted:
        wanted.add(CardAction.CHANGES)
    if not complete:
        wanted -= {CardAction.APPROVE, CardAction.EDIT, CardAction.VALUE}
    return frozenset({CardAction.OPEN, *(wanted & decides)})


_NAMES = {
    CardAction.OPEN: "Open",
    CardAction.APPROVE: "Approve",
    CardAction.EDIT: "Edit…",
    CardAction.DENY: "Deny…",
    CardAction.CHANGES: "Request changes…",
    CardAction.VALUE: "Enter value…",
    CardAction.ASK: "Ask…",
    CardAction.UNDO: "Undo",
}
_NAMES_OF_OFFERS = {CardAction.APPROVE: "Undo", CardAction.DENY: "Keep…", CardAction.UNDO: "Take it back"}


def name_action(card: Card, action: CardAction) -> str:
    """Return the name of a control. One that first opens a form or asks for a text ends in `…`."""
    return _NAMES_OF_OFFERS.get(action, _NAMES[action]) if card.reverses else _NAMES[action]


GRACE_S = 10
AT_ONCE = 32  # how many decisions of a channel are carried out at once, so that a burst of them delays no answer
_LOG = structlog.get_logger(__name__)

Result = TypeVar("Result")


class Background:
    """The tasks of one channel in one process. Decisions take `turns`."""

    def __init__(self, channel: str) -> None:
        self.turns = asyncio.Semaphore(AT_ONCE)
        self._channel = channel
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Start work whose result or error somebody awaits."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work that nobody awaits; a failure is logged."""
        self.start(self._attempt(work))

    async def finish(self) -> None:
        """Wait for all work, also for what it starts, up to `GRACE_S`."""
        try:
            async with asyncio.timeout(GRACE_S):
                while self._tasks:
                    await asyncio.wait(set(self._tasks))
        except TimeoutError:
            _LOG.warning("channel_work_left", channel=self._channel, tasks=len(self._tasks))

    async def _attempt(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except DeliveryFailed as failure:
            _LOG.info("channel_not_reached", channel=self._channel, why=failure.reason)
        except SaysoError as error:
            _LOG.warning("channel_work_failed", channel=self._channel, why=error.message)
        except Exception:  # noqa: BLE001 - nobody awaits it, so the log is all that shows it
            _LOG.exception("channel_work_failed", channel=self._channel)


ATTEMPT_S = 10.0
LONGEST_RETRY_S = 3_600.0
_TEMPORARY = frozenset({408, 425, 429})


def open_client(timeout_s: float = ATTEMPT_S) -> httpx.AsyncClient:
    """Return a client that follows no redirects."""
    return httpx.AsyncClient(timeout=timeout_s, follow_redirects=False, headers={"User-Agent": "Sayso"})


Config = TypeVar("Config", bound=ChannelConfig)


class ConfiguredChannel(Generic[Config]):
    """A channel as its configuration says. It has no shared destination, and nothing to close."""

    shared_address = ""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.name, self.kind, self.per_minute = config.name, config.kind, config.per_minute

    async def write(self: Channel, card: Card) -> Any:
        """Return the body of a card, rendered in a thread."""
        return (await asyncio.to_thread(self.render, card)).body

    async def aclose(self) -> None:
        """Do nothing."""


class HttpChannel(ConfiguredChannel[Config]):
    """A channel with an HTTP client, which follows no redirects, to the provider at an address without its scheme."""

    def __init__(self, config: Config, provider: str) -> None:
        super().__init__(config)
        self.destination = f"{provider} {config.name}"
        self._client = open_client()

    async def aclose(self) -> None:
        await self._client.aclose()


async def request(client: httpx.AsyncClient, provider: str, method: str, url: str, **parts: Any) -> httpx.Response:
    """Return the provider's response; raises `DeliveryFailed` without one."""
    try:
        return await client.request(method, url, **parts)
    except httpx.TimeoutException:
        raise DeliveryFailed(f"{provider} did not respond in time.") from None
    except (httpx.HTTPError, httpx.InvalidURL):
        raise DeliveryFailed(f"{provider} cannot be reached.") from None


def read_json(response: httpx.Response) -> dict[str, Any]:
    """Return the JSON object of a response; an empty one if it has none."""
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def explain_status(provider: str, response: httpx.Response, wait_s: float | None = None) -> DeliveryFailed:
    """Return the failure for a status other than success. `wait_s` is the requested wait, if no header has it."""
    status = response.status_code
    permanent = 300 <= status < 500 and status not in _TEMPORARY
    wait = read_wait_s(response) if wait_s is None else min(wait_s, LONGEST_RETRY_S)
    return DeliveryFailed(
        f"{provider} refused the message ({status}).", permanent=permanent, retry_after_s=0.0 if permanent else wait
    )


def read_wait_s(response: httpx.Response) -> float:
    """Return the seconds in Retry-After, up to an hour; 0 without any."""
    header = response.headers.get("Retry-After", "").strip()
    return min(float(header[:9]), LONGEST_RETRY_S) if header.isascii() and header.isdigit() else 0.0
