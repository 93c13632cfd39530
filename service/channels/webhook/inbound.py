"""Take decisions by signed webhook: verified over the raw body before anything of it is read, each id counted once.

The message's id is the request's Idempotency-Key, whoever the reviewer is: the same message again changes nothing and
is told how the item stands, and another message under the same id is refused.
"""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from sayso.clock import now_ms
from sayso.errors import IdempotencyConflict, NotAllowed, Unavailable
from sayso.records.decisions import Actor, ActorKind, DecisionRequest, Verdict
from sayso.records.suspensions import Status
from sayso.signing import SignedMessage, verify_message
from sayso.transitions.deciding import find_item
from service.auth.credentials import TENANT
from service.http.bodies import read_body
from service.http.openapi import problems
from service.settings import variable_of
from service.wiring import Wiring

router = APIRouter(prefix="/hooks", tags=["hooks"])

CHANNEL = "webhook"


class HookDecision(DecisionRequest):
    """A decision as it comes by webhook: the reviewer's word, whose it is, and on what."""

    suspension_id: str = Field(min_length=1, max_length=100)
    item_id: str = Field(min_length=1, max_length=100)
    reviewer: str = Field(min_length=1, max_length=64, description="The name of an active reviewer.")

    @property
    def word(self) -> DecisionRequest:
        """The decision alone."""
        return DecisionRequest.model_validate(
            self.model_dump(include=set(DecisionRequest.model_fields), exclude_unset=True)
        )


class HookAnswer(BaseModel):
    """How the item stands."""

    model_config = ConfigDict(frozen=True)

    suspension_id: str
    item_id: str
    status: Status = Field(description="The suspension's status: pending while other items or votes are missing.")
    verdict: Verdict | None = Field(description="Null while the quorum is not met.")
    repeated: bool = Field(description="Whether this message had been taken before.")


def _header(name: str, meaning: str, example: str) -> dict[str, Any]:
    schema = {"type": "string", "examples": [example]}
    return {"name": name, "in": "header", "required": True, "description": meaning, "schema": schema}


def _schema() -> dict[str, Any]:
    schema = HookDecision.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)  # what it refers to stands among the schemas of the API
    return schema


_DOCUMENTED = {
    "parameters": [
        _header("webhook-id", "The message's own id; the same when it is sent again.", "msg_2Lw9"),
        _header("webhook-timestamp", "When it was signed, in seconds since 1970.", "1795255307"),
        _header(
            "webhook-signature",
            "HMAC-SHA256 over `id.timestamp.body` in base64; several with spaces between them.",
            "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
        ),
    ],
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": _schema()}},
    },
}


@router.post(
    "/decisions",
    operation_id="takeSignedDecision",
    openapi_extra=_DOCUMENTED,
    responses=problems(400, 401, 403, 404, 409),
)
async def take_decision(request: Request) -> HookAnswer:
    """Put a reviewer's word on an item, vouched for by a Standard Webhooks signature."""
    parts: Wiring = request.app.state.process.tenant(TENANT)
    message_id, raw = await _verify(request, parts)
    sent = read_body(raw, HookDecision)
    reviewer = await parts.reviewers.find(sent.reviewer)
    if reviewer is None or not reviewer.active:
        raise NotAllowed(f"There is no active reviewer named {sent.reviewer!r}; send the name of one.")
    by = Actor(id=reviewer.name, kind=ActorKind.HUMAN, channel=CHANNEL)
    try:
        saved = await parts.desk.decide(
            sent.suspension_id, sent.item_id, sent.word, by, key=f"{CHANNEL}:{message_id}", asker=CHANNEL
        )
    except IdempotencyConflict as error:
        said = "This webhook-id came before with another body; give every new message an id of its own."
        raise IdempotencyConflict(said, webhook_id=message_id) from error
    outcome = find_item(saved.record, sent.item_id).outcome
    return HookAnswer(
        suspension_id=sent.suspension_id,
        item_id=sent.item_id,
        status=saved.record.status,
        verdict=outcome.verdict if outcome is not None else None,
        repeated=saved.repeated,
    )


async def _verify(request: Request, parts: Wiring) -> tuple[str, bytes]:
    """Return the message's id and body; raises `InvalidSignature`, or `Unavailable` while no secret is set."""
    secrets = [secret.get_secret_value() for secret in parts.settings.webhook_secret]
    if not secrets:
        raise Unavailable(f"This door is closed: the operator has to set {variable_of('webhook_secret')} to open it.")
    raw = await request.body()
    message = SignedMessage(
        id=_single(request, "webhook-id"),
        timestamp=_single(request, "webhook-timestamp"),
        signatures=_single(request, "webhook-signature"),
        body=raw,
    )
    return verify_message(secrets, message, now_ms()), raw


def _single(request: Request, name: str) -> str | None:
    values = request.headers.getlist(name)
    return values[0] if len(values) == 1 else None
