"""Notices through apprise, without arguments: the service behind may read, cut or format them."""

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import structlog
from pydantic import Field, SecretStr, field_validator

from sayso.core.text.invisible import UNCHECKED
from sayso.core.text.language import count_units, cut
from service.channels.base import ConfiguredChannel, DeliveryFailed, Recipient, Rendered, allowed_actions
from service.channels.cards import Card
from service.channels.config import ChannelConfig
from service.core.settings.receivers import Secret

MESSAGE_UNITS = 1800  # Discord takes 2,000 UTF-16 units, with the title
TITLE_CHARS = 120
LINE_CHARS = 120
CLOSING_CHARS = 400

_PLAIN = str.maketrans({"@": "＠", "<": "‹", ">": "›", "[": "［", "]": "］", "(": "（", ")": "）", "`": "ˋ", "*": "∗"})
"""Characters with which a text could mention people, form links or other markup."""


def render_card(card: Card) -> Rendered:
    """Return the notice: a title and a text."""
    lines = list(_write_lines(card))
    link = f"Open: {card.link}"
    while count_units("\n".join([*lines, link])) > MESSAGE_UNITS:
        lines.pop()
    title = _cut(card.title, TITLE_CHARS)
    text = "\n".join([*lines, link])
    actions = allowed_actions(card, complete=False, decides=frozenset())
    return Rendered({"title": title, "body": text}, f"{title}\n{text}", complete=False, actions=actions)


def _write_lines(card: Card) -> Iterator[str]:
    if card.closing:
        yield _cut(f"Closed: {card.closing}", CLOSING_CHARS)
    if card.urgent and card.live:
        yield "Urgent"
    yield from (_cut(f"Warning: {warning}", LINE_CHARS) for warning in card.warnings)
    yield from (_cut(f"{label}: {text}", LINE_CHARS) for label, text in card.facts)
    if card.claims:
        yield "; ".join([UNCHECKED, *(_cut(f"{label}: {text}", LINE_CHARS) for label, text in card.claims)])


def _cut(text: str, most: int) -> str:
    return cut(" ".join(text.split()).translate(_PLAIN), most)


ATTEMPT_S = 12.0
MOST_URLS = 20
_LOG = structlog.get_logger(__name__)


class NoticeConfig(ChannelConfig):
    """The fields of a channel of notices: its places, as URLs of apprise."""

    kind: Literal["notice"]
    urls: tuple[Secret, ...] = Field(min_length=1, max_length=MOST_URLS, description="URLs of apprise, with secrets.")
    per_minute: int = Field(default=30, ge=1, le=6000, description="The most messages a minute to the provider.")

    @field_validator("urls")
    @classmethod
    def _check_urls(cls, urls: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        for place, url in enumerate(urls, start=1):
            if not _open_sender().add(url.get_secret_value()):
                raise ValueError(f"apprise does not know URL {place}; write it as apprise's documentation says")
        return urls


class NoticeChannel(ConfiguredChannel[NoticeConfig]):
    """The places that get each notice. Apprise does not say to which host a URL leads."""

    shared_address, shared_only = "places", True

    def __init__(self, config: NoticeConfig) -> None:
        super().__init__(config)
        self.destination = f"apprise {config.name}"
        # A place that does not respond must not block the threads of the default executor.
        self._threads = ThreadPoolExecutor(MOST_URLS, thread_name_prefix="notices")

    def render(self, card: Card) -> Rendered:
        return render_card(card)

    async def send(self, to: Recipient, card: Card, event_id: str) -> str:
        """Send the notice to all places; one that accepts it is enough."""
        await self._notify(card, "")
        return ""

    async def update(self, to: Recipient, reference: str, card: Card) -> None:
        """Send how the item ended. Notices cannot be replaced."""
        if not card.live:
            await self._notify(card, "")

    async def remind(self, to: Recipient, reference: str, card: Card, event_id: str) -> None:
        await self._notify(card, "Reminder: ")

    async def aclose(self) -> None:
        """Start no more notices; those under way end by themselves."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _notify(self, card: Card, start: str) -> None:
        loop = asyncio.get_running_loop()
        body = (await loop.run_in_executor(self._threads, self.render, card)).body
        urls = [url.get_secret_value() for url in self.config.urls]
        title, text = f"{start}{body['title']}", body["body"]
        sending = (loop.run_in_executor(self._threads, send_notice, url, title, text) for url in urls)
        try:
            async with asyncio.timeout(ATTEMPT_S):
                sent = await asyncio.gather(*sending)
        except TimeoutError:
            raise DeliveryFailed("The notice was not accepted in time.") from None
        if not any(sent):
            raise DeliveryFailed("No place accepted the notice; apprise gives no reason.")
        if not all(sent):
            _LOG.warning("notice_partly_sent", channel=self.name, places=len(sent), accepted=sum(sent))


def send_notice(url: str, title: str, body: str) -> bool:
    """Send one notice and return whether it was accepted; blocks for as long as the sockets of apprise may."""
    sender = _open_sender()
    return bool(sender.add(url)) and bool(sender.notify(title=title, body=body, body_format="text"))


def _open_sender() -> Any:
    """Return a sender of apprise, which takes a third of a second to import and logs URLs with their secrets."""
    from apprise import Apprise, AppriseAsset

    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    return Apprise(asset=AppriseAsset(app_id="Sayso", async_mode=False, secure_logging=True))
