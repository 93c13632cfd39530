"""A small identity provider that can lie: it signs what a test tells it to, with the keys that the test gives it."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.api_jws import PyJWS
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sayso.core.clock import new_secret, now_ms
from tests.fakes.serving import serving

CLIENT_ID, CLIENT_SECRET = "sayso", "a secret of the client"
_JWS = PyJWS()


@dataclass(frozen=True)
class Key:
    """A key pair, its id, and the algorithm with which it signs."""

    key_id: str
    alg: str
    private: Any

    @property
    def public(self) -> dict[str, Any]:
        """The public key as a JWKS has it."""
        kinds: Mapping[str, Any] = {"RS256": RSAAlgorithm, "PS256": RSAAlgorithm, "ES256": ECAlgorithm}
        jwk: dict[str, Any] = kinds.get(self.alg, OKPAlgorithm).to_jwk(self.private.public_key(), as_dict=True)
        return {**jwk, "kid": self.key_id, "alg": self.alg, "use": "sig"}

    def sign(self, claims: Mapping[str, Any], **header: Any) -> str:
        """Return a token; a header of None is left out."""
        return self.sign_bytes(json.dumps(claims).encode(), **header)

    def sign_bytes(self, payload: bytes, **header: Any) -> str:
        named = {"kid": self.key_id, **header}
        kept = {name: value for name, value in named.items() if value is not None}
        return _JWS.encode(payload, self.private, algorithm=self.alg, headers=kept)


def make_key(alg: str = "RS256", key_id: str = "k1", bits: int = 2048) -> Key:
    """Return a new key pair."""
    if alg in ("RS256", "PS256"):
        return Key(key_id, alg, rsa.generate_private_key(65537, bits))
    if alg == "ES256":
        return Key(key_id, alg, ec.generate_private_key(ec.SECP256R1()))
    return Key(key_id, alg, ed25519.Ed25519PrivateKey.generate())


@dataclass
class FakeProvider:
    """A provider at `url`. `claims` is of the next person; `change` may alter the claims of an ID token."""

    url: str = ""
    keys: list[Key] = field(default_factory=lambda: [make_key()])
    claims: dict[str, Any] = field(default_factory=lambda: {"sub": "s-1", "preferred_username": "carla"})
    further: dict[str, Any] = field(default_factory=dict)  # claims of the userinfo endpoint alone
    change: Callable[[dict[str, Any]], dict[str, Any]] = dict
    sign: Callable[[dict[str, Any]], str] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Callable[[], Response]] = field(default_factory=dict)  # by path, in place of the true ones
    asked: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def consent(self, location: str, **changed: str) -> str:
        """Return where the provider leads a browser that came to `location` and signed in there."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        code = new_secret()
        self.codes[code] = asked
        answer = {"code": code, "state": asked["state"], **changed}
        return f"{asked['redirect_uri']}?{urlencode({name: value for name, value in answer.items() if value})}"

    def make_claims(self, nonce: str) -> dict[str, Any]:
        """Return the claims of an ID token."""
        now_s = now_ms() // 1000
        about = {"iss": self.url, "aud": CLIENT_ID, "iat": now_s, "exp": now_s + 300, "nonce": nonce}
        return self.change({**about, **self.claims})

    def make_logout(self, **changed: Any) -> dict[str, Any]:
        """Return the claims of a logout token; a claim of None is left out."""
        now_s = now_ms() // 1000
        event: dict[str, Any] = {"http://schemas.openid.net/event/backchannel-logout": {}}
        claims = {"iss": self.url, "aud": CLIENT_ID, "iat": now_s, "exp": now_s + 120, "events": event}
        claims |= {"jti": new_secret(), "sub": self.claims["sub"], **changed}
        return {name: value for name, value in claims.items() if value is not None}

    async def serve(self, request: Request) -> Response:
        path = request.url.path
        self.asked.append(path)
        if path in self.answers:
            return self.answers[path]()
        if path == "/.well-known/openid-configuration":
            return JSONResponse(self._describe())
        if path == "/jwks":
            return JSONResponse({"keys": [key.public for key in self.keys]})
        if path == "/userinfo":
            return JSONResponse({"sub": self.claims["sub"], **self.further})
        return await self._redeem(request)

    def _describe(self) -> dict[str, Any]:
        ends = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "jwks"}
        ends |= {"userinfo_endpoint": "userinfo", "end_session_endpoint": "end"}
        return {"issuer": self.url, **{name: f"{self.url}/{path}" for name, path in ends.items()}, **self.metadata}

    async def _redeem(self, request: Request) -> Response:
        """Redeem a code once, as RFC 6749 and RFC 7636 say."""
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        pair = base64.b64decode(request.headers.get("authorization", "").removeprefix("Basic ") or b"").decode()
        asked = self.codes.pop(form.get("code", ""), None)
        challenge = base64.urlsafe_b64encode(sha256(form.get("code_verifier", "").encode()).digest()).rstrip(b"=")
        if (
            asked is None
            or pair != f"{CLIENT_ID}:{CLIENT_SECRET.replace(' ', '+')}"
            or (asked["code_challenge"], asked["code_challenge_method"]) != (challenge.decode(), "S256")
            or asked["redirect_uri"] != form.get("redirect_uri")
        ):
            return JSONResponse({"error": "invalid_grant", "error_description": "<b>no</b>"}, 400)
        claims = self.make_claims(asked["nonce"])
        token = self.sign(claims) if self.sign is not None else self.keys[0].sign(claims)
        return JSONResponse({"access_token": "at-1", "token_type": "Bearer", "id_token": token})


@contextmanager
def running_provider() -> Iterator[FakeProvider]:
    """Serve a provider on a free port."""
    provider = FakeProvider()
    methods = ["GET", "POST"]
    with serving(Starlette(routes=[Route("/{path:path}", provider.serve, methods=methods)])) as url:
        provider.url = url
        yield provider
