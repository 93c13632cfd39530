"""The webhooks page, for admins: endpoints that receive events, failed messages, and senders of signed decisions."""

from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.records.events import WebhookEvent
from sayso.core.signing import public_key_of
from sayso.core.text.language import _, mark
from sayso.errors import InvalidInput
from sayso.wire.channels import Scheme
from service.core.auth.reviewers import require_role
from service.edge.web.pages import receive, show
from service.edge.web.sessions import Post, RecordedRoute, SignedIn, Visitor, wiring_of
from service.features.webhooks import endpoints as managing
from service.features.webhooks.endpoints import EndpointDraft
from service.features.webhooks.store import Endpoint

_PAGE = "pages/webhooks.html"
_OVERLAP_S = 86_400
_MESSAGE = "message:"
_DONE = {
    "verified": mark("The endpoint returned the challenge. It receives events from now on."),
    "disable": mark("The endpoint is disabled. Verify it again to send it events."),
    "delete": mark("The endpoint is deleted."),
    "again": mark("The messages are sent again."),
    "revoke": mark("The sender is revoked. Nothing from it is accepted any more."),
}

router = APIRouter(route_class=RecordedRoute)


class Secret(NamedTuple):
    """A new secret, shown once; a public key for ed25519."""

    owner: str
    label: str
    text: str


class EndpointRow(NamedTuple):
    """An endpoint as the page shows it."""

    endpoint: Endpoint
    public_key: str | None
    everything: bool


@router.get("/webhooks")
async def read(request: Request, visitor: SignedIn, done: str = "") -> Response:
    """Show endpoints, failed messages and senders."""
    require_role(visitor.principal.roles, "admin")
    return await show(request, visitor, _PAGE, **await _gather(request, visitor, {}), done=_DONE.get(done, ""))


@router.post("/webhooks/endpoints")
async def create_endpoint(request: Request, visitor: SignedIn) -> Response:
    """Register the endpoint of the form, and show its secret."""
    async with _receive(request, visitor) as post:
        events = tuple(event for event in WebhookEvent if post.get(f"event:{event}"))
        if not events:
            raise InvalidInput(_("Choose at least one event."))
        scheme: Scheme = "ed25519" if post.get("signature") == "ed25519" else "hmac"
        made = await managing.register_endpoint(
            wiring_of(request),
            visitor.principal,
            EndpointDraft(post.get("url", "").strip(), events, scheme, post.get("description", "").strip()[:200]),
        )
        return await _show_secret(request, visitor, _secret_of(made))


@router.post("/webhooks/endpoints/{endpoint_id}")
async def change_endpoint(request: Request, visitor: SignedIn, endpoint_id: str) -> Response:
    """Verify, rotate, disable or delete an endpoint."""
    wiring, caller = wiring_of(request), visitor.principal
    async with _receive(request, visitor) as post:
        act = post.get("act", "")
        if act == "rotate":
            made = await managing.rotate_endpoint(wiring, caller, endpoint_id, _OVERLAP_S)
            return await _show_secret(request, visitor, _secret_of(made))
        if act == "verified":
            await managing.verify_endpoint(wiring, caller, endpoint_id)
        elif act == "disable":
            await managing.disable_endpoint(wiring, caller, endpoint_id)
        elif act == "delete":
            await managing.delete_endpoint(wiring, caller, endpoint_id)
        else:
            raise InvalidInput(_("The form names no known action. Open the page again and send it from there."))
    return RedirectResponse(f"/webhooks?done={act}", 303)


@router.post("/webhooks/failures")
async def send_again(request: Request, visitor: SignedIn) -> Response:
    """Send the chosen messages again, or all."""
    wiring, caller = wiring_of(request), visitor.principal
    async with _receive(request, visitor) as post:
        require_role(caller.roles, "admin")
        chosen = [name.removeprefix(_MESSAGE) for name in post if name.startswith(_MESSAGE)]
        if post.get("act") == "all":
            chosen = [failure.id for failure in await managing.list_failures(wiring, caller)]
        if not chosen:
            raise InvalidInput(_("Choose the messages to send again."))
        await managing.send_again(wiring, caller, chosen)
    return RedirectResponse("/webhooks?done=again", 303)


@router.post("/webhooks/senders")
async def create_sender(request: Request, visitor: SignedIn) -> Response:
    """Register the sender of the form, and show its secret."""
    async with _receive(request, visitor) as post:
        name, reviewer = post.get("name", "").strip(), post.get("reviewer", "").strip()
        made = await managing.register_sender(wiring_of(request), visitor.principal, name, reviewer)
        return await _show_secret(request, visitor, Secret(made.sender.name, "Secret", made.secret))


@router.post("/webhooks/senders/{sender_id}")
async def change_sender(request: Request, visitor: SignedIn, sender_id: str) -> Response:
    """Rotate the secret of a sender, or revoke it."""
    wiring, caller = wiring_of(request), visitor.principal
    async with _receive(request, visitor) as post:
        if post.get("act") == "rotate":
            made = await managing.rotate_sender(wiring, caller, sender_id, _OVERLAP_S)
            return await _show_secret(request, visitor, Secret(made.sender.name, "Secret", made.secret))
        await managing.revoke_sender(wiring, caller, sender_id)
    return RedirectResponse("/webhooks?done=revoke", 303)


def _secret_of(made: managing.NewEndpoint) -> Secret:
    if made.secret is not None:
        return Secret(made.endpoint.url, "Secret", made.secret)
    return Secret(made.endpoint.url, "Public key", public_key_of(made.endpoint.secrets[0].secret))


async def _show_secret(request: Request, visitor: Visitor, secret: Secret) -> Response:
    response = await show(request, visitor, _PAGE, **await _gather(request, visitor, {}, secret))
    response.headers["Cache-Control"] = "no-store"
    return response


def _receive(request: Request, visitor: Visitor) -> AbstractAsyncContextManager[Post]:
    return receive(request, visitor, _PAGE, partial(_gather, request, visitor), admins=True)


async def _gather(request: Request, visitor: Visitor, post: Post, secret: Secret | None = None) -> dict[str, Any]:
    wiring, caller = wiring_of(request), visitor.principal
    endpoints = await managing.list_endpoints(wiring, caller)
    return {
        "title": _("Webhooks"),
        "endpoints": [
            EndpointRow(
                endpoint,
                public_key_of(endpoint.secrets[0].secret) if managing.scheme_of(endpoint) == "ed25519" else None,
                everything=len(endpoint.events) == len(WebhookEvent),
            )
            for endpoint in endpoints
        ],
        "urls": {endpoint.id: endpoint.url for endpoint in endpoints},
        "failures": await managing.list_failures(wiring, caller),
        "senders": [sender for sender in await managing.list_senders(wiring, caller) if sender.revoked_at_ms is None],
        "base": wiring.settings.public_url,
        "events": list(WebhookEvent),
        "typed": {**dict.fromkeys(("url", "description", "signature", "name", "reviewer"), ""), **post},
        "secret": secret,
    }
