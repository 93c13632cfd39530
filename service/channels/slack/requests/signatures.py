"""Slack's request signatures: HMAC-SHA256 over `v0:timestamp:body`, verified before anything is parsed.

https://docs.slack.dev/authentication/verifying-requests-from-slack/
"""

import re
from collections.abc import Sequence
from hashlib import sha256
from hmac import compare_digest
from hmac import new as new_hmac
from typing import NamedTuple

from sayso.errors import InvalidSignature

TOLERANCE_S = 300
"""The largest difference, either way, between now and the time of a signature."""

TIMESTAMP = "x-slack-request-timestamp"
SIGNATURE = "x-slack-signature"

_TIMESTAMP = re.compile(r"[1-9][0-9]{0,11}")
_SIGNATURE = re.compile(r"v0=[0-9a-f]{64}")


def sign_request(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a request."""
    return f"v0={new_hmac(secret.encode(), f'v0:{timestamp}:'.encode() + body, sha256).hexdigest()}"


class Signed(NamedTuple):
    """The timestamp and signature of a request whose body is not read yet."""

    timestamp: str
    signature: str


def check_headers(timestamps: Sequence[str], signatures: Sequence[str], now_ms: int) -> Signed:
    """Return the signature that the body must have; raises `InvalidSignature`, also for one that is not recent.

    `timestamps` and `signatures` are all values of the two headers.
    """
    timestamp = _check_header(TIMESTAMP, timestamps, _TIMESTAMP, "seconds since 1970")
    signature = _check_header(SIGNATURE, signatures, _SIGNATURE, "v0= and 64 hex digits")
    if abs(now_ms - int(timestamp) * 1000) > TOLERANCE_S * 1000:
        raise InvalidSignature(
            f"The request was signed at {timestamp}, more than {TOLERANCE_S} s from now. Set the clock.",
            tolerance_s=TOLERANCE_S,
        )
    return Signed(timestamp, signature)


def verify_body(secrets: Sequence[str], signed: Signed, body: bytes) -> None:
    """Raise `InvalidSignature` unless one of the secrets made the signature."""
    expected = [sign_request(secret, signed.timestamp, body) for secret in secrets if secret]
    if not any([compare_digest(signature, signed.signature) for signature in expected]):  # noqa: C419 - all are compared
        raise InvalidSignature("The signature does not verify. Set `signing_secrets` to those of the Slack app.")


def _check_header(name: str, values: Sequence[str], form: re.Pattern[str], meant: str) -> str:
    if len(values) != 1 or not form.fullmatch(values[0]):
        raise InvalidSignature(f"The header {name} must be sent once: {meant}.", header=name)
    return values[0]
