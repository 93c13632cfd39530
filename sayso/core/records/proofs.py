"""What a browser returns of a passkey (Web Authentication, level 3, section 5.1)."""

import base64
import binascii
from typing import Annotated

from pydantic import AfterValidator, Field

from sayso.core.records.base import Immutable, is_empty


def encode_base64url(raw: bytes) -> str:
    """Return bytes as base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode_base64url(text: str) -> bytes:
    """Return the bytes of a base64url text without padding; raises `ValueError` for any other form of them."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if encode_base64url(raw) != text:
        raise ValueError("this is not base64url without padding")
    return raw


def _check(text: str) -> str:
    decode_base64url(text)
    return text


Bytes = Annotated[str, Field(max_length=4_000, pattern=r"^[A-Za-z0-9_-]*$"), AfterValidator(_check)]
"""Bytes as base64url without padding, of which each has one form."""


class Assertion(Immutable):
    """A passkey's signature over its authenticator data and over the client data, which name the challenge."""

    credential_id: Bytes = Field(min_length=1, description="The id of the passkey.")
    client_data: Bytes = Field(min_length=1, description="The client data: the challenge and the origin of the page.")
    authenticator_data: Bytes = Field(
        min_length=1, description="The authenticator data: the host, how the person was verified, and the counter."
    )
    signature: Bytes = Field(min_length=1)
    user_handle: Bytes = Field(default="", exclude_if=is_empty, description="Whom the authenticator names.")
