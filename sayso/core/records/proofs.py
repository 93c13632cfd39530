"""Proofs that a person made a decision: what their passkey signs (Web Authentication, level 3, section 5.1).

Here are also the invitations of people outside the desk, whom a link and a mailed code prove.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
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


def max_step_up(step_ups: Iterable[StepUp | None]) -> StepUp | None:
    """Return the step-up that asks for the most."""
    return max(step_ups, key=rank_step_up)


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


OUTSIDER_PREFIX = "outsider:"  # the beginning of the name of somebody outside, which no person or key can have
OUTSIDE = "outside"  # the channel of their decisions
MOST_PATTERNS = 20
LONGEST_ADDRESS = 254
LONGEST_NOTE = 500

_ANYBODY = "*@"
_DOMAIN = r"(?=[a-z0-9.-]{1,190}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]"
_PATTERN = re.compile(rf"(\*|[a-z0-9.!#$%&'+/=?^_`{{|}}~-]{{1,64}})@{_DOMAIN}")


def check_patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the addresses of a rule in small letters; raises `ValueError` for one that is neither form."""
    lowered = tuple(pattern.lower() for pattern in patterns)
    for pattern in lowered:
        if not _PATTERN.fullmatch(pattern):
            raise ValueError(
                f"{pattern[:100]!r} is no mail address; write jane@partner.example, or *@customer.example for a domain"
            )
    return tuple(dict.fromkeys(lowered))


Addresses = Annotated[tuple[str, ...], AfterValidator(check_patterns), Field(max_length=MOST_PATTERNS)]


def allows_address(patterns: Sequence[str], address: str) -> bool:
    """Return whether a rule allows a mail address in small letters: by itself, or by its whole domain."""
    if "*" in address or not _PATTERN.fullmatch(address):
        return False
    return address in patterns or f"{_ANYBODY}{address.rpartition('@')[2]}" in patterns


def join_patterns(values: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the addresses that each of several rules allows."""
    lists = [*values]
    return tuple(
        dict.fromkeys(name for names in lists for name in names if all(_within(name, other) for other in lists))
    )


def allows_all(patterns: Sequence[str], others: Iterable[str]) -> bool:
    """Return whether a rule with these patterns allows all that the others allow."""
    return all(_within(other, patterns) for other in others)


def _within(pattern: str, patterns: Sequence[str]) -> bool:
    return pattern in patterns or f"{_ANYBODY}{pattern.rpartition('@')[2]}" in patterns


class Ending(StrEnum):
    """How an invitation ended, but for its time."""

    REVOKED = "revoked"
    GUESSED = "guessed"
    """Too many wrong codes."""
    DECIDED = "decided"


class SentCode(Immutable):
    """A code that was mailed. `hash` also covers the token of the link, so the code cannot be found from it."""

    hash: str
    at_ms: int
    until_ms: int


class Invitation(Immutable):
    """The right of one mail address to decide one version of an item, once.

    The link has a token that is derived from `nonce` with a key outside the store; only its hash is here. `proof_hash`
    is that of what the page got for the right code, valid until `proof_until_ms`.
    """

    id: str
    address: str
    note: str = Field("", max_length=LONGEST_NOTE)
    by: str = Field(description="The reviewer who invited.")
    at_ms: int
    until_ms: int
    digest: str = Field(description="The digest of the item as it was then.")
    channel: str = Field(description="The mail channel of its mails.")
    nonce: str
    token_hash: str
    code: SentCode | None = None
    codes: int = Field(0, description="How many codes were mailed.")
    tries: int = Field(0, description="How many wrong codes were entered.")
    proof_hash: str = ""
    proof_until_ms: int = 0
    ended: Ending | None = None
    ended_at_ms: int | None = None
    ended_by: str = Field("", exclude_if=is_empty)

    @property
    def name(self) -> str:
        """The name under which the decision is recorded."""
        return OUTSIDER_PREFIX + self.address

    def is_open(self, digest: str, now_ms: int) -> bool:
        """Return whether it lets its address decide the item of this digest."""
        return self.ended is None and now_ms < self.until_ms and digest == self.digest


class Invited(Immutable):
    """Who let somebody outside decide, and what proved that it is them. It stands with their decision."""

    id: str
    address: str
    by: str
    proven: tuple[str, ...] = ("link", "mailed code")
