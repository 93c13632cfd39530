"""Calls of Slack's Web API with one app's token, and the fields of a Slack channel in the channels file.

The store holds the token that OAuth leads to, sealed; its key is derived from the client secret, the app, the workspace
and the channel's name, which the channels file holds.
"""

import asyncio
import re
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable
from typing import Any, Literal, NamedTuple, Self
from urllib.parse import urlsplit

import aiohttp
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import Field, model_validator
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from service.channels.base import DeliveryFailed
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
        return bool(self.client_id)

    @property
    def secrets(self) -> tuple[str, ...]:
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


CALL_S = 8  # longest time of one call; an attempt may make three within its own limit
_DEFAULT_RETRY_S = 30.0
_VISIBLE = re.compile(r"[!-~]{1,2000}")

_PERMANENT = {
    "account_inactive": "The Slack app or its user is deactivated.",
    "cannot_dm_bot": "The address is a bot.",
    "cant_update_message": "The message cannot be updated.",
    "channel_not_found": "The channel does not exist, or the app is not in it.",
    "invalid_auth": "Slack does not accept the token.",
    "is_archived": "The channel is archived.",
    "message_not_found": "The message was deleted.",
    "missing_scope": "The Slack app lacks a scope; see docs/channels/slack.md.",
    "not_authed": "Slack received no token.",
    "not_in_channel": "The app is not in the channel; invite it.",
    "org_login_required": "The workspace was moved.",
    "restricted_action": "The workspace does not allow the app to post there.",
    "team_access_not_granted": "The app is not installed in the workspace.",
    "token_expired": "The token has expired.",
    "token_revoked": "The token is revoked.",
    "user_disabled": "The person was deactivated in Slack.",
    "user_not_found": "The person is not in the workspace.",
    "user_not_visible": "The app cannot see the person.",
}
"""Errors that no repetition mends, with the sentence for the item's page."""

Call = Callable[[AsyncWebClient], Awaitable[AsyncSlackResponse]]


class SlackFailure(DeliveryFailed):
    """Slack refused a call or did not respond. `error` is Slack's code, or empty."""

    def __init__(self, error: str, reason: str, *, retry_after_s: float = 0.0, permanent: bool = False) -> None:
        super().__init__(reason, retry_after_s=retry_after_s, permanent=permanent)
        self.error = error


class SlackApi:
    """The Web API for one app in one workspace."""

    def __init__(self, config: SlackConfig, find_token: Callable[[], Awaitable[str | None]]) -> None:
        self._config = config
        self._find_token = find_token
        self._session: aiohttp.ClientSession | None = None

    async def call(self, call: Call) -> dict[str, Any]:
        """Make a call as the bot; raises `SlackFailure`."""
        token = await self._find_token()
        if token is None:
            raise SlackFailure("not_authed", "The Slack app is not installed yet; install it.", permanent=True)
        return await self.call_as(token, call)

    async def call_as(self, token: str | None, call: Call) -> dict[str, Any]:
        """Make a call with another token, or with none; raises `SlackFailure`."""
        web = AsyncWebClient(
            token=token, base_url=self._config.base_url, timeout=CALL_S, session=self.session, retry_handlers=[]
        )
        try:
            response = await call(web)
        except SlackApiError as error:
            raise _describe(error) from None
        except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise SlackFailure("", f"Slack did not respond: {type(error).__name__}.") from None
        return response.data if isinstance(response.data, dict) else {}

    async def respond(self, url: str, text: str) -> None:
        """Send a sentence to the one person who pressed or typed; Slack takes five within 30 minutes."""
        if not _is_below(url, self._config.hooks_url):
            return
        body = {"response_type": "ephemeral", "replace_original": False, "text": text}
        try:
            async with self.session.post(url, json=body, allow_redirects=False) as response:
                await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise SlackFailure("", f"Slack did not respond: {type(error).__name__}.") from None

    @property
    def session(self) -> aiohttp.ClientSession:
        """The connections, opened on first use."""
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=CALL_S), trust_env=True)
        return self._session

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(0)  # lets the transports close


def _describe(error: SlackApiError) -> SlackFailure:
    response: Any = error.response
    status = getattr(response, "status_code", 0)
    data = getattr(response, "data", None)
    code = str(data.get("error") or "") if isinstance(data, dict) else ""
    if status == 429 or code in ("ratelimited", "rate_limited"):
        headers = getattr(response, "headers", None) or {}
        text = str(headers.get("Retry-After", ""))
        wait_s = float(text) if text.isascii() and text.isdigit() and len(text) < 6 else _DEFAULT_RETRY_S
        return SlackFailure("ratelimited", f"Slack asks to wait {wait_s:g} s.", retry_after_s=wait_s)
    if code in _PERMANENT:
        return SlackFailure(code, f"{_PERMANENT[code]} ({code})", permanent=True)
    return SlackFailure(code, f"Slack refused the call: {code or f'status {status}'}.")


def _is_below(url: str, own: str) -> bool:
    """Return whether a URL has the scheme, host and port of `own`, and a path below its path."""
    try:
        sent, known = urlsplit(url), urlsplit(own)
        same = (sent.scheme, sent.hostname, sent.port) == (known.scheme, known.hostname, known.port)
    except ValueError:
        return False
    plain = _VISIBLE.fullmatch(url) is not None and "@" not in sent.netloc and "\\" not in url
    return same and plain and sent.path.startswith(known.path) and ".." not in sent.path


class OpenedToken(NamedTuple):
    """A decrypted token. `stale` says that an old client secret encrypted it."""

    token: str
    stale: bool


def seal_token(config: SlackConfig, token: str) -> str:
    """Return the token, encrypted under the current client secret."""
    return _list_ciphers(config)[0].encrypt(token.encode()).decode()


def open_token(config: SlackConfig, sealed: str) -> OpenedToken | None:
    """Return the token, or None if no client secret decrypts it."""
    for place, cipher in enumerate(_list_ciphers(config)):
        try:
            return OpenedToken(cipher.decrypt(sealed).decode(), place > 0)
        except (InvalidToken, ValueError):
            continue
    return None


def _list_ciphers(config: SlackConfig) -> list[Fernet]:
    info = f"sayso slack token {config.name} {config.app_id} {config.team_id}".encode()
    ciphers: list[Fernet] = []
    for secret in (config.client_secret, config.old_client_secret):
        if secret is not None:
            derived = HKDF(SHA256(), 32, salt=None, info=info).derive(secret.get_secret_value().encode())
            ciphers.append(Fernet(urlsafe_b64encode(derived)))
    return ciphers
