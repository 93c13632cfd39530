"""Installing a Slack app by OAuth, for admins. The state is bound to the session, and is valid once."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.clock import new_secret
from sayso.errors import NotAllowed, NotFound, Unavailable
from service.channels.base import DeliveryFailed
from service.channels.slack.api import seal_token
from service.channels.slack.installing import consent_url, exchange_code
from service.channels.slack.outbound import SlackChannel
from service.core.auth.hosts import origin_of
from service.core.auth.reviewers import hash_token, require_role
from service.core.store.channels import Installs
from service.edge.web.sessions import SignedIn, Visitor, wiring_of

router = APIRouter()

Word = Annotated[str, Query(max_length=500)]


@router.get("/install/slack/{name}")
async def begin(request: Request, visitor: SignedIn, name: str) -> Response:
    """Lead an admin to Slack's consent page."""
    channel = _find(request, visitor, name)
    state = new_secret()
    await wiring_of(request).part(Installs).save_state(hash_token(state), _owner(visitor, name))
    return RedirectResponse(consent_url(channel, state, _redirect_url(request, name)), 303)


@router.get("/install/slack/{name}/done")
async def finish(request: Request, visitor: SignedIn, name: str, state: Word = "", code: Word = "") -> Response:
    """Save the token after the consent; Slack redirects here."""
    channel = _find(request, visitor, name)
    installs = wiring_of(request).part(Installs)
    if await installs.take_state(hash_token(state)) != _owner(visitor, name):
        raise NotAllowed(f"This installation was not begun in this session. Begin again at /install/slack/{name}.")
    if not code:
        raise NotAllowed(f"The installation was cancelled in Slack. Begin again at /install/slack/{name}.")
    try:
        token = await exchange_code(channel, code, _redirect_url(request, name))
    except DeliveryFailed as failure:
        raise Unavailable(f"The app is not installed: {failure.reason} Begin again.") from failure
    await installs.save_token(channel.name, seal_token(channel.config, token))
    activity, address = wiring_of(request).activity, origin_of(request).address
    await activity.record("channel_installed", visitor.name, door="web", address=address, target=channel.name)
    return RedirectResponse("/me", 303)


def _find(request: Request, visitor: Visitor, name: str) -> SlackChannel:
    require_role(visitor.principal.roles, "admin")
    channel = request.app.state.channels.find(name)
    if not isinstance(channel, SlackChannel) or not channel.config.installs:
        raise NotFound(f"No Slack channel named {name!r} is installed by OAuth. Add it with client_id.")
    return channel


def _owner(visitor: Visitor, name: str) -> str:
    return f"{hash_token(visitor.token)} {name}"


def _redirect_url(request: Request, name: str) -> str:
    return f"{wiring_of(request).settings.public_url}/install/slack/{name}/done"
