"""Requests of Slack over HTTP. The signature over the raw body is verified before anything is parsed."""

import asyncio

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from sayso.core.canonical_json import parse_json
from sayso.core.clock import now_ms
from sayso.errors import NotFound
from service.auth.credentials import TENANT
from service.channels.slack.acting import SlackDesk
from service.channels.slack.answering import answer_command, answer_event, answer_interaction
from service.channels.slack.outbound import SlackChannel
from service.channels.slack.requests.payloads import read_form, read_interaction
from service.channels.slack.requests.signatures import SIGNATURE, TIMESTAMP, check_headers, verify_body
from service.channels.slack.screens.blocks import Block
from service.http.middleware import admit_unverified

_THREAD_BYTES = 32_768
"""Longer bodies are parsed in a thread."""

router = APIRouter(prefix="/channels/slack", include_in_schema=False)


@router.post("/{name}/interactions")
async def take_interaction(request: Request, name: str) -> Response:
    """Take the press of a button, or a submitted modal."""
    desk, raw = await _verify(request, name)
    payload = read_interaction(raw) if len(raw) < _THREAD_BYTES else await asyncio.to_thread(read_interaction, raw)
    return _respond(await answer_interaction(desk, payload))


@router.post("/{name}/commands")
async def take_command(request: Request, name: str) -> Response:
    """Take `/sayso …`."""
    desk, raw = await _verify(request, name)
    return _respond(await answer_command(desk, read_form(raw)))


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
    signed = check_headers(headers.getlist(TIMESTAMP), headers.getlist(SIGNATURE), now_ms())
    admit_unverified(request)
    raw = await request.body()
    verify_body(channel.config.secrets, signed, raw)
    return SlackDesk(channel, request.app.state.process.tenant(TENANT)), raw


def _respond(body: Block | None) -> Response:
    return Response(status_code=200) if body is None else JSONResponse(body)
