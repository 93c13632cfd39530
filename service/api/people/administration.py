"""Routes of reviewers and API keys, for admins."""

from typing import Annotated, Literal

from fastapi import APIRouter, Body
from pydantic import BaseModel, Field, JsonValue

from sayso.core.canonical_json import JsonObject, digest_json
from service.api.routing.contexts import Context
from service.api.routing.dependencies import Admin, IdempotencyKey, KeyId, OpenChannels, Parts, Person, ReviewerName
from service.api.routing.routes import SignedInRoute
from service.api.sessions import Password
from service.api.views.base import RequestBody, Timestamp, View
from service.auth.credentials import Principal
from service.channels.notices import reset_password
from service.http.openapi import WRITES, problems
from service.operations.people import keys as managing
from service.operations.people import reviewers as operations
from service.store.people import ApiKey, KeyKind
from service.store.suspensions.commits import Idempotency
from service.wiring import Wiring

reviewers = APIRouter(prefix="/reviewers", tags=["reviewers"], route_class=SignedInRoute)
keys = APIRouter(prefix="/keys", tags=["keys"], route_class=SignedInRoute)

_ADMIN_READS = problems(401, 403)


class ReviewerRequest(RequestBody):
    """A new reviewer."""

    name: str = Field(min_length=1, max_length=64, examples=["anna"])
    password: Password
    roles: tuple[Literal["reviewer", "admin", "auditor"], ...] = Field(
        default=("reviewer",),
        min_length=1,
        max_length=3,
        description="Admins also manage people and keys; auditors also read the activity log.",
    )


class PasswordRequest(RequestBody):
    """A new password."""

    password: Password


class ManagerRequest(RequestBody):
    """Who manages a person."""

    manager: str | None = Field(min_length=1, max_length=64, description="The name of a person; null for none.")


class ReviewerView(View):
    """A person who may decide; admins also manage people and keys."""

    name: str
    roles: tuple[str, ...]
    active: bool
    manager: str | None
    password_by: str = Field(description="Who else set the password; empty once the person has changed it.")
    created_at: Timestamp = Field(validation_alias="created_at_ms")


class ReviewerList(BaseModel):
    """All reviewers by name."""

    reviewers: list[ReviewerView]


class KeyRequest(RequestBody):
    """A new key. Keys with the same name and kind belong to the same agent, reviewer or provisioner."""

    name: str = Field(min_length=1, max_length=64, examples=["support-bot"])
    kind: KeyKind = Field(
        default="agent",
        description="`agent` starts runs; `reviewer` decides in the name of an existing person; `provisioner` creates "
        "instances of the Agent Approval Protocol under `/api/aap`.",
    )
    context: Context = Field(
        default={}, description="Verified facts about the key's holder, such as `env`. Rules read it as `context`."
    )
    owner: str | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="The person who owns an agent's key. Rules read it as `who.owner`.",
    )


class KeyView(View):
    """A key without its secret."""

    id: str
    name: str
    kind: KeyKind
    created_at: Timestamp = Field(validation_alias="created_at_ms")
    revoked_at: Timestamp | None = Field(validation_alias="revoked_at_ms")
    ends_at: Timestamp | None = Field(validation_alias="ends_at_ms", description="When a rotated key becomes invalid.")
    context: JsonObject
    owner: str | None
    created_by: str = Field(description="The person who made the key; empty where nobody is known.")
    listed: bool = Field(
        default=True, description="False for a key that no Sayso made: find out who wrote it, and revoke it."
    )
    last_used_at: Timestamp | None = Field(default=None, description="To a minute; null for a key that was never used.")


class RotateRequest(RequestBody):
    """How long the old key stays valid beside the new one."""

    overlap_s: int = Field(default=3600, strict=True, ge=0, le=30 * 86_400)


class NewKeyView(KeyView):
    """A new key with its secret."""

    key: Annotated[str | None, Field(default=None, description="The only copy; null if the request is repeated.")]


class KeyList(BaseModel):
    """All keys, the oldest first."""

    keys: list[KeyView]


@reviewers.post("", status_code=201, operation_id="addReviewer", responses=WRITES)
async def add_reviewer(body: ReviewerRequest, caller: Admin, parts: Parts, key: IdempotencyKey) -> ReviewerView:
    """Add a reviewer."""
    # The fingerprint excludes the password: a fast hash of it could be guessed.
    request = _idempotency(caller, key, ["add reviewer", body.name, list(body.roles)], body.name)
    repeated = await parts.replays.recall(request) if request else None
    known = await parts.reviewers.find(repeated) if repeated else None
    if known is not None:
        return ReviewerView.model_validate(known)
    added = await operations.add_reviewer(parts, body.name, body.password.get_secret_value(), body.roles, caller.name)
    if request:
        await parts.replays.remember(request)
    return ReviewerView.model_validate(added)


@reviewers.get("", operation_id="listReviewers", responses=_ADMIN_READS)
async def list_reviewers(caller: Admin, parts: Parts) -> ReviewerList:
    """List all reviewers, including deactivated ones."""
    reviewers = await parts.reviewers.list_all()
    return ReviewerList(reviewers=[ReviewerView.model_validate(reviewer) for reviewer in reviewers])


@reviewers.post("/{name}/password", status_code=204, operation_id="setPassword", responses=WRITES)
async def set_password(
    name: ReviewerName, body: PasswordRequest, caller: Admin, parts: Parts, channels: OpenChannels
) -> None:
    """Set a reviewer's password. Existing sessions end, and the person is notified over every linked channel.

    Until its person changes it, the password is marked: decisions with it count as yours, too.
    """
    await reset_password(parts, channels, name, body.password.get_secret_value(), caller.name)


@reviewers.post("/{name}/deactivate", operation_id="deactivateReviewer", responses=WRITES)
async def deactivate_reviewer(name: ReviewerName, caller: Admin, parts: Parts) -> ReviewerView:
    """Deactivate a reviewer and end their sessions. Their decisions remain."""
    return ReviewerView.model_validate(await operations.deactivate_reviewer(parts, name, caller.name))


@reviewers.post("/{name}/manager", operation_id="setManager", responses=WRITES)
async def set_manager(name: ReviewerName, body: ManagerRequest, caller: Admin, parts: Parts) -> ReviewerView:
    """Set who manages a person. Rules may ask this manager; runs that have begun keep the earlier one."""
    return ReviewerView.model_validate(await parts.reviewers.set_manager(name, body.manager))


@keys.post("", status_code=201, operation_id="createKey", responses=WRITES)
async def create_key(body: KeyRequest, caller: Person, parts: Parts, key: IdempotencyKey) -> NewKeyView:
    """Create a key. Its secret is returned once; the store has only a hash.

    A reviewer's key is made by its person alone, all others by admins.
    """
    request: list[JsonValue] = ["create key", body.name, body.kind, body.context]
    request += [body.owner] if body.owner is not None else []
    repeated = await _recall_key(parts, _idempotency(caller, key, request))
    if repeated is not None:
        return NewKeyView.model_validate(repeated)
    created, secret = await managing.create_key(parts, caller, body.name, body.kind, body.context, body.owner)
    return await _show_new_key(parts, created, secret, _idempotency(caller, key, request, created.id))


@keys.post("/{key_id}/rotate", status_code=201, operation_id="rotateKey", responses=WRITES)
async def rotate_key(
    key_id: KeyId,
    caller: Person,
    parts: Parts,
    key: IdempotencyKey,
    body: Annotated[RotateRequest | None, Body()] = None,
) -> NewKeyView:
    """Create the next key with the same name and kind. The old one stays valid for `overlap_s` seconds."""
    overlap_s = (body or RotateRequest()).overlap_s
    request: list[JsonValue] = ["rotate key", key_id, overlap_s]
    repeated = await _recall_key(parts, _idempotency(caller, key, request))
    if repeated is not None:
        return NewKeyView.model_validate(repeated)
    created, secret = await managing.rotate_key(parts, caller, key_id, overlap_s)
    return await _show_new_key(parts, created, secret, _idempotency(caller, key, request, created.id))


@keys.get("", operation_id="listKeys", responses=_ADMIN_READS)
async def list_keys(caller: Person, parts: Parts) -> KeyList:
    """List all keys, including revoked ones; people who are no admins see the reviewer's keys of their own."""
    keys, uses = await managing.list_keys(parts, caller), await parts.api_keys.list_uses()
    return KeyList(
        keys=[
            KeyView.model_validate(key).model_copy(update={"last_used_at": uses.get(key.id), "listed": listed})
            for _, key, listed in keys
        ]
    )


@keys.post("/{key_id}/revoke", operation_id="revokeKey", responses=WRITES)
async def revoke_key(key_id: KeyId, caller: Person, parts: Parts) -> KeyView:
    """Revoke a key everywhere within a second, and cancel its unfinished runs for good."""
    return KeyView.model_validate(await managing.revoke_key(parts, caller, key_id))


async def _recall_key(parts: Wiring, request: Idempotency | None) -> ApiKey | None:
    key_id = await parts.replays.recall(request) if request else None
    known = await parts.api_keys.list_all() if key_id else []
    return next((key for key in known if key.id == key_id), None)


async def _show_new_key(parts: Wiring, created: ApiKey, secret: str, request: Idempotency | None) -> NewKeyView:
    if request:
        await parts.replays.remember(request)
    return NewKeyView.model_validate(created).model_copy(update={"key": secret})


def _idempotency(caller: Principal, key: str | None, request: list[JsonValue], ref: str = "") -> Idempotency | None:
    if key is None:
        return None
    return Idempotency(actor=caller.name, key=key, fingerprint=digest_json(request)[:32], ref=ref)
