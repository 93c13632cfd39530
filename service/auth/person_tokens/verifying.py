"""Verification of signed tokens (JWT) that name the person for whom an agent acts."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jwt
import structlog
from jwt.exceptions import (
    ExpiredSignatureError,
    ImmatureSignatureError,
    InvalidAudienceError,
    InvalidSignatureError,
    MissingRequiredClaimError,
    PyJWTError,
)

from sayso.errors import InvalidPersonToken
from service.auth.person_tokens.issuers import InvalidIssuers, Issuer, VerifyingKey, list_files, read_issuers

MOST_CHARS = 8_192
"""The longest token; one of an identity provider has one or two thousand characters."""

_SHAPE = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_PERSON = re.compile(r"[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,198}[^\s\x00-\x1f\x7f])?")
_HEADER = frozenset({"alg", "kid", "typ", "cty", "x5t", "x5t#S256"})
"""Header parameters that change nothing. Others name keys, or would have to be understood."""

_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
_NAME_CHARS = 200
_LOG = structlog.get_logger(__name__)


class Proof(NamedTuple):
    """The person that a verified token names, a display name if it has one, and its issuer."""

    person: str
    name: str
    issuer: str


class PersonTokens:
    """The issuers of a file, read again when it changes. While the file is invalid the last valid issuers count."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._issuers: Mapping[str, Issuer] | None = None
        self._seen: tuple[object, ...] = ()

    def load(self) -> Mapping[str, Issuer]:
        """Return the issuers; raises `InvalidIssuers` for a faulty file that was never valid."""
        if self._path is None:
            return {}
        seen = _stamp(list_files(self._path, self._issuers or {}))
        if self._issuers is not None and seen == self._seen:
            return self._issuers
        try:
            self._issuers = read_issuers(self._path)
            self._seen = _stamp(list_files(self._path, self._issuers))
        except InvalidIssuers as error:
            if self._issuers is None:
                raise
            self._seen = seen
            _LOG.error("token_issuers_invalid", problems=error.message)
        return self._issuers

    def verify(self, token: str) -> Proof:
        """Return the person that the token names; raises `InvalidPersonToken` unless everything about it is right."""
        issuers = self.load()
        if not issuers:
            raise InvalidPersonToken("This desk accepts no tokens for people. Set SAYSO_TOKEN_ISSUERS, or send none.")
        if len(token) > MOST_CHARS:
            raise InvalidPersonToken(f"The token has {len(token)} characters; the limit is {MOST_CHARS}.")
        if not _SHAPE.fullmatch(token):
            raise InvalidPersonToken("The token is not a signed JWT of three parts. Send it as the issuer made it.")
        try:
            issuer, key = _find_key(token, issuers)
            claims = _decode(token, issuer, key)
        except (PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise InvalidPersonToken(_describe(error)) from error
        return _read_proof(claims, issuer)


def _stamp(paths: tuple[Path, ...]) -> tuple[object, ...]:
    stamps: list[object] = []
    for path in paths:
        try:
            stat = path.stat()
        except OSError:
            stamps.append(None)
        else:
            stamps.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
    return tuple(stamps)


def _find_key(token: str, issuers: Mapping[str, Issuer]) -> tuple[Issuer, VerifyingKey]:
    """Return the key that must have signed the token, by the issuer and key id that it names.

    Nothing that the token says counts before this key has verified it.
    """
    header = jwt.get_unverified_header(token)
    if unknown := sorted(header.keys() - _HEADER):
        raise InvalidPersonToken(f"The token's header has {', '.join(unknown)[:200]}, which is not accepted.")
    if str(header.get("typ", "JWT")).lower() not in _TYPES:
        raise InvalidPersonToken("The token is of another type than JWT. Send the one for this desk.")
    claims: Any = jwt.decode(token, options={"verify_signature": False})
    name = claims.get("iss")
    issuer = issuers.get(name) if isinstance(name, str) else None
    if issuer is None:
        raise InvalidPersonToken("The token's issuer is not one that this desk trusts. Correct SAYSO_TOKEN_ISSUERS.")
    key_id = header.get("kid")
    if key_id is None and len(issuer.keys) == 1:
        key_id = next(iter(issuer.keys))
    key = issuer.keys.get(key_id) if isinstance(key_id, str) else None
    if key is None:
        raise InvalidPersonToken("The token names no key of its issuer that this desk knows. Add the key by its id.")
    if header.get("alg") != key.alg:
        raise InvalidPersonToken(f"The token's algorithm is not {key.alg}, the only one of its key.")
    return issuer, key


def _decode(token: str, issuer: Issuer, key: VerifyingKey) -> dict[str, Any]:
    row = issuer.row
    claims: dict[str, Any] = jwt.decode(
        token,
        key.key,
        algorithms=[key.alg],
        audience=row.audience,
        issuer=row.issuer,
        leeway=row.leeway_s,
        options={"require": ["exp", "iat", "iss", "aud"]},
    )
    times = [claims[name] for name in ("exp", "iat", "nbf") if name in claims]
    if not all(isinstance(time, int | float) and not isinstance(time, bool) for time in times):
        raise InvalidPersonToken("The token's times are not numbers. Use seconds since 1970.")
    if not 0 < claims["exp"] - claims["iat"] <= row.longest_s:
        raise InvalidPersonToken(f"The token lives longer than {row.longest_s} s, the limit for its issuer.")
    return claims


def _read_proof(claims: dict[str, Any], issuer: Issuer) -> Proof:
    person, name = claims.get(issuer.row.person_claim), claims.get(issuer.row.name_claim)
    if not isinstance(person, str) or not _PERSON.fullmatch(person):
        raise InvalidPersonToken(f"The token's claim {issuer.row.person_claim} is not the name of a person.")
    shown = name.strip() if isinstance(name, str) else ""
    return Proof(person, shown if shown.isprintable() and len(shown) <= _NAME_CHARS else "", issuer.row.issuer)


def _describe(error: Exception) -> str:
    """Return why a token was refused. It repeats nothing of the token, which is not verified."""
    if isinstance(error, ExpiredSignatureError):
        return "The token has expired. Get a new one from its issuer."
    if isinstance(error, ImmatureSignatureError):
        return "The token is not valid yet. Check the clocks of its issuer and of this desk."
    if isinstance(error, InvalidAudienceError):
        return "The token is for another audience than this desk."
    if isinstance(error, MissingRequiredClaimError):
        return f"The token has no claim {error.claim}, which is required."
    if isinstance(error, InvalidSignatureError):
        return "The token's signature does not verify with the key of its issuer."
    return "The token cannot be read as a signed JWT. Send it as the issuer made it."
