"""The page of notifications: browsers and mail addresses; and the public manifest and service worker of the app."""

import json
from functools import partial
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, RedirectResponse, Response

from sayso.core.text.language import _, mark
from sayso.errors import InvalidInput
from service.channels.base import DeliveryFailed
from service.channels.kinds import Channels
from service.channels.mail import MailChannel, enter_code, mail_code
from service.channels.push import PushChannel, forget_browser, subscribe
from service.core.auth.credentials import require_own_password
from service.edge.http.assets import STATIC, asset
from service.edge.web.pages import receive, show
from service.edge.web.sessions import Post, RecordedRoute, SignedIn, Visitor, wiring_of

router = APIRouter(route_class=RecordedRoute)

_COLOR, _PAPER = "#1d6f5c", "#f5f6f4"


@router.get("/manifest.webmanifest")
async def read_manifest() -> Response:
    """Describe the dashboard as an app."""
    icons = [
        {"src": asset("icon-192.png"), "sizes": "192x192", "type": "image/png", "purpose": "any"},
        {"src": asset("icon-512.png"), "sizes": "512x512", "type": "image/png", "purpose": "any"},
        {"src": asset("icon-maskable-512.png"), "sizes": "512x512", "type": "image/png", "purpose": "maskable"},
        {"src": asset("favicon.svg"), "sizes": "any", "type": "image/svg+xml", "purpose": "any"},
    ]
    manifest = {
        "id": "/",
        "name": "Sayso",
        "short_name": "Sayso",
        "description": "Approve what your agents do.",
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "theme_color": _COLOR,
        "background_color": _PAPER,
        "icons": icons,
    }
    return Response(json.dumps(manifest), media_type="application/manifest+json")


@router.get("/service-worker.js")
async def read_service_worker() -> FileResponse:
    """Return the script that shows notifications. It handles no requests and stores nothing."""
    return FileResponse(STATIC / "service-worker.js", media_type="text/javascript")


PATH = "/me/notifications"
_PAGE = "pages/notifications.html"
_DONE = {
    "mailed": mark("The code is on its way. Enter it below within 10 minutes."),
    "linked": mark("The address is linked."),
    "push": mark("This browser will notify you."),
    "removed": mark("Removed."),
}

Kind = TypeVar("Kind", MailChannel, PushChannel)


@router.get(PATH)
async def read(request: Request, visitor: SignedIn, done: str = "") -> Response:
    """Show the browsers and addresses of the visitor."""
    return await show(request, visitor, _PAGE, **await _gather(request, visitor, {}), done=_DONE.get(done, ""))


@router.post(f"{PATH}/mail")
async def send_code(request: Request, visitor: SignedIn) -> Response:
    """Mail a code to an address."""
    return await _act(request, visitor, _send_code, "mailed#mail-h")


@router.post(f"{PATH}/code")
async def link_address(request: Request, visitor: SignedIn) -> Response:
    """Link the address to which a code was mailed."""
    return await _act(request, visitor, _link_address, "linked#mail-h")


@router.post(f"{PATH}/push")
async def add_browser(request: Request, visitor: SignedIn) -> Response:
    """Subscribe the visitor's browser."""
    return await _act(request, visitor, _add_browser, "push")


@router.post(f"{PATH}/remove")
async def remove(request: Request, visitor: SignedIn) -> Response:
    """Remove a browser or an address."""
    return await _act(request, visitor, _remove, "removed")


async def _send_code(request: Request, visitor: Visitor, post: Post) -> None:
    channel = _find(request, MailChannel, post)
    page = f"{wiring_of(request).settings.public_url}{PATH}"
    try:
        await mail_code(
            wiring_of(request), channel, visitor.name, post.get("address", "").strip(), page, visitor.principal.made
        )
    except DeliveryFailed as failure:
        raise InvalidInput(_("The code could not be mailed: %(reason)s", reason=failure.reason)) from failure


async def _link_address(request: Request, visitor: Visitor, post: Post) -> None:
    await enter_code(wiring_of(request), _find(request, MailChannel, post), visitor.name, post.get("code", ""))


async def _add_browser(request: Request, visitor: Visitor, post: Post) -> None:
    channel = _find(request, PushChannel, post)
    sent = (post.get("endpoint", ""), post.get("p256dh", ""), post.get("auth", ""))
    await subscribe(wiring_of(request), channel, visitor.name, sent, post.get("label", "")[:100])


async def _remove(request: Request, visitor: Visitor, post: Post) -> None:
    wiring = wiring_of(request)
    contacts = {contact.id: contact for contact in await wiring.contacts.list_of(visitor.name)}
    contact = contacts.get(post.get("which", ""))
    if contact is not None and isinstance(_channels(request).find(contact.channel), PushChannel):
        await forget_browser(wiring, contact.channel, contact.address, by=visitor.name)
    elif contact is not None:
        await wiring.contacts.unlink(visitor.name, contact.id, visitor.name)


async def _act(request: Request, visitor: Visitor, act: Any, done: str) -> Response:
    async with receive(request, visitor, _PAGE, partial(_gather, request, visitor)) as post:
        if act is not _remove:
            require_own_password(visitor.principal)
        await act(request, visitor, post)
    return RedirectResponse(f"{PATH}?done={done}", 303)


def _channels(request: Request) -> Channels:
    channels: Channels = request.app.state.channels
    return channels


def _of_kind(request: Request, kind: type[Kind]) -> list[Kind]:
    return [channel for channel in _channels(request).by_name.values() if isinstance(channel, kind)]


def _find(request: Request, kind: type[Kind], post: Post) -> Kind:
    for channel in _of_kind(request, kind):
        if channel.name == post.get("channel"):
            return channel
    raise InvalidInput(_("This channel is no longer configured. Open the page again."))


async def _gather(request: Request, visitor: Visitor, post: Post) -> dict[str, Any]:
    contacts = await wiring_of(request).contacts.list_of(visitor.name)
    push, mail = _of_kind(request, PushChannel), _of_kind(request, MailChannel)
    return {
        "title": _("Notifications"),
        "address": post.get("address", ""),
        "push": [(channel.name, await channel.public_key()) for channel in push],
        "mail": [channel.name for channel in mail],
        "browsers": [contact for contact in contacts if contact.channel in {channel.name for channel in push}],
        "addresses": [contact for contact in contacts if contact.channel in {channel.name for channel in mail}],
    }
