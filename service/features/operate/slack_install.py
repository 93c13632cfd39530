"""Installing a Slack app by OAuth, for admins. The state is bound to the session, and is valid once."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.clock import new_secret
from sayso.errors import NotAllowed, NotFound, Unavailable
from service.channels.base import DeliveryFailed
from service.channels.slack.api import seal_token
from service.channels.slack.outbound import SlackChannel
from service.core.auth.hosts import origin_of
from service.core.auth.reviewers import hash_token
from service.core.store.channels import Installs
from service.edge.web.sessions import SignedIn, Visitor, wiring_of

router = APIRouter()

SCOPES = ("chat:write", "commands", "im:write", "users:read")
"""What the bot needs: post and update cards, take `/sayso`, open conversations, and see who is a guest."""

Word = Annotated[str, Query(max_length=500)]


@router.get("/install/slack/{name}")
async def begin(request: Request, visitor: SignedIn, name: str) -> Response:
    """Lead an admin to Slack's consent page."""
    channel, state = _find(request, visitor, name), new_secret()
    await wiring_of(request).part(Installs).save_state(hash_token(state), f"{hash_token(visitor.token)} {name}")
    return RedirectResponse(consent_url(channel, state, _redirect_url(request, name)), 303)


@router.get("/install/slack/{name}/done")
async def finish(request: Request, visitor: SignedIn, name: str, state: Word = "", code: Word = "") -> Response:
    """Save the token after the consent; Slack redirects here."""
    channel = _find(request, visitor, name)
    installs = wiring_of(request).part(Installs)
    if await installs.take_state(hash_token(state)) != f"{hash_token(visitor.token)} {name}":
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
    channel = request.app.state.channels.find(name)
    if not isinstance(channel, SlackChannel) or not channel.config.installs:
        raise NotFound(f"No Slack channel named {name!r} is installed by OAuth. Add it with client_id.")
    return channel


def _redirect_url(request: Request, name: str) -> str:
    return f"{wiring_of(request).settings.public_url}/install/slack/{name}/done"


def consent_url(channel: SlackChannel, state: str, redirect_url: str) -> str:
    """Return the address at which an admin of the workspace installs the app."""
    fields = {
        "client_id": channel.config.client_id,
        "scope": ",".join(SCOPES),
        "state": state,
        "redirect_uri": redirect_url,
        "team": channel.config.team_id,
    }
    return f"{channel.config.authorize_url}?{urlencode(fields)}"


async def exchange_code(channel: SlackChannel, code: str, redirect_url: str) -> str:
    """Return the bot token for a code; raises `SlackFailure`, and `NotAllowed` for another app or workspace."""
    config = channel.config
    secret = config.client_secret.get_secret_value() if config.client_secret is not None else ""
    response = await channel.api.call_as(
        None,
        lambda web: web.oauth_v2_access(
            client_id=config.client_id, client_secret=secret, code=code, redirect_uri=redirect_url
        ),
    )
    token = response.get("access_token")
    owners = [response.get(name) for name in ("team", "enterprise")]
    team_id, enterprise_id = (owner.get("id") if isinstance(owner, dict) else None for owner in owners)
    in_grid = bool(config.enterprise_id) and enterprise_id == config.enterprise_id
    if response.get("app_id") != config.app_id or not (team_id == config.team_id or in_grid):
        raise NotAllowed(
            f"The app was installed in another workspace, or it is another app. Install {config.app_id} in "
            f"{config.team_id}."
        )
    if not isinstance(token, str) or not token.startswith("xoxb-"):
        raise NotAllowed("Slack returned no bot token. Add the bot scopes to the app and install it again.")
    return token
