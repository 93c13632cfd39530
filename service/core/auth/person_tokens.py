"""Verification of tokens (JWT) that name the person for whom an agent acts, and the file of their issuers and keys."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import jwt
import structlog
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt import PyJWK
from jwt.exceptions import (
    ExpiredSignatureError,
    ImmatureSignatureError,
    InvalidAudienceError,
    InvalidSignatureError,
    MissingRequiredClaimError,
    PyJWTError,
)
from pydantic import BeforeValidator, Field, ValidationError, model_validator

from sayso.core.canonical_json import parse_json
from sayso.core.policy.files.yaml_documents import Document, read_document
from sayso.core.records.base import Immutable
from sayso.errors import InvalidInput, InvalidPersonToken
from service.core.settings.receivers import Secret

Algorithm = Literal["HS256", "RS256", "PS256", "ES256", "EdDSA"]
LONGEST_S = 86_400
SHORTEST_SECRET = 32
SMALLEST_RSA_BITS = 2048
MOST_BYTES = 1024 * 1024

_KINDS: Mapping[str, type] = {
    "RS256": RSAPublicKey,
    "PS256": RSAPublicKey,
    "ES256": EllipticCurvePublicKey,
    "EdDSA": Ed25519PublicKey,
}
_BY_TYPE = {("EC", "P-256"): "ES256", ("OKP", "Ed25519"): "EdDSA"}
"""The algorithm that the type of a key in a JWKS implies. An RSA key has several."""


class InvalidIssuers(InvalidInput):
    """The file of token issuers is invalid; correct it and start again."""


class KeyRow(Immutable):
    """One key in the file: a shared secret for HS256, a public key in PEM otherwise."""

    id: str = Field(min_length=1, max_length=200)
    alg: Algorithm
    public_key: str | None = None
    secret: Secret | None = None

    @model_validator(mode="after")
    def _check_one(self) -> "KeyRow":
        wanted, other = ("secret", "public_key") if self.alg == "HS256" else ("public_key", "secret")
        if getattr(self, wanted) is None or getattr(self, other) is not None:
            raise ValueError(f"a key for {self.alg} needs {wanted}, and no {other}")
        return self


class JwksRow(Immutable):
    """A JWKS file beside this one; `alg` is of RSA keys that name none."""

    file: str = Field(min_length=1)
    alg: Literal["RS256", "PS256"] | None = None


class IssuerRow(Immutable):
    """One issuer in the file. A token lives at most `longest_s`; clocks may differ by `leeway_s`."""

    issuer: str = Field(min_length=1, max_length=1000)
    audience: Annotated[
        list[Annotated[str, Field(min_length=1)]],
        BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
        Field(min_length=1, max_length=20),
    ]
    person_claim: str = Field(default="sub", min_length=1, max_length=100)
    name_claim: str = Field(default="name", min_length=1, max_length=100)
    longest_s: int = Field(default=3600, ge=60, le=LONGEST_S)
    leeway_s: int = Field(default=30, ge=0, le=300)
    keys: list[KeyRow] = Field(default=[], max_length=100)
    jwks: JwksRow | None = None


class VerifyingKey(NamedTuple):
    """A key with its only algorithm."""

    alg: str
    key: Any


@dataclass(frozen=True)
class Issuer:
    """An issuer with its keys by id."""

    row: IssuerRow
    keys: Mapping[str, VerifyingKey]


def read_issuers(path: Path) -> dict[str, Issuer]:
    """Return the issuers of a file by name; raises `InvalidIssuers` with all faults."""
    document = read_document(_read(path, "Correct SAYSO_TOKEN_ISSUERS."), path.name)
    rows = list(_parse_rows(document))
    issuers: dict[str, Issuer] = {}
    for loc, row in rows:
        if row.issuer in issuers:
            document.report(loc, f"the issuer {row.issuer} is there twice; give it one entry with all its keys")
        issuers[row.issuer] = Issuer(row, _read_keys(document, loc, row, path))
    if document.problems:
        raise InvalidIssuers("\n".join(map(str, sorted(set(document.problems)))))
    return issuers


def list_files(path: Path, issuers: Mapping[str, Issuer]) -> tuple[Path, ...]:
    """Return the files that the issuers were read from."""
    return (path, *(path.parent / issuer.row.jwks.file for issuer in issuers.values() if issuer.row.jwks is not None))


def _read(path: Path, remedy: str) -> bytes:
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InvalidIssuers(f"{path} cannot be read: {error.strerror}. {remedy}") from error
    if len(raw) > MOST_BYTES:
        raise InvalidIssuers(f"{path} is larger than {MOST_BYTES} bytes. {remedy}")
    return raw


def _parse_rows(document: Document) -> Iterator[tuple[tuple[str | int, ...], IssuerRow]]:
    content = document.content
    if document.problems:
        return
    if not isinstance(content, dict) or content.keys() != {"version", "issuers"} or content["version"] != 1:
        document.report((), "the file needs `version: 1` and a list of `issuers`, and nothing else")
        return
    rows = content["issuers"]
    if not isinstance(rows, list) or not rows:
        document.report(("issuers",), "issuers: must be a list with at least one issuer")
        return
    for index, row in enumerate(rows):
        try:
            yield ("issuers", index), IssuerRow.model_validate(row)
        except ValidationError as error:
            for fault in error.errors(include_url=False, include_input=False):
                words = fault["msg"].removeprefix("Value error, ")
                place = ".".join(map(str, fault["loc"]))
                label = f"issuer {index + 1}: {place}: " if place else f"issuer {index + 1}: "
                document.report(("issuers", index, *fault["loc"]), f"{label}{words}")


def _read_keys(document: Document, loc: tuple[str | int, ...], row: IssuerRow, path: Path) -> dict[str, VerifyingKey]:
    keys: dict[str, VerifyingKey] = {}
    sources: list[tuple[Any, str, Any, tuple[Any, ...]]] = []
    sources += [((*loc, "keys", index), key.id, _load_key, (key,)) for index, key in enumerate(row.keys)]
    if row.jwks is not None:
        try:
            listed = _list_jwks(path.parent / row.jwks.file)
        except InvalidInput as error:
            document.report((*loc, "jwks"), f"issuer {row.issuer}: {error.message}")
            listed = []
        sources += [((*loc, "jwks"), str(entry.get("kid", "")), load_jwk, (entry, row.jwks.alg)) for entry in listed]
    for place, key_id, load, given in sources:
        try:
            if not key_id or key_id in keys:
                raise ValueError("every key needs an id of its own; rename it")
            keys[key_id] = check_key(load(*given))
        except (ValueError, TypeError, PyJWTError) as error:
            document.report(place, f"issuer {row.issuer}: key {key_id or '(no id)'}: {error}")
    if not sources and not document.problems:
        document.report(loc, f"issuer {row.issuer}: needs keys or jwks; without a key no token can be verified")
    return keys


def _list_jwks(path: Path) -> list[dict[str, Any]]:
    content = parse_json(_read(path, "Correct jwks.file."))
    keys = content.get("keys") if isinstance(content, dict) else None
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
        raise InvalidInput(f"{path.name} is not a JWKS: it needs a list of `keys`.")
    return [key for key in keys if isinstance(key, dict) and key.get("use", "sig") == "sig"]


def _load_key(row: KeyRow) -> VerifyingKey:
    if row.secret is not None:
        return VerifyingKey(row.alg, row.secret.get_secret_value().encode())
    try:
        return VerifyingKey(row.alg, load_pem_public_key((row.public_key or "").encode()))
    except ValueError as error:
        raise ValueError("public_key is not a public key in PEM; it begins with -----BEGIN PUBLIC KEY-----") from error


def load_jwk(jwk: Mapping[str, Any], rsa_alg: str | None) -> VerifyingKey:
    """Return a public key of a JWKS; `rsa_alg` is of one that names none. Raises `ValueError`, `PyJWTError`."""
    if jwk.get("kty") == "oct" or "d" in jwk:
        raise ValueError("a JWKS file holds public keys only; remove the secret or private key")
    alg = jwk.get("alg") or _BY_TYPE.get((str(jwk.get("kty")), str(jwk.get("crv")))) or rsa_alg
    if not isinstance(alg, str) or alg not in _KINDS:
        raise ValueError(f"its algorithm is {alg or 'not named'}; use {', '.join(_KINDS)}, or set jwks.alg")
    return VerifyingKey(alg, PyJWK(dict(jwk), algorithm=alg).key)


def check_key(key: VerifyingKey) -> VerifyingKey:
    """Return a key that is strong enough and fits its algorithm; raises `ValueError`."""
    if key.alg == "HS256":
        if len(key.key) < SHORTEST_SECRET:
            raise ValueError(f"the secret has {len(key.key)} bytes; use {SHORTEST_SECRET} or more, at random")
        return key
    if not isinstance(key.key, _KINDS[key.alg]):
        raise ValueError(f"this is no public key for {key.alg}; correct alg, or the key")
    if isinstance(key.key, RSAPublicKey) and key.key.key_size < SMALLEST_RSA_BITS:
        raise ValueError(f"the RSA key has {key.key.key_size} bits; use {SMALLEST_RSA_BITS} or more")
    if isinstance(key.key, EllipticCurvePublicKey) and not isinstance(key.key.curve, SECP256R1):
        raise ValueError(f"ES256 needs the curve P-256, not {key.key.curve.name}")
    return key


MOST_CHARS = 8_192  # the longest token; one of an identity provider has one or two thousand characters
_SHAPE = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_PERSON = re.compile(r"[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,198}[^\s\x00-\x1f\x7f])?")
_HEADER = frozenset({"alg", "kid", "typ", "cty", "x5t", "x5t#S256"})
"""Header parameters that change nothing. Others name keys, or would have to be understood."""

_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
_NAME_CHARS = 200
_LOG = structlog.get_logger(__name__)


_REASONS: Mapping[type[Exception], str] = {
    ExpiredSignatureError: "The token has expired. Get a new one from its issuer.",
    ImmatureSignatureError: "The token is not valid yet. Check the clocks of its issuer and of this desk.",
    InvalidAudienceError: "The token is for another audience than this desk.",
    InvalidSignatureError: "The token's signature does not verify with the key of its issuer.",
    Exception: "The token cannot be read as a signed JWT. Send it as the issuer made it.",
}


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
        person, name = claims.get(issuer.row.person_claim), claims.get(issuer.row.name_claim)
        if not isinstance(person, str) or not _PERSON.fullmatch(person):
            raise InvalidPersonToken(f"The token's claim {issuer.row.person_claim} is not the name of a person.")
        shown = name.strip() if isinstance(name, str) else ""
        return Proof(person, shown if shown.isprintable() and len(shown) <= _NAME_CHARS else "", issuer.row.issuer)


def _stamp(paths: tuple[Path, ...]) -> tuple[object, ...]:
    stamps: list[object] = []
    for path in paths:
        try:
            stat = path.stat()
            stamps.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
        except OSError:
            stamps.append(None)
    return tuple(stamps)


def _find_key(token: str, issuers: Mapping[str, Issuer]) -> tuple[Issuer, VerifyingKey]:
    """Return the key that must have signed the token. Until it has, nothing that the token says counts."""
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


def _describe(error: Exception) -> str:
    """Return why a token was refused. It repeats nothing of the token, which is not verified."""
    if isinstance(error, MissingRequiredClaimError):
        return f"The token has no claim {error.claim}, which is required."
    return next(words for kind, words in _REASONS.items() if isinstance(error, kind))
