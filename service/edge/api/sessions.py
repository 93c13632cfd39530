"""Routes to sign in and out, for scripts. Browsers use the pages; the API ignores cookies."""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import Field, SecretStr

from sayso.errors import CodeRequired
from sayso.wire.administration import SessionView
from sayso.wire.models import RequestBody, moment
from service.core.auth.hosts import check_host, origin_of
from service.core.auth.reviewers import SignIn
from service.core.operations.people import sign_in as sign_in_by
from service.core.store.people import PasswordGiven
from service.core.wiring import Wiring
from service.edge.api.dependencies import OpenParts, Parts, Person
from service.edge.api.routes import OpenRoute, SignedInRoute, bearer_token
from service.edge.http.openapi import problems

opening = APIRouter(prefix="/sessions", tags=["sessions"], route_class=OpenRoute)
closing = APIRouter(prefix="/sessions", tags=["sessions"], route_class=SignedInRoute)

Password = Annotated[SecretStr, Field(min_length=1, max_length=1024, examples=["correct horse battery"])]


class SignInRequest(RequestBody):
    """A name and its password."""

    name: str = Field(min_length=1, max_length=64, examples=["anna"])
    password: Password
    code: str = Field(default="", max_length=20, description="The code of your authenticator app, if you have one.")


@opening.post("", status_code=201, operation_id="signIn", responses=problems(400, 401, 415, 421, 429))
async def sign_in(body: SignInRequest, request: Request, parts: OpenParts) -> SessionView:
    """Sign in. Send the token as `Authorization: Bearer …`."""
    await check_host(request)
    password = body.password.get_secret_value()
    opened = await sign_in_by(parts, body.name, password, origin_of(request), "api", body.code)
    if isinstance(opened, PasswordGiven):
        raise CodeRequired
    return view_session(parts, opened)


def view_session(parts: Wiring, opened: SignIn) -> SessionView:
    """Return the view of a new session."""
    return SessionView(
        token=opened.token,
        name=opened.session.name,
        roles=opened.session.roles,
        password_by=opened.password_by,
        expires_at=moment(opened.session.created_at_ms + parts.settings.session_max_s * 1000),
        idle_timeout_s=parts.settings.session_idle_s,
    )


@closing.delete("/current", status_code=204, operation_id="signOut", responses=problems(401, 403))
async def sign_out(request: Request, _caller: Person, parts: Parts) -> None:
    """End the session of this token."""
    token = bearer_token(request)
    if token is not None:
        await parts.credentials.sign_out(token)
