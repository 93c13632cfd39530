"""The file of token issuers: whose tokens count, for whom they are meant, and the keys that verify them.

    version: 1
    issuers:
      - issuer: https://idp.example
        audience: https://sayso.example
        keys:
          - {id: "2026-11", alg: EdDSA, public_key: "-----BEGIN PUBLIC KEY-----…"}

Every key has one algorithm, and no token can choose another. Every fault is reported with its line.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt import PyJWK
from jwt.exceptions import PyJWTError
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from sayso.core.canonical_json import parse_json
from sayso.core.policy.files.yaml_documents import Document, read_document
from sayso.errors import InvalidInput
from service.settings.secret_texts import Secret

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


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class KeyRow(_Row):
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


class JwksRow(_Row):
    """A JWKS file beside this one; `alg` is of RSA keys that name none."""

    file: str = Field(min_length=1)
    alg: Literal["RS256", "PS256"] | None = None


def _list_audiences(value: object) -> object:
    return [value] if isinstance(value, str) else value


class IssuerRow(_Row):
    """One issuer in the file. A token lives at most `longest_s`; clocks may differ by `leeway_s`."""

    issuer: str = Field(min_length=1, max_length=1000)
    audience: Annotated[list[Annotated[str, Field(min_length=1)]], BeforeValidator(_list_audiences)] = Field(
        min_length=1, max_length=20
    )
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
    named = [((*loc, "keys", index), key.id, _load_key, (key,)) for index, key in enumerate(row.keys)]
    sources: list[tuple[Any, str, Any, tuple[Any, ...]]] = list(named)
    if row.jwks is not None:
        try:
            listed = _list_jwks(path.parent / row.jwks.file)
        except InvalidInput as error:
            document.report((*loc, "jwks"), f"issuer {row.issuer}: {error.message}")
            listed = []
        sources += [((*loc, "jwks"), str(entry.get("kid", "")), _load_jwk, (entry, row.jwks.alg)) for entry in listed]
    for place, key_id, load, given in sources:
        try:
            if not key_id or key_id in keys:
                raise ValueError("every key needs an id of its own; rename it")
            keys[key_id] = _check_key(load(*given))
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


def _load_jwk(jwk: dict[str, Any], rsa_alg: str | None) -> VerifyingKey:
    if jwk.get("kty") == "oct" or "d" in jwk:
        raise ValueError("a JWKS file holds public keys only; remove the secret or private key")
    alg = jwk.get("alg") or _BY_TYPE.get((str(jwk.get("kty")), str(jwk.get("crv")))) or rsa_alg
    if not isinstance(alg, str) or alg not in _KINDS:
        raise ValueError(f"its algorithm is {alg or 'not named'}; use {', '.join(_KINDS)}, or set jwks.alg")
    return VerifyingKey(alg, PyJWK(jwk, algorithm=alg).key)


def _check_key(key: VerifyingKey) -> VerifyingKey:
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
