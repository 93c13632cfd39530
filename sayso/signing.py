"""Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`, with several secrets while one is being replaced."""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from hmac import digest as hmac_digest

from sayso.errors import InvalidSignature

TOLERANCE_S = 300
"""The largest difference, either way, between now and the time a message was signed."""

PREFIX = "whsec_"
_VERSION = "v1"
_MAX_SIGNATURES = 16
_ID = re.compile(r"[!-~]{1,200}")
_TIMESTAMP = re.compile(r"[1-9][0-9]{0,11}")


@dataclass(frozen=True)
class SignedMessage:
    """A received message: three headers, None where one is missing, and the raw body."""

    id: str | None
    timestamp: str | None
    signatures: str | None
    body: bytes


def sign_message(secret: str, message_id: str, at_s: int, body: bytes) -> str:
    """Return the `webhook-signature` of a message sent at `at_s`, in seconds since 1970."""
    return f"{_VERSION},{_sign(_read_secret(secret), message_id, str(at_s), body)}"


def verify_message(secrets: Sequence[str], message: SignedMessage, now_ms: int) -> str:
    """Return the message's id; raises `InvalidSignature` unless a secret signed it and its time is close to now."""
    message_id = _check_header("webhook-id", message.id, _ID, "1 to 200 visible ASCII characters")
    timestamp = _check_header("webhook-timestamp", message.timestamp, _TIMESTAMP, "whole seconds since 1970")
    offered = _split_signatures(message.signatures)
    if abs(now_ms - int(timestamp) * 1000) > TOLERANCE_S * 1000:
        raise InvalidSignature(
            f"The message was signed at {timestamp}, more than {TOLERANCE_S} s from now. "
            "Set the clock and sign it again.",
            tolerance_s=TOLERANCE_S,
        )
    expected = [_sign(_read_secret(secret), message_id, timestamp, message.body) for secret in secrets]
    if not any([compare_digest(one, other) for one in expected for other in offered]):  # noqa: C419 - all are compared
        raise InvalidSignature()
    return message_id


def _sign(key: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    signed = hmac_digest(key, f"{message_id}.{timestamp}.".encode() + body, sha256)
    return base64.b64encode(signed).decode("ascii")


def _read_secret(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not secret.startswith(PREFIX) or not key:
        raise ValueError("a signing secret is whsec_ followed by random bytes in base64")
    return key


def _check_header(name: str, value: str | None, form: re.Pattern[str], meant: str) -> str:
    if value is None:
        raise InvalidSignature(f"The header {name} is missing or duplicated. Send it once: {meant}.", header=name)
    if not form.fullmatch(value):
        raise InvalidSignature(f"The header {name} is not {meant}. Correct it and sign again.", header=name)
    return value


def _split_signatures(header: str | None) -> list[str]:
    """Return the signatures of version v1. Others may appear while senders migrate."""
    name = "webhook-signature"
    if header is None:
        raise InvalidSignature(f"The header {name} is missing or duplicated. Send it once: v1,<base64>.", header=name)
    parts = [part.split(",") for part in header.split(" ")]
    if not header.isascii() or len(parts) > _MAX_SIGNATURES or any(len(part) != 2 for part in parts):
        raise InvalidSignature(f"The header {name} is not a list such as 'v1,<base64> v1,<base64>'.", header=name)
    return [signature for version, signature in parts if version == _VERSION]
