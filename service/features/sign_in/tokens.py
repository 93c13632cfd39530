"""Verification of a provider's tokens: ID tokens (OpenID Connect Core 1.0) and logout tokens (Back-Channel Logout 1.0).

A reason never repeats what the token or the provider says.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256, sha512
from hmac import compare_digest
from typing import Any, NamedTuple

from jwt.api_jws import PyJWS
from jwt.exceptions import InvalidSignatureError, PyJWTError
from pydantic import JsonValue

from sayso.core.canonical_json import parse_json
from sayso.errors import InvalidInput, NotAuthenticated, TooLarge
from service.core.auth.person_tokens import VerifyingKey, check_key, load_jwk
from service.core.auth.providers import Provider

SKEW_S = 60  # how far the clocks of provider and desk may differ
MOST_CHARS = 32_768
MOST_KEYS = 100
LONGEST_LOGOUT_S = 86_400  # a used logout token is remembered as long as it is valid
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
_SHAPE = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_TYPES: Mapping[str, frozenset[str]] = {
    "id": frozenset({"", "jwt"}),
    "logout": frozenset({"", "jwt", "logout+jwt", "application/logout+jwt"}),
}
_UNSUPPORTED = ("crit", "b64", "enc", "zip")  # header parameters that change what the signature covers
_JWS = PyJWS()


class Untrusted(NotAuthenticated):
    """What the identity provider sent cannot be trusted; begin the sign-in again."""


class Header(NamedTuple):
    """What a token says of its signature, before that is verified."""

    alg: str
    key_id: str | None


def read_header(token: str, provider: Provider, kind: str = "id") -> Header:
    """Return the header of a token; raises `Untrusted` for one that no key could verify."""
    if len(token) > MOST_CHARS or not _SHAPE.fullmatch(token):
        raise Untrusted(f"{provider.title} sent no signed token of at most {MOST_CHARS} characters. Ask an admin.")
    try:
        header = _JWS.get_unverified_header(token)
    except (PyJWTError, ValueError, TypeError, RecursionError) as error:
        raise Untrusted(f"{provider.title} sent a token that cannot be read. Ask an admin.") from error
    alg, key_id = header.get("alg"), header.get("kid")
    if alg not in provider.algorithms:
        allowed = ", ".join(provider.algorithms)
        raise Untrusted(f"{provider.title} signed with another algorithm than {allowed}. Ask an admin.")
    if str(header.get("typ") or "").lower() not in _TYPES[kind]:
        raise Untrusted(f"{provider.title} sent a token of another type. Ask an admin.")
    if any(name in header for name in _UNSUPPORTED):
        raise Untrusted(f"{provider.title} sent a token with extensions that are not accepted. Ask an admin.")
    return Header(alg, key_id)


def read_keys(content: JsonValue) -> list[Mapping[str, Any]]:
    """Return the signing keys of a JWKS; raises `ValueError`."""
    keys = content.get("keys") if isinstance(content, dict) else None
    if not isinstance(keys, list) or len(keys) > MOST_KEYS:
        raise ValueError(f"a JWKS has a list of at most {MOST_KEYS} keys")
    return [key for key in keys if isinstance(key, dict) and key.get("use", "sig") == "sig"]


def find_key(keys: Sequence[Mapping[str, Any]], header: Header) -> VerifyingKey | None:
    """Return the one public key that the header names; without an id, the only one for its algorithm."""
    fitting = []
    for jwk in keys:
        if header.key_id is not None and jwk.get("kid") != header.key_id:
            continue
        try:
            key = check_key(load_jwk(jwk, header.alg if header.alg in ("RS256", "PS256") else None))
        except (PyJWTError, ValueError, TypeError):
            continue  # a key for another purpose, or too weak
        if key.alg == header.alg:
            fitting.append(key)
    return fitting[0] if len(fitting) == 1 else None


def read_claims(token: str, key: VerifyingKey, provider: Provider, now_s: float) -> dict[str, Any]:
    """Return the claims of a token that this provider signed for this desk; raises `Untrusted`."""
    try:
        claims = parse_json(_JWS.decode(token, key.key, algorithms=[key.alg]))
    except InvalidSignatureError as error:
        raise Untrusted(f"The signature of {provider.title} does not verify. Begin again.") from error
    except (PyJWTError, InvalidInput, TooLarge, ValueError, TypeError, RecursionError) as error:
        raise Untrusted(f"{provider.title} sent a token that cannot be read. Ask an admin.") from error
    if not isinstance(claims, dict):
        raise Untrusted(f"{provider.title} sent a token without claims. Ask an admin.")
    if claims.get("iss") != provider.issuer:
        raise Untrusted(f"The token names another issuer than {provider.title}. Correct issuer in SAYSO_SIGN_IN.")
    _check_audience(claims, provider)
    _check_times(claims, provider, now_s)
    return claims


def _check_audience(claims: Mapping[str, Any], provider: Provider) -> None:
    audience, party = claims.get("aud"), claims.get("azp")
    audiences = [audience] if isinstance(audience, str) else audience
    if not isinstance(audiences, list):
        audiences = []
    parties = (provider.client_id,) if len(audiences) > 1 else (None, provider.client_id)
    if provider.client_id not in audiences or party not in parties:
        raise Untrusted(f"{provider.title} sent a token for another client. Correct client_id in SAYSO_SIGN_IN.")


def _check_times(claims: Mapping[str, Any], provider: Provider, now_s: float) -> None:
    times = {name: claims[name] for name in ("exp", "iat", "nbf") if name in claims}
    numbers = all(isinstance(time, int | float) and not isinstance(time, bool) for time in times.values())
    if not numbers or not {"exp", "iat"} <= times.keys():
        raise Untrusted(f"{provider.title} sent a token without its times. Ask an admin.")
    if times["exp"] <= now_s - SKEW_S:
        raise Untrusted(f"The token of {provider.title} has expired. Begin again.")
    if max(times["iat"], times.get("nbf", 0)) > now_s + SKEW_S:
        raise Untrusted(f"The token of {provider.title} is of the future. Set the clocks of both.")


def check_id_token(
    claims: Mapping[str, Any], provider: Provider, *, nonce: str, access_token: str | None, alg: str
) -> None:
    """Raise `Untrusted` unless the claims belong to this sign-in and to its access token, and name a person."""
    given = claims.get("nonce")
    if not isinstance(given, str) or not compare_digest(given.encode(), nonce.encode()):
        raise Untrusted(f"The token of {provider.title} belongs to another sign-in. Begin again.")
    if "at_hash" in claims and claims["at_hash"] != hash_access_token(access_token or "", alg):
        raise Untrusted(f"The tokens of {provider.title} do not belong together. Begin again.")
    if not is_name(claims.get("sub")):
        raise Untrusted(f"{provider.title} named nobody. Ask an admin.")


def check_logout_token(claims: Mapping[str, Any], provider: Provider, now_s: float) -> None:
    """Raise `Untrusted` unless the claims end a session or those of a subject."""
    events = claims.get("events")
    if not isinstance(events, dict) or not isinstance(events.get(LOGOUT_EVENT), dict):
        raise Untrusted(f"{provider.title} sent no logout token. Send one with the event of a logout.")
    if "nonce" in claims:
        raise Untrusted(f"{provider.title} sent an ID token. Send a logout token, which has no nonce.")
    if not is_name(claims.get("jti")) or claims["exp"] > now_s + LONGEST_LOGOUT_S:
        raise Untrusted(f"{provider.title} sent a logout token without an id or end. Send a jti and a near exp.")
    named = [claims[name] for name in ("sub", "sid") if name in claims]
    if not named or not all(map(is_name, named)):
        raise Untrusted(f"{provider.title} sent a logout token for nobody. Send a sub or a sid.")


def is_name(value: object) -> bool:
    """Return whether a claim is an identifier, as OpenID Connect bounds one."""
    return isinstance(value, str) and 1 <= len(value) <= 255


def hash_access_token(access_token: str, alg: str) -> str:
    """Return the `at_hash` of an access token (OpenID Connect Core 1.0, section 3.1.3.6)."""
    digest = (sha512 if alg == "EdDSA" else sha256)(access_token.encode()).digest()
    return base64.urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=").decode()
