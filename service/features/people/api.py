"""Routes of reviewers, keys, passwords and sessions: people manage their own passwords and sessions, admins all."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Path, Request
from pydantic import Field, JsonValue

from sayso.core.canonical_json import digest_json
from sayso.core.records.decisions import KeyKind, KeyScope
from sayso.errors import NotAllowed
from sayso.wire.administration import (
    EndedSessions,
    KeyList,
    KeyView,
    NewKeyView,
    OpenSessionView,
    ReviewerList,
    ReviewerView,
    SessionList,
    SessionView,
)
from sayso.wire.models import RequestBody, SentTimestamp, moment
from service.channels.previews import reset_password
from service.core.auth.credentials import Principal
from service.core.auth.hosts import origin_of
from service.core.auth.reviewers import hash_token, id_of_session
from service.core.operations import people as managing
from service.core.operations import people as operations
from service.core.store.people import ApiKey, KeyTerms, Session
from service.core.store.suspensions.commits import Idempotency
from service.core.wiring import Wiring
from service.edge.api.dependencies import Context, IdempotencyKey, KeyId, OpenChannels, Parts, Person, ReviewerName
from service.edge.api.routes import SignedInRoute, bearer_token
from service.edge.api.sessions import Password, view_session
from service.edge.http.openapi import WRITES, problems

reviewers = APIRouter(prefix="/reviewers", tags=["reviewers"], route_class=SignedInRoute)
keys = APIRouter(prefix="/keys", tags=["keys"], route_class=SignedInRoute)

_ADMIN_READS = problems(401, 403)


RoleNames = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=64)], ...],
    Field(
        min_length=1,
        max_length=20,
        description="What the person may do: `reviewer`, `rule_author`, `auditor`, `operator`, `admin`.",
        examples=[["reviewer", "auditor"]],
    ),
]


class ReviewerRequest(RequestBody):
    """A new reviewer."""

    name: str = Field(min_length=1, max_length=64, examples=["anna"])
    password: Password
    roles: RoleNames = ("reviewer",)


class PasswordRequest(RequestBody):
    """A new password."""

    password: Password


class RolesRequest(RequestBody):
    """The roles of a person."""

    roles: RoleNames


class ManagerRequest(RequestBody):
    """Who manages a person."""

    manager: str | None = Field(min_length=1, max_length=64, description="The name of a person; null for none.")


class KeyRequest(RequestBody):
    """A new key. Keys with the same name and kind belong to the same agent, reviewer or provisioner."""

    name: str = Field(min_length=1, max_length=64, examples=["support-bot"])
    kind: KeyKind = Field(
        default="agent",
        description="`agent` starts runs; `reviewer` decides in the name of an existing person; `provisioner` creates "
        "instances of the Agent Approval Protocol under `/api/aap`; `directory` keeps people and groups over SCIM.",
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
    scopes: tuple[KeyScope, ...] = Field(
        default=(),
        max_length=5,
        description="What an agent's key may do: `ask` for approval, `run` registered agents, only `read`, manage "
        "`webhooks`, or `monitor`: read diagnostics and metrics. Empty for everything but the last.",
    )
    agents: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = Field(
        default=(),
        max_length=100,
        description="The agents as which an agent's key asks and starts runs; empty for all.",
    )
    networks: tuple[Annotated[str, Field(max_length=50, examples=["10.0.0.0/8"])], ...] = Field(
        default=(), max_length=100, description="The ranges of addresses from which it can be used; empty for all."
    )
    expires_at: SentTimestamp | None = Field(default=None, description="When it becomes invalid; null for never.")

    @property
    def terms(self) -> KeyTerms:
        """The terms as the store keeps them."""
        ends_ms = round(self.expires_at.timestamp() * 1000) if self.expires_at is not None else None
        return KeyTerms(**self.model_dump(exclude={"name", "kind", "expires_at"}), expires_at_ms=ends_ms)


class RotateRequest(RequestBody):
    """How long the old key stays valid beside the new one."""

    overlap_s: int = Field(default=3600, strict=True, ge=0, le=30 * 86_400)


@reviewers.post("", status_code=201, operation_id="addReviewer", responses=WRITES)
async def add_reviewer(body: ReviewerRequest, caller: Person, parts: Parts, key: IdempotencyKey) -> ReviewerView:
    """Add a reviewer."""
    # The fingerprint excludes the password: a fast hash of it could be guessed.
    request = _idempotency(caller, key, ["add reviewer", body.name, list(body.roles)], body.name)
    repeated = await parts.replays.recall(request) if request else None
    known = await parts.reviewers.find(repeated) if repeated else None
    if known is not None:
        return ReviewerView.model_validate(known)
    added = await operations.add_reviewer(parts, body.name, body.password.get_secret_value(), body.roles, caller)
    if request:
        await parts.replays.remember(request)
    return ReviewerView.model_validate(added)


@reviewers.get("", operation_id="listReviewers", responses=_ADMIN_READS)
async def list_reviewers(caller: Person, parts: Parts) -> ReviewerList:
    """List all reviewers, including deactivated ones."""
    reviewers = await parts.reviewers.list_all()
    return ReviewerList(reviewers=[ReviewerView.model_validate(reviewer) for reviewer in reviewers])


@reviewers.post("/{name}/password", status_code=204, operation_id="setPassword", responses=WRITES)
async def set_password(
    name: ReviewerName, body: PasswordRequest, caller: Person, parts: Parts, channels: OpenChannels
) -> None:
    """Set a reviewer's password. Existing sessions end, and the person is notified over every linked channel.

    Until its person changes it, the password is marked: decisions with it count as yours, too.
    """
    await operations.check_rank(parts, caller, name)
    await reset_password(parts, channels, name, body.password.get_secret_value(), caller.name)


@reviewers.post("/{name}/deactivate", operation_id="deactivateReviewer", responses=WRITES)
async def deactivate_reviewer(name: ReviewerName, caller: Person, parts: Parts) -> ReviewerView:
    """Deactivate a reviewer and end their sessions. Their decisions remain."""
    await operations.check_rank(parts, caller, name)
    return ReviewerView.model_validate(await operations.deactivate_reviewer(parts, name, caller.name))


@reviewers.post("/{name}/manager", operation_id="setManager", responses=WRITES)
async def set_manager(name: ReviewerName, body: ManagerRequest, caller: Person, parts: Parts) -> ReviewerView:
    """Set who manages a person. Rules may ask this manager; runs that have begun keep the earlier one."""
    return ReviewerView.model_validate(await parts.reviewers.set_manager(name, body.manager))


@reviewers.put("/{name}/roles", operation_id="setRoles", responses=WRITES)
async def set_roles(name: ReviewerName, body: RolesRequest, caller: Person, parts: Parts) -> ReviewerView:
    """Give a person these roles alone, within a second. Nobody gives more than they may do themselves."""
    return ReviewerView.model_validate(await operations.set_roles(parts, caller, name, body.roles))


@keys.post("", status_code=201, operation_id="createKey", responses=WRITES)
async def create_key(body: KeyRequest, caller: Person, parts: Parts, key: IdempotencyKey) -> NewKeyView:
    """Create a key. Its secret is returned once; the store has only a hash.

    A reviewer's key is made by its person alone, all others by admins.
    """
    request: list[JsonValue] = ["create key", body.name, body.kind, body.context]
    further = body.terms.model_dump(mode="json", exclude={"context"}, exclude_none=True)
    request += [further] if further else []
    repeated = await _recall_key(parts, _idempotency(caller, key, request))
    if repeated is not None:
        return NewKeyView.model_validate(repeated)
    created, secret = await managing.create_key(parts, caller, body.name, body.kind, body.terms)
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
            KeyView.model_validate(key).model_copy(update={"last_used_at": moment(uses.get(key.id)), "listed": listed})
            for _, key, listed in keys
        ]
    )


@keys.post("/{key_id}/revoke", operation_id="revokeKey", responses=WRITES)
async def revoke_key(key_id: KeyId, caller: Person, parts: Parts) -> KeyView:
    """Revoke a key everywhere within a second, and cancel its unfinished runs for good.

    Instead of its id, the first characters of a leaked secret name it, with anything after them.
    """
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


account = APIRouter(prefix="/account", tags=["sessions"], route_class=SignedInRoute)
passwords = APIRouter(prefix="/reviewers", tags=["reviewers"], route_class=SignedInRoute)

SessionId = Annotated[str, Path(min_length=1, max_length=100, examples=["ses_3f1c0a5b7d9e2f4a6b8c0d1e2f3a4b5c"])]
_PROBLEMS = problems(401, 403, 404)


class OwnPasswordRequest(RequestBody):
    """Your current and your new password."""

    current: Password
    password: Password


async def member_of(person: Person) -> Principal:
    """Return the person who is signed in. Raises `NotAllowed` for a reviewer's key."""
    if person.key_id is not None:
        raise NotAllowed("A key has no password and no sessions. Sign in as a person first.")
    return person


Member = Annotated[Principal, Depends(member_of)]


@account.post("/password", operation_id="changeOwnPassword", responses=problems(400, 401, 403, 415, 429))
async def change_own_password(request: Request, body: OwnPasswordRequest, caller: Member, parts: Parts) -> SessionView:
    """Change your password. All your sessions end, and the answer has a new one."""
    session = Session(tenant=caller.tenant, name=caller.name, roles=caller.roles, csrf="", created_at_ms=0)
    current, password = body.current.get_secret_value(), body.password.get_secret_value()
    opened = await parts.reviewers.change_password(session, current, password, origin_of(request))
    parts.credentials.forget(bearer_token(request) or "")
    return view_session(parts, opened)


@account.get("/sessions", operation_id="listOwnSessions", responses=_PROBLEMS)
async def list_own_sessions(request: Request, caller: Member, parts: Parts) -> SessionList:
    """List your sessions."""
    return await _list(parts, caller, caller.name, bearer_token(request))


@account.delete("/sessions", operation_id="endOtherSessions", responses=_PROBLEMS)
async def end_other_sessions(request: Request, caller: Member, parts: Parts) -> EndedSessions:
    """End all your sessions except this one."""
    ended = await parts.reviewers.end_sessions(caller.name, but=bearer_token(request))
    return EndedSessions(ended=ended)


@account.delete("/sessions/{session_id}", status_code=204, operation_id="endOwnSession", responses=_PROBLEMS)
async def end_own_session(session_id: SessionId, caller: Member, parts: Parts) -> None:
    """End one of your sessions."""
    await parts.reviewers.end_session(caller.name, session_id)


@passwords.post("/{name}/activate", operation_id="activateReviewer", responses=WRITES)
async def activate_reviewer(name: ReviewerName, caller: Person, parts: Parts) -> ReviewerView:
    """Reactivate a reviewer with the existing password. They must sign in again."""
    return ReviewerView.model_validate(await parts.reviewers.activate(name))


@passwords.get("/{name}/sessions", operation_id="listSessions", responses=_PROBLEMS)
async def list_sessions(name: ReviewerName, caller: Person, parts: Parts) -> SessionList:
    """List a reviewer's sessions."""
    return await _list(parts, caller, name, None)


@passwords.delete("/{name}/sessions", operation_id="endSessions", responses=_PROBLEMS)
async def end_sessions(name: ReviewerName, caller: Person, parts: Parts) -> EndedSessions:
    """End all sessions of a reviewer."""
    return EndedSessions(ended=await parts.reviewers.end_sessions(name))


@passwords.delete("/{name}/sessions/{session_id}", status_code=204, operation_id="endSession", responses=_PROBLEMS)
async def end_session(name: ReviewerName, session_id: SessionId, caller: Person, parts: Parts) -> None:
    """End one session of a reviewer."""
    await parts.reviewers.end_session(name, session_id)


async def _list(parts: Wiring, caller: Principal, name: str, token: str | None) -> SessionList:
    now_ms, own = await parts.schedule.now_ms(), hash_token(token) if token is not None else ""
    sessions = await parts.reviewers.list_sessions(name)
    return SessionList(
        sessions=[
            OpenSessionView(
                id=id_of_session(opened.token_hash),
                opened_at=moment(opened.session.created_at_ms),
                expires_at=moment(opened.session.created_at_ms + parts.settings.session_max_s * 1000),
                idle_until=moment(now_ms + opened.left_ms),
                address=opened.session.address,
                client=opened.session.client,
                current=opened.token_hash == own,
            )
            for opened in sessions
        ]
    )
