"""Socket Mode: Slack sends over a socket that this process opens, so Sayso needs no public address.

One process at a time holds the lease to listen. Envelopes are not signed; the socket's address comes from Slack for the
app's token, and every payload is pinned to the app and workspace as over HTTP.
"""

import asyncio
from typing import Any

import structlog
from aiohttp import ClientError, ClientWebSocketResponse, WSMsgType
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from sayso.core.canonical_json import parse_json
from sayso.errors import SaysoError
from service.channels.slack.acting import SlackDesk
from service.channels.slack.answering import answer_command, answer_event, answer_interaction
from service.channels.slack.api import SlackFailure
from service.channels.slack.outbound import SlackChannel
from service.channels.slack.requests.payloads import type_of
from service.channels.slack.screens.blocks import Block
from service.wiring import Wiring

HEARTBEAT_S = 10
"""How often the socket is tested; one that does not respond is closed and opened again."""

_LARGEST = 4 * 1024 * 1024
_LOG = structlog.get_logger(__name__)


async def listen(channel: SlackChannel, parts: Wiring, ending: asyncio.Event) -> None:
    """Take what people do until `ending`; returns at once for a channel without Socket Mode."""
    token = channel.config.app_token
    if token is None or not channel.config.decide:
        return
    while not ending.is_set():
        url = await _find_address(channel, token.get_secret_value())
        try:
            async with channel.api.session.ws_connect(url, heartbeat=HEARTBEAT_S, max_msg_size=_LARGEST) as socket:
                await _follow(socket, SlackDesk(channel, parts), ending)
        except (ClientError, TimeoutError, OSError) as error:
            raise SlackFailure("", f"Slack's socket broke: {type(error).__name__}.") from None


async def _find_address(channel: SlackChannel, token: str) -> str:
    response = await channel.api.call_as(None, lambda web: web.apps_connections_open(app_token=token))
    url = str(response.get("url", ""))
    if not url.startswith("wss://" if channel.config.base_url.startswith("https://") else "ws://"):
        raise SlackFailure("", "Slack sent no address for its socket.")
    return url


async def _follow(socket: ClientWebSocketResponse, desk: SlackDesk, ending: asyncio.Event) -> None:
    """Answer every envelope until Slack ends the socket, or `ending` is set."""
    _LOG.info("slack_socket_open", channel=desk.channel.name)
    stopping = asyncio.create_task(ending.wait())
    try:
        while not ending.is_set():
            receiving = asyncio.create_task(socket.receive())
            await asyncio.wait({receiving, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not receiving.done():
                receiving.cancel()
                return
            message = receiving.result()
            if message.type is not WSMsgType.TEXT or not _take(socket, desk, str(message.data)):
                return
    finally:
        stopping.cancel()


def _take(socket: ClientWebSocketResponse, desk: SlackDesk, text: str) -> bool:
    """Begin to answer an envelope; return False where Slack announces the end of the socket."""
    try:
        message: Any = parse_json(text)
    except SaysoError:
        message = None
    if type_of(message) == "disconnect":
        return False
    envelope = SocketModeRequest.from_dict(message) if isinstance(message, dict) else None
    if envelope is not None and isinstance(envelope.envelope_id, str):
        desk.channel.background.later(_answer(socket, desk, envelope))
    return True


async def _answer(socket: ClientWebSocketResponse, desk: SlackDesk, envelope: SocketModeRequest) -> None:
    """Carry an envelope out and acknowledge it once, also if it is refused: Slack would send it again."""
    try:
        body = await _carry_out(desk, envelope)
    except SaysoError as error:
        _LOG.warning("slack_envelope_refused", channel=desk.channel.name, kind=envelope.type, why=error.message)
        body = None
    answer = SocketModeResponse(envelope_id=envelope.envelope_id, payload=body)
    try:
        await socket.send_json(answer.to_dict())
    except (ClientError, ConnectionError) as error:
        _LOG.info("slack_envelope_not_acknowledged", channel=desk.channel.name, why=type(error).__name__)


async def _carry_out(desk: SlackDesk, envelope: SocketModeRequest) -> Block | None:
    payload: Any = envelope.payload
    if envelope.type == "interactive":
        return await answer_interaction(desk, payload)
    if envelope.type == "slash_commands":
        return await answer_command(desk, payload)
    if envelope.type == "events_api":
        return answer_event(desk, payload)
    return None
