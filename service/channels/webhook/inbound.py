"""Decisions by signed webhook; the signature over the raw body is verified before parsing.

The message's id is the idempotency key for every reviewer. A repeated message changes nothing and returns the item's
status; another message with the same id is refused.
"""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from sayso.clock import now_ms
from sayso.errors import IdempotencyConflict, NotAllowed, Unavailable
from sayso.records.decisions import DecisionRequest, Verdict
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
    """A decision by webhook: the decision, its reviewer and its item."""

    suspension_id: str = Field(min_length=1, max_length=100)
    item_id: str = Field(min_length=1, max_length=100)
    reviewer: str = Field(min_length=1, max_length=64, description="The name of an active reviewer.")

    @property
    def decision(self) -> DecisionRequest:
        return DecisionRequest.model_validate(
            self.model_dump(include=set(DecisionRequest.model_fields), exclude_unset=True)
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


def _schema() -> dict[str, Any]:
    schema = HookDecision.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)  # the API's schemas include them
    return schema


_DOCUMENTED = {
    "parameters": [
        _header("webhook-id", "The message's id; the same for a repeated message.", "msg_2Lw9"),
        _header("webhook-timestamp", "The time of the signature, in seconds since 1970.", "1795255307"),
        _header(
            "webhook-signature",
            "HMAC-SHA256 over `id.timestamp.body` in base64; several are separated by spaces.",
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
    """Record a reviewer's decision, authenticated by a Standard Webhooks signature."""
    parts: Wiring = request.app.state.process.tenant(TENANT)
    message_id, raw = await _verify(request, parts)
    sent = read_body(raw, HookDecision)
    reviewer = await parts.reviewers.find(sent.reviewer)
    if reviewer is None or not reviewer.active:
        raise NotAllowed(f"There is no active reviewer named {sent.reviewer!r}. Send the name of one.")
    by = await parts.reviewers.find_actor(reviewer.name, CHANNEL)
    try:
        saved = await parts.desk.decide(
            sent.suspension_id, sent.item_id, sent.decision, by, key=f"{CHANNEL}:{message_id}", asker=CHANNEL
        )
    except IdempotencyConflict as error:
        problem = "This webhook-id was used with another body. Give every new message its own id."
        raise IdempotencyConflict(problem, webhook_id=message_id) from error
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
        raise Unavailable(f"Webhook decisions are disabled. Set {variable_of('webhook_secret')} to enable them.")
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
