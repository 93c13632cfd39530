"""Proofs of decisions in tests: over the right challenge, with a signature that only tests take."""

import json

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.records.proofs import Proof, digest_content, encode_base64url, make_challenge

_VERIFIED = bytes(32) + bytes([0b101]) + bytes(4)  # authenticator data: of no host, present and verified


def make_proof(digest: str, action: str, args: JsonObject | None = None, value: JsonValue = None) -> Proof:
    """Return a proof of a decision on the item with this digest."""
    content, nonce = digest_content(args, value), encode_base64url(b"a test")
    challenge = encode_base64url(make_challenge(digest, action, content, nonce))
    return Proof(
        credential_id=nonce,
        client_data=encode_base64url(json.dumps({"type": "webauthn.get", "challenge": challenge}).encode()),
        authenticator_data=encode_base64url(_VERIFIED),
        signature=nonce,
        nonce=nonce,
        name="test",
        public_key="",
        content=content,
    )
