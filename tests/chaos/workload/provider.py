"""The provider of the experiment's channel: Telegram's fake, which outlives every kill and fails by seed.

It refuses, limits, delays and drops a share of its calls, and refuses everything for some seconds at times.
"""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

import yaml
from starlette.requests import ClientDisconnect, Request

from sayso.core.clock import now_ms
from tests.chaos.evidence.provider_log import CHANNEL, ProviderLine, ProviderLog, What
from tests.chaos.workload.freezer import pause
from tests.chaos.workload.plans import seeded_random
from tests.fakes.telegram import TOKEN, Message, Refusal, Telegram, serving_telegram

CHATS = {"anna": 4711, "ben": 4712}
"""The reviewers who have linked a chat."""

FAULTS = {"none": 930, "refused": 25, "limited": 25, "dropped": 12, "hangs": 8}
_REFUSALS = {"refused": (502, "Bad Gateway"), "limited": (429, "Too Many Requests"), "hangs": (504, "Gateway Timeout")}
RETRY_AFTER_S = 1
HANGS_S = 12.0
"""Longer than Sayso waits for an answer."""

_OUTAGE_EVERY_S = (8.0, 20.0)
_OUTAGE_S = (1.0, 5.0)
_LINK = re.compile(r"/items/([^/]+)/([^/]+)$")
_PEOPLE = {chat: person for person, chat in CHATS.items()}


@dataclass
class SentCard:
    """A card in a chat, with the buttons that it had first."""

    message: Message
    person: str
    suspension_id: str
    item_id: str
    data: dict[str, str]


@dataclass
class Provider(Telegram):
    """The bot API with a log and faults. `press_of` and `reply_of` act for people."""

    log: ProviderLog = field(kw_only=True)
    rng: Random = field(kw_only=True)
    failing: bool = False
    sent_cards: dict[tuple[int, int], SentCard] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    acted: dict[str, SentCard] = field(default_factory=dict)

    def fail_by_seed(self) -> None:
        """Begin to fail."""
        self.failing, self.refusal = True, (0, RETRY_AFTER_S)

    def heal(self) -> None:
        """Accept everything from now on."""
        self.failing, self.refusal = False, (0, 0)

    async def fail_at_times(self, over: asyncio.Event) -> None:
        """Refuse everything for some seconds, again and again."""
        while not over.is_set():
            await pause(over, self.rng.uniform(*_OUTAGE_EVERY_S))
            self.refusal = (502, RETRY_AFTER_S)
            await pause(over, self.rng.uniform(*_OUTAGE_S))
            self.refusal = (0, RETRY_AFTER_S)

    def find_card(self, person: str, suspension_id: str, item_id: str) -> SentCard | None:
        """Return the latest card of an item in somebody's chat."""
        wanted = person, suspension_id, item_id
        found = (one for one in reversed([*self.sent_cards.values()]) if _about(one) == wanted)
        return next(found, None)

    def find_prompt(self, card: SentCard) -> Message | None:
        """Return the latest question that replies to a card."""
        asked = (one for one in reversed(self.messages) if one.reply_to == card.message.message_id)
        return next((one for one in asked if one.chat_id == card.message.chat_id and "force_reply" in one.markup), None)

    def press_of(self, card: SentCard, button: str) -> str:
        """Press a button as the card had it first; return the key of the press."""
        with self.changed:
            key = self.press(card.message, button, data=card.data[button])
            self.acted[key] = card
            self._write("pressed", card, key=key, action="approve" if button == "Approve" else "ask")
        return key

    def reply_of(self, card: SentCard, prompt: Message, reason: str) -> str:
        """Reply to a question with the reason of a denial; return the key of the reply."""
        with self.changed:
            chat = card.message.chat_id
            key = f"{chat}:{self.say(chat, reason, reply_to=prompt.message_id)}"
            self.acted[key] = card
            self._write("replied", card, key=key, action="deny", text=reason)
        return key

    def note_left(self, card: SentCard) -> None:
        """Log that a card has kept its buttons."""
        self._write("left", card, message_id=card.message.message_id)

    def list_armed(self) -> list[SentCard]:
        """Return the cards with buttons that decide."""
        return [one for one in [*self.sent_cards.values()] if one.message.data]

    def list_unanswered(self) -> list[str]:
        """Return the presses and replies that Sayso has not answered."""
        return [key for key in [*self.acted] if key not in self.told]

    async def _answer(self, request: Request) -> Any:
        try:
            method, fields = request.path_params["method"], await request.json()
        except ClientDisconnect:  # Sayso was killed while it sent
            raise Refusal(400, "Bad Request") from None
        fault = self._draw_fault(method)
        try:
            if fault == "hangs":
                await asyncio.sleep(HANGS_S)
            if fault in _REFUSALS:
                raise Refusal(*_REFUSALS[fault])
            result = await super()._answer(request)
        except Refusal:
            self._note_answer("refused", method, fields)
            raise
        self._note_answer("answered", method, fields)
        if fault == "dropped":
            raise Refusal(*_REFUSALS["refused"])
        return result

    def _draw_fault(self, method: str) -> str:
        if not self.failing:
            return "none"
        fault = self.rng.choices([*FAULTS], [*FAULTS.values()])[0]
        return "none" if method == "getUpdates" and fault in ("dropped", "hangs") else fault

    def _note_answer(self, what: Literal["answered", "refused"], method: str, fields: dict[str, Any]) -> None:
        """Log the answer to a press or reply, or that it was refused."""
        key = str(fields.get("callback_query_id", ""))
        if method == "sendMessage" and "force_reply" not in fields.get("reply_markup", {}):
            key = f"{fields['chat_id']}:{fields.get('reply_parameters', {}).get('message_id')}"
        with self.changed:
            card, text = self.acted.get(key), fields.get("text", "")
            if card is not None:
                self._write(what, card, key=key, text=text)
            if card is not None and what == "answered":
                self.told[key] = text

    def _send(self, fields: dict[str, Any]) -> dict[str, Any]:
        result = super()._send(fields)
        message = self.messages[-1]
        found = [_LINK.search(button["url"]) for button in message.buttons.values() if "url" in button]
        about = next((one for one in found if one is not None), None)
        if about is not None:
            card = SentCard(message, _PEOPLE[message.chat_id], about[1], about[2], message.data)
            self.sent_cards[message.chat_id, message.message_id] = card
            self._write_card("sent", card)
        return result

    def _edit(self, fields: dict[str, Any]) -> dict[str, Any]:
        result = super()._edit(fields)
        self._write_card("updated", self.sent_cards[fields["chat_id"], fields["message_id"]])
        return result

    def _write_card(self, what: Literal["sent", "updated"], card: SentCard) -> None:
        message = card.message
        self._write(what, card, message_id=message.message_id, buttons=tuple(message.data), text=message.text)

    def _write(self, what: What, card: SentCard, **fields: Any) -> None:
        person, suspension_id, item_id = _about(card)
        about = {"person": person, "suspension_id": suspension_id, "item_id": item_id, **fields}
        with self.changed:
            self.log.write(ProviderLine(what=what, at_ms=now_ms(), **about))


def _about(card: SentCard) -> tuple[str, str, str]:
    return card.person, card.suspension_id, card.item_id


@contextmanager
def serving_provider(home: Path, seed: int) -> Iterator[Provider]:
    """Serve the provider, with its log in the experiment's home; it accepts everything at first."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = ProviderLog(home)
    provider = Provider(chats={*CHATS.values()}, log=log, rng=seeded_random(seed, "provider"))
    try:
        with serving_telegram(telegram=provider):
            yield provider
    finally:
        log.close()


def write_channels(home: Path, provider: Provider) -> Path:
    """Write the channels file of the experiment."""
    channel = {"kind": "telegram", "bot_token": TOKEN, "base_url": provider.url, "poll_s": 5, "per_minute": 1800}
    path = home / "channels.yaml"
    path.write_text(yaml.safe_dump({"channels": {CHANNEL: channel}}), encoding="utf-8")
    return path
