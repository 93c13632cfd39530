"""Proofs that a person made a decision: what their passkey signs (Web Authentication, level 3, section 5.1)."""

import base64
import binascii
import json
from hashlib import sha256
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, JsonValue

from sayso.core.canonical_json import JsonObject, canonical_json, parse_json
from sayso.core.records.base import Immutable, is_empty
from sayso.errors import InvalidInput

_SHORTEST_DATA, _FLAGS, _VERIFIED = 37, 32, 0b101  # authenticator data: its flags, of presence and verification


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

    def signs(self, challenge: bytes) -> bool:
        """Return whether it is over this challenge, and says that the person was present and verified."""
        try:
            facts = parse_json(decode_base64url(self.client_data))
        except InvalidInput:
            return False
        data = decode_base64url(self.authenticator_data)
        named = isinstance(facts, dict) and facts.get("challenge") == encode_base64url(challenge)
        return named and len(data) >= _SHORTEST_DATA and data[_FLAGS] & _VERIFIED == _VERIFIED


StepUp = Literal["code", "passkey"]
"""What an approval needs beside the session of its reviewer, the weakest first; each stands for those before it."""


def rank_step_up(step_up: StepUp | None) -> int:
    """Return how much a step-up asks for; 0 for none."""
    return 0 if step_up is None else get_args(StepUp).index(step_up) + 1


class SignedDecision(Assertion):
    """A passkey's signature over a decision; the desk made the nonce for it."""

    nonce: Bytes = Field(min_length=1)


class Proof(SignedDecision):
    """A verified signature of a decision, as it stays with it.

    `content` is the digest of edited arguments or of a value. Who has the public key, a SubjectPublicKeyInfo in DER,
    verifies the signature without the desk.
    """

    name: str = Field(description="The passkey's name.")
    public_key: Bytes
    content: str


def digest_content(args: JsonObject | None, value: JsonValue) -> str:
    """Return the digest of edited arguments or of a value; that of JSON with sorted names, as its reader has it."""
    content = json.loads(canonical_json({"args": args, "value": value}, limited=False))
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def make_challenge(item: str, action: str, content: str, nonce: str) -> bytes:
    """Return what a passkey signs to make a decision on the item with this digest."""
    return sha256(canonical_json({"action": action, "content": content, "item": item, "nonce": nonce})).digest()
