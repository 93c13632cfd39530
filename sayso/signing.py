"""Sign messages and verify signed ones, as Standard Webhooks say: HMAC-SHA256 over `id.timestamp.body`.

Nothing of a message is read before its signature holds. Several secrets hold at once while one is being replaced, and
a message may carry several signatures for the same reason.
"""

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
"""How far from now a message may say that it was signed, either way."""

PREFIX = "whsec_"
_VERSION = "v1"
_MOST_SIGNATURES = 16
_ID = re.compile(r"[!-~]{1,200}")
_TIMESTAMP = re.compile(r"[1-9][0-9]{0,11}")


@dataclass(frozen=True)
class SignedMessage:
    """A message as it came in: its three headers, None where one is missing, and the raw body."""

    id: str | None
    timestamp: str | None
    signatures: str | None
    body: bytes


def sign_message(secret: str, message_id: str, at_s: int, body: bytes) -> str:
    """Return the signature of a message sent at `at_s`, seconds since 1970, for its header `webhook-signature`."""
    return f"{_VERSION},{_sign(_read_secret(secret), message_id, str(at_s), body)}"


def verify_message(secrets: Sequence[str], message: SignedMessage, now_ms: int) -> str:
    """Return the message's id when one of its signatures was made with one of the secrets and its time is near now.

    Raises `InvalidSignature` for anything else, saying what to correct.
    """
    message_id = _check_header("webhook-id", message.id, _ID, "1 to 200 visible ASCII characters")
    timestamp = _check_header("webhook-timestamp", message.timestamp, _TIMESTAMP, "whole seconds since 1970")
    offered = _split_signatures(message.signatures)
    if abs(now_ms - int(timestamp) * 1000) > TOLERANCE_S * 1000:
        raise InvalidSignature(
            f"The message says it was signed at {timestamp}, which is more than {TOLERANCE_S} s from now. "
            "Set the clock right and sign it again.",
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
    """Return the key behind `whsec_…`; raises `ValueError` where there is none."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not secret.startswith(PREFIX) or not key:
        raise ValueError("a signing secret is whsec_ and then random bytes in base64")
    return key


def _check_header(name: str, value: str | None, form: re.Pattern[str], meant: str) -> str:
    if value is None:
        raise InvalidSignature(f"The header {name} is missing or there twice. Send it once: {meant}.", header=name)
    if not form.fullmatch(value):
        raise InvalidSignature(f"The header {name} is not {meant}. Correct it and sign again.", header=name)
    return value


def _split_signatures(header: str | None) -> list[str]:
    """Return the signatures of our version; others stand beside them while senders move to a new one."""
    name = "webhook-signature"
    if header is None:
        raise InvalidSignature(f"The header {name} is missing or there twice. Send it once: v1,<base64>.", header=name)
    words = [word.split(",") for word in header.split(" ")]
    if not header.isascii() or len(words) > _MOST_SIGNATURES or any(len(word) != 2 for word in words):
        raise InvalidSignature(f"The header {name} is not a list such as 'v1,<base64> v1,<base64>'.", header=name)
    return [signature for version, signature in words if version == _VERSION]
