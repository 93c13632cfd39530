"""Decisions by signed webhook; the signature over the raw body is verified before parsing.

A registered sender has its own address, its own secrets and one reviewer. The address without a sender takes the
messages of `SAYSO_WEBHOOK_SECRET`, which may name any reviewer; it stays for senders that use it already.

The message's id is the idempotency key for every reviewer. A repeated message changes nothing and returns the item's
status; another message with the same id is refused.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field

from sayso.core.clock import now_ms
from sayso.core.records.decisions import DecisionRequest, Verdict
from sayso.core.records.suspensions import Status
from sayso.core.signing import SignedMessage, check_headers, verify_message
from sayso.core.transitions.deciding import find_item
from sayso.errors import IdempotencyConflict, InvalidSignature, NotAllowed, Unavailable
from service.core.settings import variable_of
from service.core.wiring import Wiring
from service.edge.http.bodies import read_body
from service.edge.http.middleware import admit_unverified
from service.edge.http.openapi import problems
from service.features.webhooks.endpoints import find_reviewer, find_secrets
from service.features.webhooks.store import Senders

router = APIRouter(prefix="/hooks", tags=["hooks"])

CHANNEL = "webhook"

SenderId = Annotated[str, Path(min_length=1, max_length=100, examples=["whs_019aa4a2f2f3d4e5f60718293a4b5c6d"])]


class _Sent(DecisionRequest):
    suspension_id: str = Field(min_length=1, max_length=100)
    item_id: str = Field(min_length=1, max_length=100)

    @property
    def decision(self) -> DecisionRequest:
        """The decision alone."""
        fields = self.model_dump(include=set(DecisionRequest.model_fields), exclude_unset=True)
        return DecisionRequest.model_validate(fields)


class HookDecision(_Sent):
    """A decision by webhook: the decision, its reviewer and its item."""

    reviewer: str = Field(min_length=1, max_length=64, description="The name of an active reviewer.")


class SenderDecision(_Sent):
    """A decision by a registered sender: the decision and its item."""

    reviewer: str | None = Field(
        default=None, min_length=1, max_length=64, description="The sender's own reviewer; may be omitted."
    )


class HookAnswer(BaseModel):
    """The item's status."""

    model_config = ConfigDict(frozen=True)

    suspension_id: str
    item_id: str
    status: Status = Field(description="The suspension's status: pending while other items or decisions are missing.")
    verdict: Verdict | None = Field(description="Null while the quorum is not met.")
    repeated: bool = Field(description="Whether this message was a repetition.")


def _header(name: str, meaning: str, example: str) -> dict[str, Any]:
    schema = {"type": "string", "examples": [example]}
    return {"name": name, "in": "header", "required": True, "description": meaning, "schema": schema}


def _document(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)  # the API's schemas include them
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {"parameters": _HEADERS, "requestBody": body}


_HEADERS = [
    _header("webhook-id", "The message's id; the same for a repeated message.", "msg_2Lw9"),
    _header("webhook-timestamp", "The time of the signature, in seconds since 1970.", "1795255307"),
    _header(
        "webhook-signature",
        "HMAC-SHA256 over `id.timestamp.body` in base64; several are separated by spaces.",
        "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
    ),
]


@router.post(
    "/decisions",
    operation_id="takeSignedDecision",
    openapi_extra=_document(HookDecision),
    responses=problems(400, 401, 403, 404, 409),
)
async def take_decision(request: Request) -> HookAnswer:
    """Record a reviewer's decision, authenticated by a Standard Webhooks signature."""
    parts = _parts_of(request)
    secrets = [secret.get_secret_value() for secret in parts.settings.webhook_secret]
    if not secrets:
        raise Unavailable(
            f"This address is closed. Register a sender on {parts.settings.public_url}/webhooks and use its address, "
            f"or set {variable_of('webhook_secret')}."
        )
    message_id, raw = await _verify(request, secrets)
    sent = read_body(raw, HookDecision)
    reviewer = await parts.reviewers.find(sent.reviewer)
    if reviewer is None or not reviewer.active:
        raise NotAllowed(f"There is no active reviewer named {sent.reviewer!r}. Send the name of one.")
    return await _decide(parts, sent, reviewer.name, _Message(message_id, CHANNEL))


@router.post(
    "/decisions/{sender_id}",
    operation_id="takeSenderDecision",
    openapi_extra=_document(SenderDecision),
    responses=problems(400, 401, 403, 404, 409),
)
async def take_sender_decision(request: Request, sender_id: SenderId) -> HookAnswer:
    """Record a decision of a registered sender, in the name of its reviewer."""
    parts = _parts_of(request)
    sender = await parts.part(Senders).find(sender_id)
    message_id, raw = await _verify(request, await find_secrets(parts, sender))
    if sender is None:
        raise InvalidSignature()
    sent = read_body(raw, SenderDecision)
    reviewer = await find_reviewer(parts, sender, sent.reviewer)
    return await _decide(parts, sent, reviewer, _Message(message_id, f"{CHANNEL}:{sender.id}"))


class _Message(NamedTuple):
    """A verified message: its id, and whose ids it is unique among."""

    id: str
    sender: str


async def _decide(parts: Wiring, sent: _Sent, reviewer: str, message: _Message) -> HookAnswer:
    by = await parts.reviewers.find_actor(reviewer, CHANNEL)
    key = f"{message.sender}:{message.id}"
    try:
        saved = await parts.desk.decide(
            sent.suspension_id, sent.item_id, sent.decision, by, key=key, asker=message.sender
        )
    except IdempotencyConflict as error:
        problem = "This webhook-id was used with another body. Give every new message its own id."
        raise IdempotencyConflict(problem, webhook_id=message.id) from error
    outcome = find_item(saved.record, sent.item_id).outcome
    return HookAnswer(
        suspension_id=sent.suspension_id,
        item_id=sent.item_id,
        status=saved.record.status,
        verdict=outcome.verdict if outcome is not None else None,
        repeated=saved.repeated,
    )


def _parts_of(request: Request) -> Wiring:
    parts: Wiring = request.app.state.process.wiring
    return parts


async def _verify(request: Request, secrets: Sequence[str]) -> tuple[str, bytes]:
    """Return the message's id and body; raises `InvalidSignature`."""
    message = SignedMessage(
        id=_single(request, "webhook-id"),
        timestamp=_single(request, "webhook-timestamp"),
        signatures=_single(request, "webhook-signature"),
        body=b"",
    )
    check_headers(message, now_ms())
    admit_unverified(request)
    raw = await request.body()
    return verify_message(secrets, replace(message, body=raw), now_ms()), raw


def _single(request: Request, name: str) -> str | None:
    values = request.headers.getlist(name)
    return values[0] if len(values) == 1 else None
