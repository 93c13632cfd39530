"""Installing the app by OAuth: the address of Slack's consent page, and the token that it leads to."""

from urllib.parse import urlencode

from sayso.errors import NotAllowed
from service.channels.slack.outbound import SlackChannel

SCOPES = ("chat:write", "commands", "im:write", "users:read")
"""What the bot needs: post and update cards, take `/sayso`, open conversations, and see who is a guest."""


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
    team_id, enterprise_id = (_id_of(response.get(name)) for name in ("team", "enterprise"))
    in_grid = bool(config.enterprise_id) and enterprise_id == config.enterprise_id
    if response.get("app_id") != config.app_id or not (team_id == config.team_id or in_grid):
        raise NotAllowed(
            f"The app was installed in another workspace, or it is another app. Install {config.app_id} in "
            f"{config.team_id}."
        )
    if not isinstance(token, str) or not token.startswith("xoxb-"):
        raise NotAllowed("Slack returned no bot token. Add the bot scopes to the app and install it again.")
    return token


def _id_of(entity: object) -> object:
    return entity.get("id") if isinstance(entity, dict) else None
