"""See to reviewers and agents' keys; all of it takes an admin."""

from typing import Annotated, Literal

from fastapi import APIRouter, Body
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from sayso.canonical_json import JsonObject, digest_json
from sayso.errors import Conflict
from service.api.routing.contexts import Context
from service.api.routing.dependencies import Admin, IdempotencyKey, KeyId, Parts, ReviewerName
from service.api.routing.routes import SignedInRoute
from service.api.sessions import Password
from service.api.views.base import Timestamp, View
from service.auth.credentials import Principal
from service.http.openapi import WRITES, problems
from service.operations.withdrawals import withdraw_runs
from service.store.people import ApiKey, KeyKind
from service.store.suspensions.commits import Idempotency
from service.wiring import Wiring

reviewers = APIRouter(prefix="/reviewers", tags=["reviewers"], route_class=SignedInRoute)
keys = APIRouter(prefix="/keys", tags=["keys"], route_class=SignedInRoute)

_ADMIN_READS = problems(401, 403)


class _Request(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ReviewerRequest(_Request):
    """A new reviewer."""

    name: str = Field(min_length=1, max_length=64, examples=["anna"])
    password: Password
    roles: tuple[Literal["reviewer", "admin"], ...] = Field(default=("reviewer",), min_length=1, max_length=2)


class PasswordRequest(_Request):
    """A new password."""

    password: Password


class ReviewerView(View):
    """A person who may decide, and an admin who sees to people and keys besides."""

    name: str
    roles: tuple[str, ...]
    active: bool
    created_at: Timestamp = Field(validation_alias="created_at_ms")


class ReviewerList(BaseModel):
    """Everybody, by name."""

    reviewers: list[ReviewerView]


class KeyRequest(_Request):
    """A new key; two keys of one name and kind are the same agent's, reviewer's or provisioner's."""

    name: str = Field(min_length=1, max_length=64, examples=["support-bot"])
    kind: KeyKind = Field(
        default="agent",
        description="An agent asks; a reviewer's key decides in the name of that person, who has to exist; a "
        "provisioner makes instances of the Agent Approval Protocol under `/api/aap`.",
    )
    context: Context = Field(
        default={}, description="What is known of whoever holds the key, such as `env`. Rules read it as `context`."
    )


class KeyView(View):
    """What is known of a key; the key itself is kept by whoever it was given to."""

    id: str
    name: str
    kind: KeyKind
    created_at: Timestamp = Field(validation_alias="created_at_ms")
    revoked_at: Timestamp | None = Field(validation_alias="revoked_at_ms")
    ends_at: Timestamp | None = Field(validation_alias="ends_at_ms", description="When a rotated key stops to hold.")
    context: JsonObject


class RotateRequest(_Request):
    """How long the old key and the new one hold side by side."""

    overlap_s: int = Field(default=3600, strict=True, ge=0, le=30 * 86_400)


class NewKeyView(KeyView):
    """A fresh key."""

    key: Annotated[
        str | None, Field(default=None, description="The only copy; null when the same request is sent again.")
    ]


class KeyList(BaseModel):
    """All keys, the oldest first."""

    keys: list[KeyView]


@reviewers.post("", status_code=201, operation_id="addReviewer", responses=WRITES)
async def add_reviewer(body: ReviewerRequest, caller: Admin, parts: Parts, key: IdempotencyKey) -> ReviewerView:
    """Let a person in."""
    # The password is no part of what is kept of the request: a fast hash of it would be worth guessing.
    seen = _seen(caller, key, ["add reviewer", body.name, list(body.roles)], body.name)
    again = await parts.replays.recall(seen) if seen else None
    known = await parts.reviewers.find(again) if again else None
    if known is not None:
        return ReviewerView.model_validate(known)
    keys = await parts.api_keys.list_all()
    if any(one.name.casefold() == body.name and one.kind != "reviewer" for one in keys):
        raise Conflict(f"There is an agent named {body.name}, and nobody may be taken for it. Choose another name.")
    added = await parts.reviewers.add(body.name, body.password.get_secret_value(), body.roles)
    if seen:
        await parts.replays.remember(seen)
    return ReviewerView.model_validate(added)


@reviewers.get("", operation_id="listReviewers", responses=_ADMIN_READS)
async def list_reviewers(caller: Admin, parts: Parts) -> ReviewerList:
    """List everybody, those who were shut out included."""
    found = await parts.reviewers.list_all()
    return ReviewerList(reviewers=[ReviewerView.model_validate(one) for one in found])


@reviewers.post("/{name}/password", status_code=204, operation_id="setPassword", responses=WRITES)
async def set_password(name: ReviewerName, body: PasswordRequest, caller: Admin, parts: Parts) -> None:
    """Give a reviewer a new password; sessions opened with the old one end."""
    await parts.reviewers.set_password(name, body.password.get_secret_value())


@reviewers.post("/{name}/deactivate", operation_id="deactivateReviewer", responses=WRITES)
async def deactivate_reviewer(name: ReviewerName, caller: Admin, parts: Parts) -> ReviewerView:
    """Shut a reviewer out, their open sessions included. What they decided stays."""
    if name == caller.name:
        raise Conflict("You cannot shut yourself out; ask another admin to do it.")
    return ReviewerView.model_validate(await parts.reviewers.deactivate(name))


@keys.post("", status_code=201, operation_id="createKey", responses=WRITES)
async def create_key(body: KeyRequest, caller: Admin, parts: Parts, key: IdempotencyKey) -> NewKeyView:
    """Make a key. It is shown this once; the store has only its hash."""
    request: list[JsonValue] = ["create key", body.name, body.kind, body.context]
    again = await _recall_key(parts, caller, _seen(caller, key, request, ""))
    if again is not None:
        return NewKeyView.model_validate(again)
    known = await parts.reviewers.find(body.name if body.kind == "reviewer" else body.name.casefold())
    if body.kind == "reviewer" and (known is None or not known.active):
        raise Conflict(f"There is no active reviewer named {body.name}; add the person first.")
    if body.kind != "reviewer" and known is not None:
        raise Conflict(
            f"There is a person named {known.name}, and no agent may be taken for them. Choose another name."
        )
    made, secret = await parts.api_keys.create(body.name, kind=body.kind, context=body.context)
    seen = _seen(caller, key, request, made.id)
    if seen:
        await parts.replays.remember(seen)
    return NewKeyView.model_validate(made).model_copy(update={"key": secret})


@keys.post("/{key_id}/rotate", status_code=201, operation_id="rotateKey", responses=WRITES)
async def rotate_key(
    key_id: KeyId,
    caller: Admin,
    parts: Parts,
    key: IdempotencyKey,
    body: Annotated[RotateRequest | None, Body()] = None,
) -> NewKeyView:
    """Make the next key of the same name and kind; the one before holds beside it for a while, then no more."""
    overlap_s = (body or RotateRequest()).overlap_s
    request: list[JsonValue] = ["rotate key", key_id, overlap_s]
    again = await _recall_key(parts, caller, _seen(caller, key, request, ""))
    if again is not None:
        return NewKeyView.model_validate(again)
    made, secret = await parts.api_keys.rotate(key_id, overlap_s)
    seen = _seen(caller, key, request, made.id)
    if seen:
        await parts.replays.remember(seen)
    return NewKeyView.model_validate(made).model_copy(update={"key": secret})


@keys.get("", operation_id="listKeys", responses=_ADMIN_READS)
async def list_keys(caller: Admin, parts: Parts) -> KeyList:
    """List all keys, the revoked ones included."""
    found = await parts.api_keys.list_all()
    return KeyList(keys=[KeyView.model_validate(one) for one in found])


@keys.post("/{key_id}/revoke", operation_id="revokeKey", responses=WRITES)
async def revoke_key(key_id: KeyId, caller: Admin, parts: Parts) -> KeyView:
    """Make a key fail everywhere within a second, and cancel every unfinished run that it asked for, for good."""
    revoked = await parts.api_keys.revoke(key_id)
    await withdraw_runs(parts, revoked.name)
    return KeyView.model_validate(revoked)


async def _recall_key(parts: Wiring, caller: Principal, seen: Idempotency | None) -> ApiKey | None:
    key_id = await parts.replays.recall(seen) if seen else None
    known = await parts.api_keys.list_all() if key_id else []
    return next((one for one in known if one.id == key_id), None)


def _seen(caller: Principal, key: str | None, request: list[JsonValue], ref: str) -> Idempotency | None:
    if key is None:
        return None
    return Idempotency(actor=caller.name, key=key, fingerprint=digest_json(request)[:32], ref=ref)
