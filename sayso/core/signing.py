"""Standard Webhooks: HMAC-SHA256 or ed25519 over `id.timestamp.body`, with several keys while one is being replaced.

A secret `whsec_…` signs and verifies with HMAC (`v1`). A private key `whsk_…` signs with ed25519 (`v1a`), and its
public key `whpk_…` verifies; both need the package `cryptography`.
"""

import base64
import binascii
import re
import secrets as randomness
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from hmac import digest as hmac_digest
from typing import Any

from sayso.errors import InvalidSignature

TOLERANCE_S = 300  # the largest difference, either way, between now and the time a message was signed
PREFIX = "whsec_"
PRIVATE_PREFIX = "whsk_"
PUBLIC_PREFIX = "whpk_"
_VERSION = "v1"
_KEY_VERSION = "v1a"
_SECRET_BYTES = 32
_ID = re.compile(r"[!-~]{1,200}")
_TIMESTAMP = re.compile(r"[1-9][0-9]{0,11}")


@dataclass(frozen=True)
class SignedMessage:
    """A received message: three headers, None where one is missing, and the raw body."""

    id: str | None
    timestamp: str | None
    signatures: str | None
    body: bytes


def new_signing_secret() -> str:
    """Return a new secret for HMAC."""
    return PREFIX + _encode(randomness.token_bytes(_SECRET_BYTES))


def new_signing_key() -> str:
    """Return a new private key for ed25519."""
    return PRIVATE_PREFIX + _encode(randomness.token_bytes(_SECRET_BYTES))


def public_key_of(private_key: str) -> str:
    """Return the public key with which receivers verify what this private key signs."""
    return PUBLIC_PREFIX + _encode(_read_private(private_key).public_key().public_bytes_raw())


def sign_message(secret: str, message_id: str, at_s: int, body: bytes) -> str:
    """Return the `webhook-signature` of a message sent at `at_s`, in seconds since 1970."""
    content = _join_content(message_id, str(at_s), body)
    if secret.startswith(PRIVATE_PREFIX):
        return f"{_KEY_VERSION},{_encode(_read_private(secret).sign(content))}"
    return f"{_VERSION},{_sign(_read_secret(secret), content)}"


def verify_message(secrets: Sequence[str], message: SignedMessage, now_ms: int) -> str:
    """Return the message's id; raises `InvalidSignature` unless a `whsec_…` or `whpk_…` signed it just now."""
    message_id, timestamp, offered = check_headers(message, now_ms)
    content = _join_content(message_id, timestamp, message.body)
    if not any([_matches(secret, content, offered) for secret in secrets]):  # noqa: C419 - all are compared
        raise InvalidSignature()
    return message_id


def check_headers(message: SignedMessage, now_ms: int) -> tuple[str, str, list[tuple[str, str]]]:
    """Return the id, time and signatures; raises `InvalidSignature` for headers that no body can verify."""
    message_id = _check_header("webhook-id", message.id, _ID, "1 to 200 visible ASCII characters")
    timestamp = _check_header("webhook-timestamp", message.timestamp, _TIMESTAMP, "whole seconds since 1970")
    # Unknown versions may appear while senders migrate.
    name = "webhook-signature"
    if message.signatures is None:
        raise InvalidSignature(f"The header {name} is missing or duplicated. Send it once: v1,<base64>.", header=name)
    parts = [part.split(",") for part in message.signatures.split(" ")]
    if not message.signatures.isascii() or len(parts) > 16 or any(len(part) != 2 for part in parts):
        raise InvalidSignature(f"The header {name} is not a list such as 'v1,<base64> v1,<base64>'.", header=name)
    offered = [(version, signature) for version, signature in parts]
    if abs(now_ms - int(timestamp) * 1000) > TOLERANCE_S * 1000:
        raise InvalidSignature(
            f"The message was signed at {timestamp}, more than {TOLERANCE_S} s from now. "
            "Set the clock and sign it again.",
            tolerance_s=TOLERANCE_S,
        )
    return message_id, timestamp, offered


def _join_content(message_id: str, timestamp: str, body: bytes) -> bytes:
    return f"{message_id}.{timestamp}.".encode() + body


def _sign(key: bytes, content: bytes) -> str:
    return _encode(hmac_digest(key, content, sha256))


def _read_private(private_key: str) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(_read_key(private_key, PRIVATE_PREFIX))


def _matches(secret: str, content: bytes, offered: Iterable[tuple[str, str]]) -> bool:
    """Return whether one of the signatures was made with this key; all are compared."""
    if secret.startswith(PUBLIC_PREFIX):
        return any([_verifies(secret, content, signature) for version, signature in offered if version == _KEY_VERSION])  # noqa: C419
    expected = _sign(_read_secret(secret), content)
    return any([compare_digest(expected, signature) for version, signature in offered if version == _VERSION])  # noqa: C419


def _verifies(public_key: str, content: bytes, signature: str) -> bool:
    from cryptography.exceptions import InvalidSignature as NotSigned
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = Ed25519PublicKey.from_public_bytes(_read_key(public_key, PUBLIC_PREFIX))
    try:
        key.verify(base64.b64decode(signature, validate=True), content)
    except (NotSigned, binascii.Error):
        return False
    return True


def _encode(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _read_secret(secret: str) -> bytes:
    key = _decode(secret.removeprefix(PREFIX))
    if not secret.startswith(PREFIX) or not key:
        raise ValueError("a signing secret is whsec_ followed by random bytes in base64")
    return key


def _read_key(text: str, prefix: str) -> bytes:
    key = _decode(text.removeprefix(prefix))
    if not text.startswith(prefix) or len(key) != _SECRET_BYTES:
        raise ValueError(f"a key for ed25519 is {prefix} followed by {_SECRET_BYTES} bytes in base64")
    return key


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""


def _check_header(name: str, value: str | None, form: re.Pattern[str], meant: str) -> str:
    if value is None:
        raise InvalidSignature(f"The header {name} is missing or duplicated. Send it once: {meant}.", header=name)
    if not form.fullmatch(value):
        raise InvalidSignature(f"The header {name} is not {meant}. Correct it and sign again.", header=name)
    return value
