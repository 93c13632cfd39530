"""Requests and socket messages of Slack, answered within its three seconds; longer work goes on afterwards.

A press needs no answer but an empty one, so it is answered before its work begins. Over HTTP the signature of the raw
body is verified before anything is parsed. In Socket Mode one process at a time holds the lease to listen; envelopes
are not signed, but the socket's address comes from Slack, and every payload is pinned to the app and workspace.
"""

import asyncio
from typing import Any

import structlog
from aiohttp import ClientError, ClientWebSocketResponse, WSMsgType
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import JsonValue
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from sayso.core.canonical_json import parse_json
from sayso.core.clock import now_ms
from sayso.errors import InvalidInput, NotFound, SaysoError
from service.channels.slack import payloads
from service.channels.slack.acting import BROKEN, SlackDesk
from service.channels.slack.api import SlackFailure
from service.channels.slack.blocks import Block
from service.channels.slack.outbound import SlackChannel
from service.channels.slack.payloads import Presser
from service.channels.slack.views import result_modal
from service.core.wiring import Wiring
from service.edge.http.middleware import admit_unverified

ANSWER_S = 2.0  # how long the answer to a form or a command waits for the desk. Slack shows an error after 3 s.
_WAITING = "What you sent is being recorded. The result appears here."


async def answer_interaction(desk: SlackDesk, payload: JsonValue, wait_s: float = ANSWER_S) -> Block | None:
    """Carry out a press or a submission; return the answer or None. Raises `InvalidInput` and `NotAllowed`."""
    kind = payloads.type_of(payload)
    if kind == "block_actions":
        pressed = payloads.read_payload(payloads.BlockActions, payload)
        payloads.check_origin(desk.channel.config, payloads.source_of(pressed), pressed.user)
        desk.channel.background.later(desk.press(pressed))
        return None
    if kind != "view_submission":
        return None
    sent = payloads.read_payload(payloads.ViewSubmission, payload)
    payloads.check_origin(desk.channel.config, payloads.source_of(sent), sent.user)
    submitting = desk.channel.background.start(desk.submit(sent))
    if await _wait(submitting, wait_s):
        return submitting.result()
    desk.channel.background.later(_show_late(desk, sent.view.id, submitting))
    return {"response_action": "update", "view": result_modal(_WAITING)}


async def answer_command(desk: SlackDesk, fields: Any, wait_s: float = ANSWER_S) -> Block:
    """Carry out `/sayso …`; return the sentence for its author."""
    sent = payloads.read_payload(payloads.Command, fields)
    payloads.check_origin(desk.channel.config, payloads.source_of(sent), Presser(id=sent.user_id))
    running = desk.channel.background.start(desk.run_command(sent))
    if await _wait(running, wait_s):
        return {"response_type": "ephemeral", "text": running.result()}
    desk.channel.background.later(_say_late(desk, sent.response_url, running))
    return {"response_type": "ephemeral", "text": "One moment…"}


def answer_event(desk: SlackDesk, payload: JsonValue) -> Block | None:
    """Take an event; return the answer to Slack's test of the address, None for any other."""
    if payloads.type_of(payload) == "url_verification":
        return {"challenge": payloads.read_payload(payloads.Verification, payload).challenge}
    if payloads.type_of(payload) != "event_callback":
        raise InvalidInput("This is no event of Slack. Send an event_callback.")
    sent = payloads.read_payload(payloads.EventCallback, payload)
    payloads.check_origin(desk.channel.config, payloads.source_of(sent))
    if sent.event.type == "app_home_opened" and sent.event.tab == "home" and sent.event.user:
        desk.channel.background.later(desk.show_home(sent.event.user))
    return None


async def _wait(task: asyncio.Task[Any], wait_s: float) -> bool:
    """Return whether the work is done in time; it goes on in any case, also if Slack hangs up."""
    done, _ = await asyncio.wait({task}, timeout=wait_s)
    if done:
        task.result()
    return bool(done)


async def _say_late(desk: SlackDesk, url: str, running: "asyncio.Task[str]") -> None:
    await desk.say(url, await running)


async def _show_late(desk: SlackDesk, view_id: str, submitting: "asyncio.Task[Block | None]") -> None:
    try:
        await desk.replace_modal(view_id, _describe(await submitting))
    except Exception:  # the modal must not wait forever; raised again because background work logs the fault
        await desk.replace_modal(view_id, BROKEN)
        raise


def _describe(answer: Block | None) -> str:
    """Return the sentence of an answer that comes too late to be one."""
    if answer is None:
        return "Your decision is recorded."
    if answer.get("response_action") == "errors":
        return "; ".join(map(str, answer["errors"].values()))
    return str(answer["view"]["blocks"][0]["elements"][0]["elements"][0]["text"])


_THREAD_BYTES = 32_768  # longer bodies are parsed in a thread
router = APIRouter(prefix="/channels/slack", include_in_schema=False)


@router.post("/{name}/interactions")
async def take_interaction(request: Request, name: str) -> Response:
    """Take the press of a button, or a submitted modal."""
    desk, raw = await _verify(request, name)
    payload = (
        payloads.read_interaction(raw)
        if len(raw) < _THREAD_BYTES
        else await asyncio.to_thread(payloads.read_interaction, raw)
    )
    return _respond(await answer_interaction(desk, payload))


@router.post("/{name}/commands")
async def take_command(request: Request, name: str) -> Response:
    """Take `/sayso …`."""
    desk, raw = await _verify(request, name)
    return _respond(await answer_command(desk, payloads.read_form(raw)))


@router.post("/{name}/events")
async def take_event(request: Request, name: str) -> Response:
    """Take an event, such as an opened Home tab."""
    desk, raw = await _verify(request, name)
    return _respond(answer_event(desk, parse_json(raw)))


async def _verify(request: Request, name: str) -> tuple[SlackDesk, bytes]:
    """Return the channel's desk and the verified body; raises `NotFound` or `InvalidSignature`."""
    channel = request.app.state.channels.find(name)
    if not isinstance(channel, SlackChannel) or not channel.config.secrets or not channel.config.decide:
        raise NotFound(f"No channel named {name!r} takes requests of Slack. Add it with signing_secrets.")
    headers = request.headers
    signed = payloads.check_headers(headers.getlist(payloads.TIMESTAMP), headers.getlist(payloads.SIGNATURE), now_ms())
    admit_unverified(request)
    raw = await request.body()
    payloads.verify_body(channel.config.secrets, signed, raw)
    return SlackDesk(channel, request.app.state.process.wiring), raw


def _respond(body: Block | None) -> Response:
    return Response(status_code=200) if body is None else JSONResponse(body)


HEARTBEAT_S = 10  # how often the socket is tested; one that does not respond is closed and opened again
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
    if payloads.type_of(message) == "disconnect":
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
