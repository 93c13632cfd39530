"""Routes and the page of webhooks: endpoints for events, failed messages, and senders of signed decisions."""

from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Body, Path, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import Field

from sayso.core.records.events import WebhookEvent
from sayso.core.signing import public_key_of
from sayso.core.text.language import _, mark
from sayso.errors import InvalidInput
from sayso.wire.channels import (
    EndpointList,
    EndpointView,
    EventList,
    FailureList,
    FailureView,
    NewEndpointView,
    NewSenderView,
    RedeliverView,
    Scheme,
    SenderList,
    SenderView,
)
from sayso.wire.models import RequestBody, moment
from service.channels.webhook_events import describe_schema
from service.core.store.announcements import Delivery
from service.edge.api.dependencies import Caller, Parts, Person
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import WRITES, problems
from service.edge.web.pages import receive, show
from service.edge.web.sessions import Post, RecordedRoute, SignedIn, Visitor, wiring_of
from service.features.webhooks import endpoints as managing
from service.features.webhooks.endpoints import EndpointDraft, NewEndpoint
from service.features.webhooks.store import Endpoint, Sender

endpoints = APIRouter(prefix="/webhooks/endpoints", tags=["webhooks"], route_class=SignedInRoute)
events = APIRouter(prefix="/webhooks/events", tags=["webhooks"], route_class=SignedInRoute)
failures = APIRouter(prefix="/webhooks/failures", tags=["webhooks"], route_class=SignedInRoute)
senders = APIRouter(prefix="/webhooks/senders", tags=["webhooks"], route_class=SignedInRoute)

EndpointId = Annotated[str, Path(min_length=1, max_length=100, examples=["whe_019aa4a2f2f3d4e5f60718293a4b5c6d"])]
SenderId = Annotated[str, Path(min_length=1, max_length=100, examples=["whs_019aa4a2f2f3d4e5f60718293a4b5c6d"])]
_READS = problems(401, 403)
LONGEST_OVERLAP_S = 30 * 86_400


class EndpointRequest(RequestBody):
    """A new endpoint. It receives events once it is verified."""

    url: str = Field(min_length=1, max_length=2_000, examples=["https://hooks.example.com/sayso"])
    events: tuple[WebhookEvent, ...] = Field(default=tuple(WebhookEvent), min_length=1, max_length=50)
    signature: Scheme = Field(default="hmac", description="`hmac` (v1) or `ed25519` (v1a).")
    description: str = Field(default="", max_length=200)


class OverlapRequest(RequestBody):
    """How long the old secret stays valid beside the new one."""

    overlap_s: int = Field(default=86_400, strict=True, ge=0, le=LONGEST_OVERLAP_S)


class RedeliverRequest(RequestBody):
    """The messages to send again."""

    ids: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = Field(min_length=1, max_length=200)


class SenderRequest(RequestBody):
    """A new sender, and the reviewer in whose name it decides."""

    name: str = Field(min_length=1, max_length=64, examples=["pager"])
    reviewer: str = Field(min_length=1, max_length=64, examples=["anna"])


@events.get("", operation_id="listWebhookEvents", responses=problems(401, 403))
async def list_events(caller: Caller) -> EventList:
    """Return the JSON Schema of every event that endpoints receive."""
    return EventList(events={event: describe_schema(event) for event in WebhookEvent})


@endpoints.get("", operation_id="listEndpoints", responses=_READS)
async def list_endpoints(caller: Caller, parts: Parts) -> EndpointList:
    """List all endpoints for an admin, and its own for an agent."""
    return EndpointList(endpoints=[_view(endpoint) for endpoint in await managing.list_endpoints(parts, caller)])


@endpoints.post("", status_code=201, operation_id="createEndpoint", responses=WRITES)
async def create_endpoint(body: EndpointRequest, caller: Caller, parts: Parts) -> NewEndpointView:
    """Register an endpoint: by an admin for all runs, by an agent for its own. Its secret is returned once."""
    draft = EndpointDraft(body.url, body.events, body.signature, body.description)
    return _view_new(await managing.register_endpoint(parts, caller, draft))


@endpoints.post("/{endpoint_id}/verify", operation_id="verifyEndpoint", responses=WRITES | problems(429))
async def verify_endpoint(endpoint_id: EndpointId, caller: Caller, parts: Parts) -> EndpointView:
    """Send a signed challenge, which the endpoint must return as `{"challenge": "…"}`; then it receives events."""
    return _view(await managing.verify_endpoint(parts, caller, endpoint_id))


@endpoints.post("/{endpoint_id}/disable", operation_id="disableEndpoint", responses=WRITES)
async def disable_endpoint(endpoint_id: EndpointId, caller: Caller, parts: Parts) -> EndpointView:
    """Send the endpoint nothing until it is verified again."""
    return _view(await managing.disable_endpoint(parts, caller, endpoint_id))


@endpoints.post("/{endpoint_id}/rotate", operation_id="rotateEndpoint", responses=WRITES)
async def rotate_endpoint(
    endpoint_id: EndpointId, caller: Caller, parts: Parts, body: Annotated[OverlapRequest | None, Body()] = None
) -> NewEndpointView:
    """Create a new secret. For `overlap_s` seconds, messages carry a signature of the old one, too."""
    overlap_s = (body or OverlapRequest()).overlap_s
    return _view_new(await managing.rotate_endpoint(parts, caller, endpoint_id, overlap_s))


@endpoints.delete("/{endpoint_id}", status_code=204, operation_id="deleteEndpoint", responses=WRITES)
async def delete_endpoint(endpoint_id: EndpointId, caller: Caller, parts: Parts) -> None:
    """Delete an endpoint. Its undelivered messages are not sent."""
    await managing.delete_endpoint(parts, caller, endpoint_id)


@failures.get("", operation_id="listFailures", responses=_READS)
async def list_failures(caller: Caller, parts: Parts) -> FailureList:
    """List messages that were refused and not delivered since, with the reasons."""
    return FailureList(failures=[_view_failure(failure) for failure in await managing.list_failures(parts, caller)])


@failures.post("/redeliver", operation_id="redeliver", responses=WRITES)
async def redeliver(body: RedeliverRequest, caller: Caller, parts: Parts) -> RedeliverView:
    """Send messages again at once. Receivers recognize repeated ones by `webhook-id`."""
    return RedeliverView(redelivered=await managing.send_again(parts, caller, body.ids))


@senders.get("", operation_id="listSenders", responses=_READS)
async def list_senders(caller: Person, parts: Parts) -> SenderList:
    """List all senders, including revoked ones."""
    return SenderList(senders=[_view_sender(sender) for sender in await managing.list_senders(parts, caller)])


@senders.post("", status_code=201, operation_id="createSender", responses=WRITES)
async def create_sender(body: SenderRequest, caller: Person, parts: Parts) -> NewSenderView:
    """Register a sender, which decides in the name of one reviewer. Its secret is returned once."""
    made = await managing.register_sender(parts, caller, body.name, body.reviewer)
    return NewSenderView(**dict(_view_sender(made.sender)), secret=made.secret)


@senders.post("/{sender_id}/rotate", operation_id="rotateSender", responses=WRITES)
async def rotate_sender(
    sender_id: SenderId, caller: Person, parts: Parts, body: Annotated[OverlapRequest | None, Body()] = None
) -> NewSenderView:
    """Create a new secret. The old one is accepted for `overlap_s` more seconds."""
    made = await managing.rotate_sender(parts, caller, sender_id, (body or OverlapRequest()).overlap_s)
    return NewSenderView(**dict(_view_sender(made.sender)), secret=made.secret)


@senders.post("/{sender_id}/revoke", operation_id="revokeSender", responses=WRITES)
async def revoke_sender(sender_id: SenderId, caller: Person, parts: Parts) -> SenderView:
    """Refuse everything from a sender at once, for good."""
    return _view_sender(await managing.revoke_sender(parts, caller, sender_id))


def _view(endpoint: Endpoint) -> EndpointView:
    scheme = managing.scheme_of(endpoint)
    return EndpointView(
        **endpoint.model_dump(include=set(EndpointView.model_fields)),
        signature=scheme,
        public_key=public_key_of(endpoint.secrets[0].secret) if scheme == "ed25519" else None,
        created_at=moment(endpoint.created_at_ms),
    )


def _view_new(made: NewEndpoint) -> NewEndpointView:
    return NewEndpointView(**dict(_view(made.endpoint)), secret=made.secret)


def _view_sender(sender: Sender) -> SenderView:
    return SenderView(
        **sender.model_dump(include=set(SenderView.model_fields)),
        path=f"/hooks/decisions/{sender.id}",
        created_at=moment(sender.created_at_ms),
        revoked_at=moment(sender.revoked_at_ms),
    )


def _view_failure(message: Delivery) -> FailureView:
    next_ms = message.not_before_ms if message.ended is None else None
    shown = {name: getattr(message, name) for name in ("id", "message_id", "endpoint_id", "type", "tries", "status")}
    times = {"created_at_ms": message.created_at_ms, "tried_at_ms": message.tried_at_ms, "next_try_at": next_ms}
    return FailureView.model_validate({**shown, **times, "reason": message.reason})


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
    return await show(request, visitor, _PAGE, **await _gather(request, visitor, {}), done=_DONE.get(done, ""))


@router.post("/webhooks/endpoints")
async def create_endpoint_by_form(request: Request, visitor: SignedIn) -> Response:
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
        chosen = [name.removeprefix(_MESSAGE) for name in post if name.startswith(_MESSAGE)]
        if post.get("act") == "all":
            chosen = [failure.id for failure in await managing.list_failures(wiring, caller)]
        if not chosen:
            raise InvalidInput(_("Choose the messages to send again."))
        await managing.send_again(wiring, caller, chosen)
    return RedirectResponse("/webhooks?done=again", 303)


@router.post("/webhooks/senders")
async def create_sender_by_form(request: Request, visitor: SignedIn) -> Response:
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
    return receive(request, visitor, _PAGE, partial(_gather, request, visitor))


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
