"""Keys, issuers' files and tokens for tests."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jwt
import yaml
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as make_ec_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as make_rsa_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import RSAAlgorithm

from sayso.core.clock import now_ms

IDP, OTHER, DESK = "https://idp.example", "https://other.example", "https://sayso.example"
SECRET = "a-shared-secret-of-more-than-32-bytes"


def private_key(kind: str, name: str = "") -> Any:
    """Return a private key, the same for the same kind and name."""
    return _make_key(kind, name)


@cache
def _make_key(kind: str, name: str) -> Any:
    if kind == "EdDSA":
        return Ed25519PrivateKey.generate()
    if kind == "ES256":
        return make_ec_key(SECP256R1())
    return make_rsa_key(65537, 1024 if name == "weak" else 2048)


def public_pem(kind: str, name: str = "") -> str:
    """Return the public key in PEM."""
    public = private_key(kind, name).public_key()
    return str(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode())


def rsa_jwk(key_id: str, name: str = "", **parts: Any) -> dict[str, Any]:
    """Return the public RSA key as an entry of a JWKS."""
    return {**json.loads(RSAAlgorithm.to_jwk(private_key("RS256", name).public_key())), "kid": key_id, **parts}


def row(issuer: str = IDP, **parts: Any) -> dict[str, Any]:
    """Return an issuer with one EdDSA key named k1."""
    keys = [{"id": "k1", "alg": "EdDSA", "public_key": public_pem("EdDSA", issuer)}]
    return {"issuer": issuer, "audience": DESK, "keys": keys, **parts}


def write_issuers(folder: Path, *rows: dict[str, Any]) -> Path:
    """Write a file of issuers and return its path."""
    path = folder / "issuers.yaml"
    path.write_text(yaml.safe_dump({"version": 1, "issuers": list(rows)}))
    return path


def claims(**changes: Any) -> dict[str, Any]:
    """Return the claims of a valid token; None removes one, and times are seconds from now."""
    found: dict[str, Any] = {"iss": IDP, "aud": DESK, "sub": "mara", "name": "Mara Lindqvist", "iat": 0, "exp": 600}
    now_s = now_ms() // 1000
    found |= changes
    for name in ("iat", "exp", "nbf"):
        if type(found.get(name)) in (int, float):
            found[name] += now_s
    return {name: value for name, value in found.items() if value is not None}


def sign(key: Any = None, alg: str = "EdDSA", headers: dict[str, Any] | None = None, **changes: Any) -> str:
    """Return a token of the issuer with key k1, changed as given."""
    signing = private_key("EdDSA", IDP) if key is None else key
    named = {name: value for name, value in {"kid": "k1", **(headers or {})}.items() if value is not None}
    return jwt.encode(claims(**changes), signing, algorithm=alg, headers=named)
