"""Buttons and replies in Telegram, received by long polling: works behind NAT, without a public address.

An update is acknowledged after it was handled, so a crash loses none. One that comes twice changes nothing the second
time, because the id of the press or message is the decision's idempotency key. Unknown fields are ignored.
"""

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sayso.core.clock import DAY_MS
from sayso.core.records.decisions import Actor, DecisionRequest
from sayso.core.sentences import deliveries as chats
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.deliveries import is_live
from sayso.errors import AlreadyDecided, InvalidInput, NotAllowed, SaysoError, StaleDigest, Unavailable
from service.channels import deciding
from service.channels.base import CardAction, DeliveryFailed, Recipient
from service.channels.cards import Card, describe_closing
from service.channels.deciding import CardRef
from service.channels.telegram.card import Control, cut, escape, matches, read_data
from service.channels.telegram.outbound import REPLY_UNITS, TelegramChannel
from service.core.store.channels import ChannelNotes
from service.core.wiring import Wiring


class _Sent(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Chat(_Sent):
    """A chat; `private` for one person and the bot."""

    id: int
    type: str


class Sender(_Sent):
    """An account of Telegram."""

    id: int
    is_bot: bool = False
    username: str = ""
    first_name: str = ""

    @property
    def label(self) -> str:
        """The account as a person knows it."""
        return f"@{self.username}" if self.username else self.first_name


class RepliedTo(_Sent):
    """The message that a message replies to."""

    message_id: int


class Message(_Sent):
    """A message to the bot, or the message of a pressed button."""

    message_id: int
    chat: Chat
    sender: Sender | None = Field(default=None, alias="from")
    text: str = ""
    reply_to_message: RepliedTo | None = None

    def is_private(self, sender: Sender | None) -> bool:
        """Return whether the message is in the sender's own chat with the bot."""
        return self.chat.type == "private" and sender is not None and not sender.is_bot and sender.id == self.chat.id


class Press(_Sent):
    """The press of a button."""

    id: str
    sender: Sender = Field(alias="from")
    message: Message | None = None
    data: str = ""


class Update(_Sent):
    """One update."""

    update_id: int
    message: Message | None = None
    callback_query: Press | None = None


POSITION = "position"
POSITION_VALID_MS = 6 * DAY_MS
"""Telegram numbers updates anew after a week without any, so an old position would skip new updates."""

REPLY_VALID_MS = DAY_MS
START = "/start CODE"

_AGAIN_AFTER_S = (0.5, 2.0, 5.0)
_PLACEHOLDERS = {
    CardAction.DENY: "Reason",
    CardAction.CHANGES: "Changes",
    CardAction.VALUE: "Value",
    CardAction.ASK: "Question",
}
_START = re.compile(r"/(?:start|link)(?:@\w+)?\s+([A-Za-z0-9 -]{4,40})")
_LOG = structlog.get_logger(__name__)


class Awaited(BaseModel):
    """A decision or question that waits for a reply: its item, as the pressed card showed it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    action: CardAction
    suspension_id: str
    item_id: str
    digest: str


async def listen(channel: TelegramChannel, parts: Wiring, ending: asyncio.Event) -> None:
    """Receive updates until the event is set; raises `DeliveryFailed` if Telegram cannot be polled."""
    inbox = Inbox(channel, parts)
    while not ending.is_set():
        try:
            await inbox.poll()
        except DeliveryFailed as failure:
            if not failure.retry_after_s:
                raise
            with suppress(TimeoutError):
                await asyncio.wait_for(ending.wait(), failure.retry_after_s)


@dataclass(frozen=True)
class Inbox:
    """The updates of one bot."""

    channel: TelegramChannel
    parts: Wiring

    async def poll(self) -> None:
        """Wait for updates and handle them in order."""
        notes, name = self.parts.part(ChannelNotes), self.channel.name
        for raw in await self.channel.poll(int(await notes.read(name, POSITION) or 0)):
            try:
                update = Update.model_validate(raw)
            except ValidationError:
                _LOG.warning("telegram_update_unreadable", channel=name, update=raw.get("update_id"))
                update = Update(update_id=int(raw["update_id"]))
            await self.take(update)
            await notes.save(name, POSITION, str(update.update_id + 1), POSITION_VALID_MS)

    async def take(self, update: Update) -> None:
        """Handle one update, again if Telegram refuses the answer for now.

        Handling is repeatable, as updates may come twice. Raises `Unavailable` only, and then it is received again.
        """
        for wait_s in (*_AGAIN_AFTER_S, None):
            try:
                if update.callback_query is not None:
                    press = update.callback_query
                    try:
                        notice, alert = await self._press(press), False
                    except Unavailable:
                        raise
                    except SaysoError as error:
                        notice, alert = error.message, True
                    await self.channel.answer(press.id, notice, alert=alert)
                elif update.message is not None and update.message.is_private(update.message.sender):
                    try:
                        text = await self._answer(update.message)
                    except Unavailable:
                        raise
                    except SaysoError as error:
                        text = error.message
                    await self.channel.say(str(update.message.chat.id), update.message.message_id, text)
            except Unavailable:
                raise
            except DeliveryFailed as failure:
                if wait_s is not None and not failure.permanent:
                    await asyncio.sleep(max(wait_s, min(failure.retry_after_s, _AGAIN_AFTER_S[-1])))
                    continue
                _LOG.warning("telegram_reply_failed", channel=self.channel.name, reason=failure.reason)
            except Exception:  # noqa: BLE001  one update must not block those behind it
                _LOG.exception("telegram_update_failed", channel=self.channel.name, update=update.update_id)
            return

    async def _press(self, press: Press) -> str:
        """Decide, or request what the decision needs; return the notice."""
        control, message = read_data(press.data), press.message
        if message is None or not message.is_private(press.sender):
            raise NotAllowed(chats.PRIVATE_ONLY)
        if control is None:
            raise InvalidInput(chats.UNKNOWN_BUTTON)
        by = await self._find_actor(message)
        record = (await self.parts.desk.suspensions.read(control.suspension_id)).record
        item = find_item(record, control.item_id)
        try:
            current, approves = matches(control, item.digest), control.action is CardAction.APPROVE
            if not is_live(record, item) and not (current and approves):
                raise AlreadyDecided(f"{describe_closing(record, item)} Nothing was changed.")
            if not current:
                raise StaleDigest(chats.STALE_CARD)
            if approves:
                request = DecisionRequest(action="approve", digest=item.digest)
                ref = CardRef(record.id, item.item_id)
                return (await deciding.decide_on_card(self.parts, self.channel, ref, request, by, press.id)).sentence
            action = control.action
            if action is CardAction.UNDO:
                return await deciding.undo_on_card(self.parts, CardRef(record.id, item.item_id), by)
            text = _write_request(action, await deciding.read_card(self.parts, record, item), record.run.owner)
            markup = {"force_reply": True, "input_field_placeholder": _PLACEHOLDERS[action]}
            prompt = await self.channel.reply(
                str(message.chat.id), message.message_id, escape(cut(text, REPLY_UNITS)), reply_markup=markup
            )
            awaited = Awaited(action=action, suspension_id=record.id, item_id=item.item_id, digest=item.digest)
            name = _name_prompt(message, prompt)
            await self.parts.part(ChannelNotes).save(self.channel.name, name, awaited.model_dump_json(), REPLY_VALID_MS)
            return "Reply to the question below."
        finally:
            await self._close_card(message, control)

    async def _close_card(self, message: Message, control: Control) -> None:
        """Disarm the pressed card if its item is closed, in case the record does not know this message."""
        record = (await self.parts.desk.suspensions.read(control.suspension_id)).record
        item = find_item(record, control.item_id)
        if is_live(record, item):
            return
        card = await deciding.read_card(self.parts, record, item)
        try:
            await self.channel.update(Recipient("", str(message.chat.id)), str(message.message_id), card)
        except DeliveryFailed as failure:
            _LOG.warning("telegram_card_not_closed", channel=self.channel.name, reason=failure.reason)

    async def _answer(self, message: Message) -> str:
        code = _START.fullmatch(message.text.strip())
        if code is not None:
            label = message.sender.label if message.sender is not None else ""
            return await deciding.link_address(self.parts, self.channel, code[1], str(message.chat.id), label)
        note = None
        if message.reply_to_message is not None:
            name = _name_prompt(message, message.reply_to_message.message_id)
            note = await self.parts.part(ChannelNotes).read(self.channel.name, name)
        awaited = Awaited.model_validate_json(note) if note is not None else None
        if awaited is None:
            raise InvalidInput(chats.NOT_A_CARD.format(START))
        by = await self._find_actor(message)
        key = f"{message.chat.id}:{message.message_id}"
        ref = CardRef(awaited.suspension_id, awaited.item_id)
        if awaited.action is CardAction.ASK:
            return await deciding.ask_on_card(self.parts, self.channel, ref, message.text, by, key)
        request = await self._read_reply(message, awaited)
        return (await deciding.decide_on_card(self.parts, self.channel, ref, request, by, key)).sentence

    async def _read_reply(self, message: Message, awaited: Awaited) -> DecisionRequest:
        typed = message.text.strip()
        if not typed:
            raise InvalidInput("Reply with a text.")
        if awaited.action is CardAction.VALUE:
            record = (await self.parts.desk.suspensions.read(awaited.suspension_id)).record
            item = find_item(record, awaited.item_id)
            value = deciding.read_value(typed, item, await self.parts.runs.definition(item.tool.definition))
            return DecisionRequest(action="value", digest=awaited.digest, value=value)
        changes = awaited.action is CardAction.CHANGES
        reason = "" if typed == chats.NO_REASON else typed
        return deciding.read_denial(reason, awaited.digest, changes=changes)

    async def _find_actor(self, message: Message) -> Actor:
        by = await deciding.find_actor(self.parts, self.channel, str(message.chat.id))
        if by is None:
            raise NotAllowed(chats.LINK_FIRST.format(START))
        return by


def _write_request(action: CardAction, card: Card, owner: str) -> str:
    """Return what a person is asked to reply after a press."""
    if action is CardAction.DENY and card.reverses:
        return chats.request_keep_reason(card.reverses)
    texts = {
        CardAction.DENY: chats.request_reason(card.headline),
        CardAction.CHANGES: chats.request_changes(card.headline),
        CardAction.VALUE: chats.request_value(card.headline, card.choices),
        CardAction.ASK: chats.request_question(card.headline, owner),
    }
    return texts[action]


def _name_prompt(message: Message, prompt_id: int) -> str:
    return f"prompt {message.chat.id} {prompt_id}"
