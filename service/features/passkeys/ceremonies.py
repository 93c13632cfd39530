"""The checks of what authenticators sign: new passkeys, and assertions (Web Authentication, sections 7.1 and 7.2).

A reason never repeats what the browser says.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pydantic import Field, JsonValue

from sayso.core.records.base import Immutable
from sayso.core.records.proofs import Assertion, Bytes, decode_base64url, encode_base64url
from sayso.errors import NotAuthenticated
from service.core.settings import Settings
from service.features.passkeys.store import ANSWERED_WITHIN_MS, Passkey

_ALGORITHMS = (-8, -7, -257)  # EdDSA, ES256 and RS256 (RFC 9053)
_WEAKEST_RSA = 2048


class UntrustedPasskey(NotAuthenticated):
    """What the passkey signed cannot be trusted. Nothing was changed. Try again."""


@contextmanager
def _trusted() -> Iterator[None]:
    """Turn each error over malformed or forged input into `UntrustedPasskey`."""
    try:
        yield
    except Exception as error:
        raise UntrustedPasskey from error


class RelyingParty(NamedTuple):
    """Whom authenticators sign for: the host of the public address, and its origin."""

    id: str
    origin: str


class NewPasskey(Immutable):
    """What a browser returns of a new passkey."""

    credential_id: Bytes = Field(min_length=1)
    client_data: Bytes = Field(min_length=1)
    attestation: Bytes = Field(min_length=1)


class CheckedPasskey(NamedTuple):
    """A checked new passkey."""

    id: str
    public_key: str
    counter: int


def find_party(settings: Settings) -> RelyingParty | None:
    """Return whom passkeys are for; None where browsers refuse them: an IP address, or plain http elsewhere."""
    parts = urlsplit(settings.public_url)
    host = parts.hostname or ""
    try:
        ip_address(host)
    except ValueError:
        local = host == "localhost" or host.endswith(".localhost")
        return RelyingParty(host, settings.public_url) if local or parts.scheme == "https" else None
    return None


def hash_challenge(challenge: bytes) -> str:
    """Return what the store knows a challenge by."""
    return sha256(challenge).hexdigest()


@_trusted()
def read_challenge(client_data: str) -> bytes:
    """Return the challenge that client data name; raises `UntrustedPasskey`."""
    return decode_base64url(json.loads(decode_base64url(client_data))["challenge"])


def describe_new(party: RelyingParty, challenge: bytes, person: str, handle: str, known: list[Passkey]) -> JsonValue:
    """Return the options with which a browser makes a passkey that it finds without a name."""
    return {
        "challenge": encode_base64url(challenge),
        "rp": {"id": party.id, "name": "Sayso"},
        "user": {"id": handle, "name": person, "displayName": person},
        "pubKeyCredParams": [{"type": "public-key", "alg": alg} for alg in _ALGORITHMS],
        "excludeCredentials": [{"type": "public-key", "id": passkey.id} for passkey in known],
        "authenticatorSelection": {
            "residentKey": "required",
            "requireResidentKey": True,
            "userVerification": "required",
        },
        "attestation": "none",
        "timeout": ANSWERED_WITHIN_MS,
    }


def describe_request(party: RelyingParty, challenge: bytes, known: list[Passkey]) -> dict[str, JsonValue]:
    """Return the options with which a browser signs a challenge, with one of these passkeys or any of its own."""
    return {
        "challenge": encode_base64url(challenge),
        "rpId": party.id,
        "allowCredentials": [{"type": "public-key", "id": passkey.id} for passkey in known],
        "userVerification": "required",
        "timeout": ANSWERED_WITHIN_MS,
    }


@_trusted()
def check_new(new: NewPasskey, challenge: bytes, party: RelyingParty) -> CheckedPasskey:
    """Return a new passkey whose authenticator verified its person; raises `UntrustedPasskey`."""
    from webauthn import verify_registration_response
    from webauthn.helpers.cose import COSEAlgorithmIdentifier
    from webauthn.helpers.structs import AuthenticatorAttestationResponse, RegistrationCredential

    _check_client_data(new.client_data, challenge)
    response = AuthenticatorAttestationResponse(
        client_data_json=decode_base64url(new.client_data), attestation_object=decode_base64url(new.attestation)
    )
    verified = verify_registration_response(
        credential=RegistrationCredential(
            id=new.credential_id, raw_id=decode_base64url(new.credential_id), response=response
        ),
        expected_challenge=challenge,
        expected_rp_id=party.id,
        expected_origin=party.origin,
        require_user_verification=True,
        supported_pub_key_algs=[COSEAlgorithmIdentifier(alg) for alg in _ALGORITHMS],
    )
    public_key = encode_base64url(verified.credential_public_key)
    load_public_key(public_key)
    if encode_base64url(verified.credential_id) != new.credential_id:
        raise ValueError("another id")
    return CheckedPasskey(new.credential_id, public_key, verified.sign_count)


@_trusted()
def check_assertion(assertion: Assertion, challenge: bytes, party: RelyingParty, passkey: Passkey) -> int:
    """Return the counter of an assertion by which the passkey's person signs the challenge.

    Raises `UntrustedPasskey`.
    """
    from webauthn import verify_authentication_response
    from webauthn.helpers.structs import AuthenticationCredential, AuthenticatorAssertionResponse

    if passkey.id != assertion.credential_id or assertion.user_handle not in ("", passkey.handle):
        raise ValueError("another passkey, or another person")
    _check_client_data(assertion.client_data, challenge)
    response = AuthenticatorAssertionResponse(
        client_data_json=decode_base64url(assertion.client_data),
        authenticator_data=decode_base64url(assertion.authenticator_data),
        signature=decode_base64url(assertion.signature),
    )
    verified = verify_authentication_response(
        credential=AuthenticationCredential(
            id=assertion.credential_id, raw_id=decode_base64url(assertion.credential_id), response=response
        ),
        expected_challenge=challenge,
        expected_rp_id=party.id,
        expected_origin=party.origin,
        credential_public_key=decode_base64url(passkey.public_key),
        credential_current_sign_count=passkey.counter,
        require_user_verification=True,
    )
    return verified.new_sign_count


def load_public_key(public_key: str) -> Any:
    """Return a COSE key of one of the algorithms; raises `ValueError` for a weak one, and other errors."""
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from webauthn.helpers import decode_credential_public_key, decoded_public_key_to_cryptography

    decoded = decode_credential_public_key(decode_base64url(public_key))
    key: Any = decoded_public_key_to_cryptography(decoded)
    fits = {
        -8: isinstance(key, Ed25519PublicKey),
        -7: isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1),
        -257: isinstance(key, RSAPublicKey) and key.key_size >= _WEAKEST_RSA,
    }
    if not fits.get(decoded.alg, False):
        raise ValueError("a weak key, or of another algorithm")
    return key


def write_public_key(public_key: str) -> str:
    """Return a COSE key as a SubjectPublicKeyInfo in DER, which needs no CBOR to be read."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return encode_base64url(load_public_key(public_key).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


def _check_client_data(client_data: str, challenge: bytes) -> None:
    """Refuse another form of the challenge, and what was signed in a frame of another site's page."""
    facts = json.loads(decode_base64url(client_data))
    if facts["challenge"] != encode_base64url(challenge) or facts.get("crossOrigin"):
        raise ValueError("another challenge, or signed in a frame of another site")
