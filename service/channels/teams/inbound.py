"""Messages of Teams: pressed controls of cards, and codes that link people.

The signed token is verified before the body is parsed, and its claims must name the same service as the body. The id of
the message is the decision's idempotency key. Unknown fields are ignored, because new ones come at any time.
"""

import re
from dataclasses import dataclass
from typing import Any

import structlog
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sayso.core.canonical_json import parse_json
from sayso.core.records.decisions import Actor, DecisionRequest
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.sentences import deliveries as chats
from sayso.core.transitions.deciding import find_item
from sayso.errors import InvalidInput, NotAllowed, NotAuthenticated, NotFound, SaysoError, Unavailable
from service.channels import deciding
from service.channels.base import CardAction, DeliveryFailed
from service.channels.deciding import CardRef
from service.channels.teams.card import CARD_TYPE, DECIDES
from service.channels.teams.outbound import TeamsChannel
from service.channels.teams.tokens import CHANNEL_ID
from service.core.wiring import Wiring
from service.edge.http.middleware import admit_body


class _Sent(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class Account(_Sent):
    """A person or bot. The directory's id is the same in every conversation."""

    id: str = ""
    name: str = ""
    directory_id: str = Field(default="", alias="aadObjectId")


class Conversation(_Sent):
    """A conversation; `personal` for one person and the bot."""

    id: str = ""
    type: str = Field(default="", alias="conversationType")
    tenant_id: str = Field(default="", alias="tenantId")


class Tenant(_Sent):
    """A tenant."""

    id: str = ""


class ChannelData(_Sent):
    """What Teams adds."""

    tenant: Tenant = Tenant()


class ActionData(_Sent):
    """What a control carries: the item, the digest that the card showed, and the fields beside the control."""

    suspension_id: str = Field(min_length=1, max_length=100)
    item_id: str = Field(min_length=1, max_length=100)
    digest: str = Field(pattern="^[0-9a-f]{64}$")
    reason: str = Field(default="", max_length=20_000)
    value: str = Field(default="", max_length=100_000)
    question: str = Field(default="", max_length=20_000)
    changes: str = Field(default="", max_length=20_000)


class Action(_Sent):
    """A pressed control."""

    type: str
    verb: str = ""
    data: ActionData


class Invocation(_Sent):
    """The value of a message about a pressed control."""

    action: Action


class Activity(_Sent):
    """One message to the bot. `value` is parsed only for a pressed control."""

    type: str
    id: str = Field(default="", max_length=500)
    name: str = ""
    text: str = ""
    channel_id: str = Field(default="", alias="channelId")
    service_url: str = Field(default="", alias="serviceUrl")
    sender: Account = Field(default=Account(), alias="from")
    conversation: Conversation = Conversation()
    channel_data: ChannelData = Field(default=ChannelData(), alias="channelData")
    value: object = None


LINK = "link CODE"
MESSAGE_TYPE = "application/vnd.microsoft.activity.message"
REFRESH = "refresh"

_LINK = re.compile(r"(?:<at>[^<]*</at>\s*)?link\s+([A-Za-z0-9 -]{4,40})", re.IGNORECASE)
_LOG = structlog.get_logger(__name__)

router = APIRouter(prefix="/channels/teams", include_in_schema=False)


@router.post("/{name}/messages")
async def take_activity(name: str, request: Request) -> Response:
    """Handle one message of the Bot Framework."""
    channel = request.app.state.channels.find(name)
    if not isinstance(channel, TeamsChannel):
        raise NotFound(f"There is no Teams channel {name!r}. Correct the bot's messaging endpoint.")
    headers = request.headers.getlist("authorization")
    scheme, _, token = headers[0].partition(" ") if len(headers) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not token:
        raise NotAuthenticated("The message has no token of the Bot Framework.")
    claims = await channel.keys.verify(token.strip())
    admit_body(request)
    try:
        activity = Activity.model_validate(parse_json(await request.body()))
    except ValidationError:
        raise InvalidInput("This is no message of the Bot Framework.") from None
    service = claims.get("serviceurl", claims.get("serviceUrl"))
    if not activity.service_url or service != activity.service_url or activity.channel_id != CHANNEL_ID:
        raise NotAuthenticated("The token belongs to another service than the message.")
    tenants = {activity.channel_data.tenant.id, activity.conversation.tenant_id} - {""}
    if tenants != {channel.config.tenant_id}:
        raise NotAllowed("This bot takes messages of its own tenant only.")
    if not activity.sender.directory_id:
        raise NotAllowed("The sender has no id in the directory, so they cannot decide.")
    chat = Chat(channel, request.app.state.process.wiring, activity)
    if activity.type == "invoke" and activity.name == "adaptiveCard/action":
        return JSONResponse(await chat.answer_press())
    if activity.type == "message" and activity.conversation.type == "personal":
        await chat.answer_message()
    return JSONResponse({})


@dataclass(frozen=True)
class Chat:
    """One message of a person to the bot."""

    channel: TeamsChannel
    parts: Wiring
    activity: Activity

    async def answer_press(self) -> dict[str, Any]:
        """Act on a control; return the current card, or a sentence. Raises `Unavailable`."""
        try:
            action = Invocation.model_validate(self.activity.value).action
        except ValidationError:
            return _write_message(chats.UNKNOWN_BUTTON)
        try:
            by = await deciding.find_actor(self.parts, self.channel, self.activity.sender.directory_id)
            if by is None:
                raise NotAllowed(chats.LINK_FIRST.format(LINK))
            if action.verb != REFRESH:
                await self._act(action, by)
        except Unavailable:
            raise
        except SaysoError as error:
            if isinstance(error, NotAllowed | NotFound):
                return _write_message(error.message)
            record, item = await self._read(action)
            return _write_message(error.message) if item.open else await self._write_card(record, item)
        record, item = await self._read(action)
        return await self._write_card(record, item)

    async def answer_message(self) -> None:
        """Link the sender, or explain how; the answer is written into the conversation."""
        sender = self.activity.sender
        code = _LINK.fullmatch(self.activity.text.replace("\u00a0", " ").strip())
        try:
            if code is None:
                raise InvalidInput(chats.NOT_A_CARD.format(LINK))
            text = await deciding.link_address(self.parts, self.channel, code[1], sender.directory_id, sender.name)
        except Unavailable:
            raise
        except SaysoError as error:
            text = error.message
        try:
            await self.channel.say(self.activity.conversation.id, text)
        except DeliveryFailed as failure:
            _LOG.warning("teams_reply_failed", channel=self.channel.name, reason=failure.reason)

    async def _act(self, action: Action, by: Actor) -> None:
        if action.verb not in DECIDES:
            raise InvalidInput(chats.UNKNOWN_BUTTON)
        if not self.activity.id:
            raise InvalidInput("The message has no id.")
        data = action.data
        ref = CardRef(data.suspension_id, data.item_id)
        if action.verb == CardAction.ASK:
            await deciding.ask_on_card(self.parts, self.channel, ref, data.question, by, self.activity.id)
            return
        if action.verb == CardAction.UNDO:
            await deciding.undo_on_card(self.parts, ref, by)
            return
        request = await self._read_decision(action)
        await deciding.decide_on_card(self.parts, self.channel, ref, request, by, self.activity.id)

    async def _read_decision(self, action: Action) -> DecisionRequest:
        data = action.data
        if action.verb == CardAction.DENY:
            return deciding.read_denial(data.reason, data.digest, changes=False)
        if action.verb == CardAction.CHANGES:
            return deciding.read_denial(data.changes, data.digest, changes=True)
        fields: dict[str, Any] = {"action": action.verb, "digest": data.digest}
        if action.verb == CardAction.VALUE:
            _, item = await self._read(action)
            definition = await self.parts.runs.definition(item.tool.definition)
            fields["value"] = deciding.read_value(data.value, item, definition)
        return DecisionRequest.model_validate(fields)

    async def _read(self, action: Action) -> tuple[SuspensionRecord, Item]:
        record = (await self.parts.desk.suspensions.read(action.data.suspension_id)).record
        return record, find_item(record, action.data.item_id)

    async def _write_card(self, record: SuspensionRecord, item: Item) -> dict[str, Any]:
        card = await deciding.read_card(self.parts, record, item)
        return {"statusCode": 200, "type": CARD_TYPE, "value": await self.channel.write(card)}


def _write_message(text: str) -> dict[str, Any]:
    return {"statusCode": 200, "type": MESSAGE_TYPE, "value": text}
