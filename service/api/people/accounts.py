"""Routes for passwords and sessions: people manage their own, admins those of others."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel, Field

from sayso.errors import NotAllowed
from service.api.people.administration import ReviewerView
from service.api.routing.dependencies import Admin, Parts, Person, ReviewerName
from service.api.routing.routes import SignedInRoute, bearer_token
from service.api.sessions import Password, SessionView, view_session
from service.api.views.base import RequestBody, Timestamp
from service.auth.credentials import Principal
from service.auth.hosts import origin_of
from service.auth.reviewers import hash_token, id_of_session
from service.http.openapi import WRITES, problems
from service.store.people import OpenSession, Session
from service.wiring import Wiring

account = APIRouter(prefix="/account", tags=["sessions"], route_class=SignedInRoute)
reviewers = APIRouter(prefix="/reviewers", tags=["reviewers"], route_class=SignedInRoute)

SessionId = Annotated[str, Path(min_length=1, max_length=100, examples=["ses_3f1c0a5b7d9e2f4a6b8c0d1e2f3a4b5c"])]
_PROBLEMS = problems(401, 403, 404)


class OwnPasswordRequest(RequestBody):
    """Your current and your new password."""

    current: Password
    password: Password


class OpenSessionView(BaseModel):
    """A valid session."""

    id: str
    opened_at: Timestamp
    expires_at: Timestamp = Field(description="When it ends in any case.")
    idle_until: Timestamp = Field(description="When it ends without use.")
    address: str = Field(description="The address of the client that signed in, if known.")
    client: str = Field(description="The User-Agent of the client that signed in; it is not verified.")
    current: bool = Field(description="Whether this request uses the session.")


class SessionList(BaseModel):
    """Valid sessions, the newest first."""

    sessions: list[OpenSessionView]


class EndedSessions(BaseModel):
    """The number of ended sessions."""

    ended: int


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


@reviewers.post("/{name}/activate", operation_id="activateReviewer", responses=WRITES)
async def activate_reviewer(name: ReviewerName, caller: Admin, parts: Parts) -> ReviewerView:
    """Reactivate a reviewer with the existing password. They must sign in again."""
    return ReviewerView.model_validate(await parts.reviewers.activate(name))


@reviewers.get("/{name}/sessions", operation_id="listSessions", responses=_PROBLEMS)
async def list_sessions(name: ReviewerName, caller: Admin, parts: Parts) -> SessionList:
    """List a reviewer's sessions."""
    return await _list(parts, caller, name, None)


@reviewers.delete("/{name}/sessions", operation_id="endSessions", responses=_PROBLEMS)
async def end_sessions(name: ReviewerName, caller: Admin, parts: Parts) -> EndedSessions:
    """End all sessions of a reviewer."""
    return EndedSessions(ended=await parts.reviewers.end_sessions(name))


@reviewers.delete("/{name}/sessions/{session_id}", status_code=204, operation_id="endSession", responses=_PROBLEMS)
async def end_session(name: ReviewerName, session_id: SessionId, caller: Admin, parts: Parts) -> None:
    """End one session of a reviewer."""
    await parts.reviewers.end_session(name, session_id)


async def _list(parts: Wiring, caller: Principal, name: str, token: str | None) -> SessionList:
    now_ms, own = await parts.schedule.now_ms(), hash_token(token) if token is not None else ""
    sessions = await parts.reviewers.list_sessions(name)
    return SessionList(sessions=[_view(parts, opened, now_ms, own) for opened in sessions])


def _view(parts: Wiring, opened: OpenSession, now_ms: int, own: str) -> OpenSessionView:
    return OpenSessionView(
        id=id_of_session(opened.token_hash),
        opened_at=opened.session.created_at_ms,
        expires_at=opened.session.created_at_ms + parts.settings.session_max_s * 1000,
        idle_until=now_ms + opened.left_ms,
        address=opened.session.address,
        client=opened.session.client,
        current=opened.token_hash == own,
    )
