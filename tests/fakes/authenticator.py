"""An authenticator in software: it makes passkeys and signs challenges, and says what a test wants it to say."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from os import urandom
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from sayso.core.records.proofs import decode_base64url, encode_base64url

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40
FLAGS = PRESENT | VERIFIED
ALGORITHMS = {"ES256": -7, "EdDSA": -8, "RS256": -257}


def make_private(alg: str) -> Any:
    if alg == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return ec.generate_private_key(ec.SECP256R1()) if alg == "ES256" else rsa.generate_private_key(65537, 2048)


def describe_key(private: Any, alg: int) -> dict[int, Any]:
    """Return the COSE key of a private key."""
    public = private.public_key()
    if isinstance(private, ed25519.Ed25519PrivateKey):
        return {1: 1, 3: alg, -1: 6, -2: public.public_bytes_raw()}
    numbers = public.public_numbers()
    if isinstance(private, rsa.RSAPrivateKey):
        size = private.key_size // 8
        return {1: 3, 3: alg, -1: numbers.n.to_bytes(size, "big"), -2: numbers.e.to_bytes(3, "big")}
    size = (private.key_size + 7) // 8
    curve = {"secp256r1": 1, "secp384r1": 2}[private.curve.name]
    return {1: 2, 3: alg, -1: curve, -2: numbers.x.to_bytes(size, "big"), -3: numbers.y.to_bytes(size, "big")}


def sign(private: Any, content: bytes) -> bytes:
    if isinstance(private, ed25519.Ed25519PrivateKey):
        return bytes(private.sign(content))
    if isinstance(private, rsa.RSAPrivateKey):
        return bytes(private.sign(content, PKCS1v15(), SHA256()))
    return bytes(private.sign(content, ec.ECDSA(SHA256())))


def write_client_data(kind: str, challenge: bytes, origin: str, changed: Mapping[str, Any] | None = None) -> bytes:
    facts = {"type": kind, "challenge": encode_base64url(challenge), "origin": origin, "crossOrigin": False}
    return json.dumps({**facts, **(changed or {})}, separators=(",", ":")).encode()


def write_data(party: str, flags: int, counter: int, rest: bytes = b"") -> bytes:
    """Return authenticator data."""
    return sha256(party.encode()).digest() + bytes([flags]) + counter.to_bytes(4, "big") + rest


@dataclass
class Authenticator:
    """One passkey, at one desk."""

    origin: str = "http://localhost:8321"
    party: str = "localhost"
    alg: str = "ES256"
    counter: int = 0
    id: bytes = field(default_factory=lambda: urandom(16))
    handle: str = ""

    def __post_init__(self) -> None:
        self.private = make_private(self.alg)

    @property
    def key(self) -> bytes:
        return cbor2.dumps(describe_key(self.private, ALGORITHMS[self.alg]))

    def attest(self, flags: int = FLAGS | ATTESTED, key: bytes | None = None) -> bytes:
        """Return an attestation object."""
        rest = bytes(16) + len(self.id).to_bytes(2, "big") + self.id + (self.key if key is None else key)
        data = write_data(self.party, flags, self.counter, rest)
        return cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})

    def make(self, options: Any, **changed: str) -> str:
        """Return what a browser answers to the options of a new passkey."""
        self.handle = options["user"]["id"]
        challenge = decode_base64url(options["challenge"])
        client_data = write_client_data("webauthn.create", challenge, self.origin)
        facts = {
            "credential_id": encode_base64url(self.id),
            "client_data": encode_base64url(client_data),
            "attestation": encode_base64url(self.attest()),
        }
        return json.dumps({**facts, **changed})

    def answer(self, challenge: bytes, **changed: str) -> dict[str, str]:
        """Return an assertion over a challenge."""
        self.counter += 1
        client_data = write_client_data("webauthn.get", challenge, self.origin)
        return {**self.seal(client_data, write_data(self.party, FLAGS, self.counter)), **changed}

    def seal(self, client_data: bytes, data: bytes) -> dict[str, str]:
        """Return an assertion of this client data and authenticator data."""
        return {
            "credential_id": encode_base64url(self.id),
            "client_data": encode_base64url(client_data),
            "authenticator_data": encode_base64url(data),
            "signature": encode_base64url(sign(self.private, data + sha256(client_data).digest())),
            "user_handle": self.handle,
        }

    def use(self, options: Any, **changed: str) -> str:
        """Return what a browser answers to options that ask for an assertion."""
        return json.dumps(self.answer(decode_base64url(options["challenge"]), **changed))
