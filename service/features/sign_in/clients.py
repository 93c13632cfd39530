"""What the desk asks a provider: its metadata and keys, which are cached, and the tokens of one sign-in.

Every response is bounded in size, one request takes half of `ANSWER_S`, and all of one sign-in take no longer.
"""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import quote_plus, urlencode

import structlog
from pydantic import BaseModel, Field, JsonValue, ValidationError

from sayso.core.canonical_json import parse_json
from sayso.core.clock import monotonic_ms
from sayso.errors import InvalidInput, NotAuthenticated, TooLarge, Unavailable
from service.core.auth.person_tokens import VerifyingKey
from service.core.auth.providers import Provider
from service.core.outgoing.connections import UnsafeUrl
from service.core.outgoing.http import MAX_RESPONSE_BYTES, Answer, Posts
from service.features.sign_in.tokens import Header, Untrusted, find_key, read_keys

ANSWER_S = 8.0
METADATA_MS = 3_600_000
KEYS_MS = 600_000  # a key that the provider withdrew verifies no longer than that
REFETCH_MS = 10_000  # the shortest time between two look-ups of an unknown key, or after a failure
_DISCOVERY = "/.well-known/openid-configuration"
_FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
_LOG = structlog.get_logger(__name__)


class Metadata(BaseModel):
    """What a provider says of itself (OpenID Connect Discovery 1.0, section 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    end_session_endpoint: str | None = None
    token_endpoint_auth_methods_supported: list[str] = Field(default=["client_secret_basic"])
    authorization_response_iss_parameter_supported: bool = False


class Tokens(NamedTuple):
    """The tokens of one sign-in."""

    id_token: str
    access_token: str | None


class ProviderClient:
    """The requests to one provider."""

    def __init__(self, provider: Provider, posts: Posts, answer_s: float = ANSWER_S) -> None:
        self.provider, self._posts, self._answer_s = provider, posts, answer_s
        self._metadata: Metadata | None = None
        self._keys: list[Mapping[str, Any]] | None = None
        self._read_at_ms = self._keys_at_ms = self._failed_at_ms = -float(METADATA_MS)
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def bounded(self) -> AsyncIterator[None]:
        """Bound all requests within: raises `Unavailable` after `answer_s`."""
        try:
            async with asyncio.timeout(self._answer_s):
                yield
        except TimeoutError:
            raise self._unavailable(f"no answer within {self._answer_s:g} s") from None

    async def read_metadata(self) -> Metadata:
        """Return the provider's metadata; raises `Unavailable`, or `Untrusted` for those of another issuer."""
        async with self._lock:
            if self._metadata is None or monotonic_ms() >= self._read_at_ms + METADATA_MS:
                content = await self._get(self.provider.issuer.rstrip("/") + _DISCOVERY)
                try:
                    metadata = Metadata.model_validate(content)
                except ValidationError as error:
                    raise self._fail("metadata_invalid", "sent metadata that cannot be read") from error
                if metadata.issuer != self.provider.issuer:
                    raise Untrusted(
                        f"{self.provider.title} names another issuer than this desk knows. "
                        "Correct issuer in SAYSO_SIGN_IN."
                    )
                self._check_url(metadata.authorization_endpoint)
                self._metadata, self._read_at_ms = metadata, monotonic_ms()
            return self._metadata

    async def find_key(self, header: Header) -> VerifyingKey:
        """Return the key of a token; one that is not known yet is looked up once. Raises `Untrusted`, `Unavailable`."""
        metadata = await self.read_metadata()
        async with self._lock:
            age_ms = monotonic_ms() - self._keys_at_ms
            key = find_key(self._keys, header) if self._keys is not None and age_ms < KEYS_MS else None
            if key is None and age_ms >= REFETCH_MS:
                content = await self._get(metadata.jwks_uri)
                try:
                    self._keys, self._keys_at_ms = read_keys(content), monotonic_ms()
                except ValueError as error:
                    raise self._fail("keys_invalid", "sent keys that cannot be read") from error
                key = find_key(self._keys, header)
        if key is None:
            raise Untrusted(f"{self.provider.title} signed with a key that it does not publish. Begin again soon.")
        return key

    async def exchange(self, code: str, verifier: str, redirect_url: str) -> Tokens:
        """Return the tokens for a code; raises `Untrusted` for one that the provider refuses, and `Unavailable`."""
        metadata, provider = await self.read_metadata(), self.provider
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_url,
            "code_verifier": verifier,
        }
        headers = dict(_FORM)
        secret = provider.client_secret.get_secret_value() if provider.client_secret is not None else None
        if secret is not None and "client_secret_basic" in metadata.token_endpoint_auth_methods_supported:
            pair = f"{quote_plus(provider.client_id)}:{quote_plus(secret)}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        else:
            fields |= {"client_id": provider.client_id, **({"client_secret": secret} if secret is not None else {})}
        answer = await self._send(metadata.token_endpoint, headers, urlencode(fields).encode())
        if 400 <= answer.status < 500:
            _LOG.warning(
                "sign_in_code_refused", provider=provider.id, status=answer.status, why=repr(answer.body)[:200]
            )
            raise Untrusted(f"{provider.title} did not confirm this sign-in. Begin again.")
        content = self._parse(answer)
        tokens = content if isinstance(content, dict) else {}
        id_token, access_token = tokens.get("id_token"), tokens.get("access_token")
        if not isinstance(id_token, str):
            raise Untrusted(f"{provider.title} named nobody. Add the scope openid to the client there.")
        return Tokens(id_token, access_token if isinstance(access_token, str) else None)

    async def read_userinfo(self, access_token: str) -> dict[str, Any]:
        """Return further claims; none where the provider has no such endpoint. Raises `Unavailable`."""
        endpoint = (await self.read_metadata()).userinfo_endpoint
        if endpoint is None:
            return {}
        content = await self._get(endpoint, {"Authorization": f"Bearer {access_token}"})
        return content if isinstance(content, dict) else {}

    async def _get(self, url: str, headers: Mapping[str, str] | None = None) -> JsonValue:
        if monotonic_ms() < self._failed_at_ms + REFETCH_MS and headers is None:
            raise self._unavailable("could not be reached a moment ago")
        return self._parse(await self._send(url, {"Accept": "application/json", **(headers or {})}, None))

    async def _send(self, url: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        self._check_url(url)
        try:
            async with asyncio.timeout(self._answer_s / 2):
                return await self._posts.send(url, headers, body, method="GET" if body is None else "POST")
        except TimeoutError as error:
            raise self._fail("slow", f"no answer within {self._answer_s / 2:g} s") from error
        except UnsafeUrl as error:
            raise self._describe_unsafe() from error

    def _parse(self, answer: Answer) -> JsonValue:
        if answer.error or not answer.accepted:
            raise self._fail("unreachable", answer.error or f"answered with status {answer.status}", answer.detail)
        if len(answer.body) > MAX_RESPONSE_BYTES:
            raise self._fail("too_large", f"sent more than {MAX_RESPONSE_BYTES} bytes")
        try:
            return parse_json(answer.body)
        except (InvalidInput, TooLarge) as error:
            raise self._fail("no_json", "sent no JSON that can be read") from error

    def _check_url(self, url: str) -> None:
        try:
            self._posts.check_url(url)
        except UnsafeUrl as error:
            raise self._describe_unsafe() from error

    def _describe_unsafe(self) -> NotAuthenticated:
        return Untrusted(
            f"{self.provider.title} names an address that this desk may not reach. "
            "Name it in SAYSO_INTERNAL_RECEIVERS, or use https."
        )

    def _fail(self, kind: str, why: str, detail: str = "") -> Unavailable:
        _LOG.warning("sign_in_provider_failed", provider=self.provider.id, kind=kind, why=why, detail=detail)
        self._failed_at_ms = monotonic_ms()
        return self._unavailable(why)

    def _unavailable(self, why: str) -> Unavailable:
        return Unavailable(f"{self.provider.title} cannot be used now: {why}. Try again in a minute.")
