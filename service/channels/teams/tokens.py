"""Tokens of the Bot Framework: verification of those that come with messages, and tokens for our own requests."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import httpx
import jwt
import structlog

from sayso.core.clock import DAY_MS, monotonic_ms
from sayso.errors import NotAuthenticated, Unavailable
from service.channels.base import DeliveryFailed, explain_status, read_json, request

KEYS_VALID_MS = DAY_MS
KEYS_AGAIN_MS = 60_000  # the least time between two requests for keys, so that forged tokens cause few
LEEWAY_S = 300
CHANNEL_ID = "msteams"
SCOPE = "https://api.botframework.com/.default"
_EARLY_MS = 300_000
_LOG = structlog.get_logger(__name__)
_REFUSED = "The token is not one of the Bot Framework for this bot. Check app_id and the bot's registration."


@dataclass
class BotKeys:
    """The public keys of the Bot Framework, read from its metadata and kept for a day."""

    client: httpx.AsyncClient
    metadata_url: str
    issuer: str
    audience: str
    _keys: dict[str, jwt.PyJWK] = field(default_factory=dict)
    _read_at_ms: float = -KEYS_VALID_MS
    _tried_at_ms: float = -KEYS_AGAIN_MS
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def verify(self, token: str) -> dict[str, Any]:
        """Return the claims of a token; raises `NotAuthenticated`, or `Unavailable` without the keys."""
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
        except jwt.PyJWTError:
            raise NotAuthenticated(_REFUSED) from None
        key = await self._find(key_id) if isinstance(key_id, str) else None
        if key is None:
            raise NotAuthenticated(_REFUSED)
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=["RS256"],
                audience=self.audience,
                issuer=self.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud"], "strict_aud": True},
            )
        except jwt.PyJWTError:
            raise NotAuthenticated(_REFUSED) from None
        return claims

    async def _find(self, key_id: str) -> jwt.PyJWK | None:
        """Return a key, and read the keys again if it is unknown or they are old; raises `Unavailable`."""
        if self._is_due(key_id):
            async with self._reading:
                if self._is_due(key_id):
                    await self._renew()
        if not self._keys:
            raise Unavailable("The keys of the Bot Framework cannot be read, so messages of Teams are refused.")
        return self._keys.get(key_id)

    def _is_due(self, key_id: str) -> bool:
        at_ms = monotonic_ms()
        needed = key_id not in self._keys or at_ms - self._read_at_ms >= KEYS_VALID_MS
        return needed and at_ms - self._tried_at_ms >= KEYS_AGAIN_MS

    async def _renew(self) -> None:
        """Read the keys; after a failure the earlier ones stay valid."""
        self._tried_at_ms = monotonic_ms()
        try:
            keys = (await self._get(str((await self._get(self.metadata_url)).get("jwks_uri")))).get("keys")
            usable = [key for key in keys if _is_usable(key)] if isinstance(keys, list) else []
            self._keys = {key["kid"]: jwt.PyJWK(key, algorithm="RS256") for key in usable}
            self._read_at_ms = self._tried_at_ms
        except DeliveryFailed as failure:
            _LOG.warning("teams_keys_not_read", reason=failure.reason)

    async def _get(self, url: str) -> dict[str, Any]:
        response = await request(self.client, "The Bot Framework", "GET", url)
        if not response.is_success:
            raise explain_status("The Bot Framework", response)
        body = read_json(response)
        if not body:
            raise DeliveryFailed("The Bot Framework sent an answer that cannot be read.")
        return body


@dataclass
class AccessTokens:
    """Our tokens for requests to the connector, each used until shortly before its end."""

    client: httpx.AsyncClient
    url: str
    app_id: str
    password: str = field(repr=False)
    _token: str = field(default="", repr=False)
    _until_ms: float = 0.0
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def find(self) -> str:
        """Return a valid token; raises `DeliveryFailed`."""
        async with self._asking:
            if not self._token or monotonic_ms() >= self._until_ms:
                await self._renew()
            return self._token

    def forget(self) -> None:
        """Request a new token next time, because this one was refused."""
        self._token = ""

    async def _renew(self) -> None:
        form = {
            "grant_type": "client_credentials",
            "client_id": self.app_id,
            "client_secret": self.password,
            "scope": SCOPE,
        }
        response = await request(self.client, "Microsoft's sign-in", "POST", self.url, data=form)
        if response.status_code in (400, 401):
            raise DeliveryFailed("Microsoft refused app_id and app_password. Correct them.", permanent=True)
        if not response.is_success:
            raise explain_status("Microsoft's sign-in", response)
        body = read_json(response)
        token, valid_s = body.get("access_token"), body.get("expires_in")
        if not isinstance(token, str) or not isinstance(valid_s, int):
            raise DeliveryFailed("Microsoft's sign-in sent an answer that cannot be read.")
        self._token, self._until_ms = token, monotonic_ms() + max(0, valid_s * 1000 - _EARLY_MS)


def _is_usable(key: Any) -> bool:
    known = isinstance(key, dict) and key.get("kty") == "RSA" and isinstance(key.get("kid"), str)
    return known and CHANNEL_ID in (key.get("endorsements") or ())
