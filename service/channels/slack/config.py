"""The fields of a Slack channel in the channels file."""

from typing import Literal, Self

from pydantic import Field, model_validator

from service.channels.config import ChannelConfig
from service.core.settings.receivers import Secret

_API = "https://slack.com/api/"
_HOOKS = "https://hooks.slack.com/"
_AUTHORIZE = "https://slack.com/oauth/v2/authorize"
_ID = r"^[A-Z0-9]{2,32}$"


class SlackConfig(ChannelConfig):
    """One Slack app in one workspace."""

    kind: Literal["slack"]
    app_id: str = Field(pattern=_ID, description="The app's id, `A…`; messages of other apps are refused.")
    team_id: str = Field(pattern=_ID, description="The workspace's id, `T…`; messages of other workspaces are refused.")
    enterprise_id: str = Field(
        default="",
        pattern=r"^([A-Z0-9]{2,32})?$",
        description="The organization's id, `E…`, for an app of an Enterprise Grid; its members may decide.",
    )
    channel: str = Field(default="", description="The id of a room, `C…`, for cards that name no reviewer.")
    bot_token: Secret | None = Field(default=None, description="The bot token, `xoxb-…`; not needed with OAuth.")
    signing_secrets: tuple[Secret, ...] = Field(
        default=(), max_length=4, description="Signing secrets of the app; several while one is being replaced."
    )
    app_token: Secret | None = Field(default=None, description="The app-level token, `xapp-…`, for Socket Mode.")
    client_id: str = Field(default="", description="The app's client id, to install it by OAuth.")
    client_secret: Secret | None = Field(default=None, description="The app's secret; it also encrypts the token.")
    old_client_secret: Secret | None = Field(default=None, description="The one before, until the token is read.")
    base_url: str = Field(default=_API, pattern=r"^https?://[^\s?#]+/$", description="Slack's API.")
    hooks_url: str = Field(default=_HOOKS, pattern=r"^https?://[^\s?#]+/$", description="Where replies are sent.")
    authorize_url: str = Field(default=_AUTHORIZE, pattern=r"^https?://[^\s?#]+$", description="Slack's consent page.")

    @property
    def installs(self) -> bool:
        """Whether the app is installed by OAuth."""
        return bool(self.client_id)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts of the signing secrets."""
        return tuple(secret.get_secret_value() for secret in self.signing_secrets)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.client_id) != (self.client_secret is not None):
            raise ValueError("client_id and client_secret belong together; add the missing one")
        if self.old_client_secret is not None and self.client_secret is None:
            raise ValueError("old_client_secret needs client_secret, which replaces it; add it")
        if (self.bot_token is not None) == self.installs:
            raise ValueError("a Slack channel has either bot_token, or client_id and client_secret to install the app")
        if self.decide and not self.signing_secrets and self.app_token is None:
            raise ValueError(
                "decisions need signing_secrets, or app_token for Socket Mode; add one, or set `decide: false`"
            )
        for name, token, start in (("bot_token", self.bot_token, "xoxb-"), ("app_token", self.app_token, "xapp-")):
            if token is not None and not token.get_secret_value().startswith(start):
                raise ValueError(f"{name} begins with {start}; copy it from the app's settings at api.slack.com")
        if any(len(text) < 16 or not (text.isascii() and text.isprintable()) or " " in text for text in self.secrets):
            raise ValueError("a signing secret has 16 or more visible characters; copy it from the app's settings")
        return self
