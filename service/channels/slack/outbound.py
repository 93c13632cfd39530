"""Sending: cards to people and rooms, updates in place, and reminders and votes in the card's thread."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

from service.channels.base import Background, ConfiguredChannel, Recipient, Rendered
from service.channels.cards import Card
from service.channels.slack import blocks as kit
from service.channels.slack import limits
from service.channels.slack.api import SlackApi, SlackConfig, SlackFailure, open_token, seal_token
from service.channels.slack.blocks import Block
from service.channels.slack.card import DECIDES, render_card, render_digest
from service.channels.slack.members import Members
from service.core.store.channels import Installs
from service.core.wiring import Wiring


class Posted(NamedTuple):
    """A message in Slack, as a delivery's reference names it."""

    channel: str
    ts: str

    @classmethod
    def read(cls, reference: str) -> "Posted":
        channel, _, ts = reference.partition(":")
        return cls(channel, ts)

    def __str__(self) -> str:
        return f"{self.channel}:{self.ts}"


class SlackChannel(ConfiguredChannel[SlackConfig]):
    """One Slack app in one workspace, whose limits are its own; `shared_address` is the room for unnamed reviewers."""

    def __init__(self, config: SlackConfig) -> None:
        super().__init__(config)
        self.destination = f"{urlsplit(config.base_url).hostname} ({config.team_id})"
        self.shared_address = config.channel
        self.api = SlackApi(config, self._find_token)
        self.members = Members(self.api, config.team_id, config.enterprise_id)
        self.background = Background(config.name)
        self._installs: Installs | None = None
        self._places: OrderedDict[str, str] = OrderedDict()

    def attach(self, parts: Wiring) -> None:
        """Read the app's token from the store, where OAuth has saved it."""
        self._installs = parts.part(Installs)

    def render(self, card: Card) -> Rendered:
        return render_card(card, DECIDES if self.config.decide else frozenset())

    async def send(self, to: Recipient, card: Card, event_id: str) -> str:
        """Post the card; a repeated `event_id` is the same message for Slack."""
        return str(await self._post(to, await self.write(card), event_id))

    async def send_digest(self, to: Recipient, cards: Sequence[Card], event_id: str) -> None:
        await self._post(to, render_digest(cards), event_id)

    async def update(self, to: Recipient, reference: str, card: Card) -> None:
        """Replace the card, and post the latest vote in its thread while more are needed."""
        posted, body = Posted.read(reference), await self.write(card)
        await self.api.call(
            lambda web: web.chat_update(
                channel=posted.channel, ts=posted.ts, text=body["text"], blocks=body["blocks"], parse="none"
            )
        )
        if card.live and card.decisions:
            vote = f"{card.decisions[-1]}. The item waits for more decisions."
            await self._reply(posted, vote, f"{reference}:vote:{len(card.decisions)}")

    async def remind(self, to: Recipient, reference: str, card: Card, event_id: str) -> None:
        text = f"Reminder: {card.headline} still waits for a decision, until {card.deadline}."
        await self._reply(Posted.read(reference), text, event_id)

    async def aclose(self) -> None:
        await self.background.finish()
        await self.api.aclose()

    async def _post(self, to: Recipient, body: Block, event_id: str) -> Posted:
        place = await self._find_place(to.address)
        response = await self.api.call(
            lambda web: web.chat_postMessage(
                channel=place,
                text=body["text"],
                blocks=body["blocks"],
                unfurl_links=False,
                unfurl_media=False,
                client_msg_id=_message_id(event_id),
            )
        )
        return Posted(str(response.get("channel", place)), str(response.get("ts", "")))

    async def _reply(self, posted: Posted, text: str, event_id: str) -> None:
        words = kit.escape(limits.cut(text, limits.SECTION_CHARS))
        await self.api.call(
            lambda web: web.chat_postMessage(
                channel=posted.channel,
                thread_ts=posted.ts,
                text=words,
                unfurl_links=False,
                mrkdwn=False,
                client_msg_id=_message_id(event_id),
            )
        )

    async def _find_place(self, address: str) -> str:
        """Return the conversation of an address; a person's is opened once."""
        if not address.startswith(("U", "W")):
            return address
        if address not in self._places:
            response = await self.api.call(lambda web: web.conversations_open(users=[address]))
            self._places[address] = str(response["channel"]["id"])
            if len(self._places) > 2_000:
                self._places.popitem(last=False)
        return self._places[address]

    async def _find_token(self) -> str | None:
        if self.config.bot_token is not None:
            return self.config.bot_token.get_secret_value()
        sealed = await self._installs.find_token(self.name) if self._installs is not None else None
        if self._installs is None or sealed is None:
            return None
        opened = open_token(self.config, sealed)
        if opened is None:
            reason = "The saved token of the Slack app cannot be decrypted; install the app again."
            raise SlackFailure("not_authed", reason, permanent=True)
        if opened.stale:
            await self._installs.replace_token(self.name, sealed, seal_token(self.config, opened.token))
        return opened.token


def _message_id(event_id: str) -> str:
    return str(uuid5(NAMESPACE_URL, f"sayso:{event_id}"))
