"""Forged assertions and new passkeys by name, random ones, and the checks that each must fail."""

import json
import random
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from pydantic import ValidationError

from sayso.core.records.proofs import Assertion, decode_base64url, encode_base64url
from service.features.passkeys.ceremonies import (
    NewPasskey,
    RelyingParty,
    UntrustedPasskey,
    check_assertion,
    check_new,
    read_challenge,
)
from service.features.passkeys.store import Passkey
from tests.fakes.authenticator import (
    ATTESTED,
    FLAGS,
    PRESENT,
    VERIFIED,
    Authenticator,
    describe_key,
    sign,
    write_client_data,
    write_data,
)

PARTY = RelyingParty("desk.example.com", "https://desk.example.com")
CHALLENGE, COUNTER, HANDLE = bytes(range(32)), 41, encode_base64url(b"anna's handle")
OTHER_CHALLENGE = bytes(reversed(CHALLENGE))
Forged = dict[str, str]


@cache
def device(alg: str = "ES256", which: str = "anna's") -> Authenticator:
    identity = sha256(f"{which} {alg}".encode()).digest()[:16]
    return Authenticator(PARTY.origin, PARTY.id, alg, COUNTER, identity, HANDLE)


def passkey_of(one: Authenticator) -> Passkey:
    return Passkey(
        id=encode_base64url(one.id),
        person="anna",
        name="Phone",
        handle=HANDLE,
        public_key=encode_base64url(one.key),
        counter=COUNTER,
        created_at_ms=0,
    )


def accept(forged: Forged, alg: str = "ES256", challenge: bytes = CHALLENGE) -> int:
    """Check an assertion as the desk does; raises `UntrustedPasskey` or `ValidationError`."""
    return check_assertion(Assertion.model_validate(forged), challenge, PARTY, passkey_of(device(alg)))


def make_valid(alg: str = "ES256", **changed: Any) -> Forged:
    flags, counter, rest = changed.pop("flags", FLAGS), changed.pop("counter", COUNTER + 1), changed.pop("rest", b"")
    client_data = write_client_data("webauthn.get", CHALLENGE, PARTY.origin, changed)
    return device(alg).seal(client_data, write_data(PARTY.id, flags, counter, rest))


def is_refused(check: Callable[[Any], object], forged: Any) -> bool:
    try:
        check(forged)
    except (UntrustedPasskey, ValidationError):
        return True
    return False


def list_forged() -> Iterator[tuple[str, Forged]]:
    """Yield forged assertions, each with its name."""
    yield from _forge_client_data()
    yield from _forge_data()
    yield from _forge_signatures()
    yield from _forge_shapes()


def _forge_client_data() -> Iterator[tuple[str, Forged]]:
    kinds = ("webauthn.create", "payment.get", "", "WEBAUTHN.GET", None)
    for kind in kinds:
        yield f"the type {kind!r}", make_valid(type=kind)
    challenges: dict[str, object] = {
        "another challenge": encode_base64url(OTHER_CHALLENGE),
        "a shorter challenge": encode_base64url(CHALLENGE[:-1]),
        "a longer challenge": encode_base64url(CHALLENGE + b"\0"),
        "no challenge": "",
        "the challenge as hex": CHALLENGE.hex(),
        "a list of the challenge": [encode_base64url(CHALLENGE)],
        "a number for the challenge": 7,
    }
    for name, value in challenges.items():
        yield name, make_valid(challenge=value)
    origins = (
        *(
            "http://desk.example.com",
            "https://desk.example.com:8443",
            "https://evil.example.com",
            "https://example.com",
        ),
        *("https://desk.example.com.evil.com", "https://desk.example.com/", "HTTPS://DESK.EXAMPLE.COM", "null", ""),
        *("https://desk.example.com@evil.com", "android:apk-key-hash:x", None, ["https://desk.example.com"]),
    )
    for origin in origins:
        yield f"the origin {origin!r}", make_valid(origin=origin)
    yield "a frame of another site", make_valid(crossOrigin=True)
    data = write_data(PARTY.id, FLAGS, COUNTER + 1)
    own = write_client_data("webauthn.get", CHALLENGE, PARTY.origin)
    for name, client_data in {
        "client data of a list": b"[]",
        "client data of nothing": b"{}",
        "client data cut off": own[:-1],
        "client data in another encoding": write_client_data("webauthn.get", CHALLENGE, PARTY.origin)
        .decode()
        .encode("utf-16"),
        "client data that nests": b"[" * 2_000,
        "client data with another challenge later": own[:-1]
        + f',"challenge":"{encode_base64url(OTHER_CHALLENGE)}"}}'.encode(),
    }.items():
        yield name, device().seal(client_data, data)
    other = write_client_data("webauthn.get", OTHER_CHALLENGE, PARTY.origin)
    sealed = device().seal(other, data)
    yield "client data altered after the signature", {**sealed, "client_data": encode_base64url(own)}


def _forge_data() -> Iterator[tuple[str, Forged]]:
    for name, flags in {
        "nobody verified": PRESENT,
        "nobody present": VERIFIED,
        "no flags": 0,
        "only the backup flags": 0x18,
        "attested data that is missing": FLAGS | ATTESTED,
        "extensions that are missing": FLAGS | 0x80,
    }.items():
        yield name, make_valid(flags=flags)
    yield "verified in the altered flags only", _alter(make_valid(flags=PRESENT), 32, FLAGS)
    for counter in (COUNTER, COUNTER - 1, 0):
        yield f"the counter {counter} after {COUNTER}", make_valid(counter=counter)
    yield "a counter raised after the signature", _alter(make_valid(counter=COUNTER), 36, COUNTER + 1)
    client_data = write_client_data("webauthn.get", CHALLENGE, PARTY.origin)
    for party in ("example.com", "evil.example.com", "DESK.EXAMPLE.COM", "", "https://desk.example.com"):
        yield f"the host {party!r}", device().seal(client_data, write_data(party, FLAGS, COUNTER + 1))
    data = write_data(PARTY.id, FLAGS, COUNTER + 1)
    for length in (0, 1, 32, 36):
        yield f"{length} bytes of authenticator data", device().seal(client_data, data[:length])
    yield "a byte beyond the authenticator data", make_valid(rest=b"\0")
    truncated = cbor2.dumps({"credProtect": 2})[:-1]
    yield "extensions of truncated CBOR", make_valid(flags=FLAGS | 0x80, rest=truncated)
    yield "extensions of endless CBOR", make_valid(flags=FLAGS | 0x80, rest=b"\xbf" * 40)
    yield "attested data of truncated CBOR", make_valid(flags=FLAGS | ATTESTED, rest=bytes(18) + device().key[:-1])
    for place in (0, 31, 33, 36):
        yield f"byte {place} of the authenticator data altered", _alter(make_valid(), place)


def _forge_signatures() -> Iterator[tuple[str, Forged]]:
    valid = make_valid()
    content = decode_base64url(valid["authenticator_data"]) + sha256(decode_base64url(valid["client_data"])).digest()
    other = device(which="ben's")
    signature = decode_base64url(valid["signature"])
    for name, raw in {
        "no signature": b"",
        "a signature of zeros": bytes(len(signature)),
        "r and s of zero": bytes.fromhex("3006020100020100"),
        "a signature cut off": signature[:-1],
        "a signature with a byte more": signature + b"\0",
        "r and s without DER": bytes(64),
        "the signature of another key": sign(other.private, content),
        "the signature of an EdDSA key": sign(device("EdDSA").private, content),
        "the signature of an RSA key": sign(device("RS256").private, content),
        "a signature of the authenticator data alone": sign(device().private, content[:-32]),
        "a signature of the client data alone": sign(device().private, content[-32:]),
        "a signature of the client data itself": sign(
            device().private, content[:-32] + decode_base64url(valid["client_data"])
        ),
        "a signature with SHA-384": device().private.sign(content, ec.ECDSA(_sha384())),
        "a signature of the challenge": sign(device().private, CHALLENGE),
    }.items():
        yield name, {**valid, "signature": encode_base64url(raw)}
    yield "another passkey of the person", other.seal(decode_base64url(valid["client_data"]), content[:-32])
    yield "the id of another passkey", {**valid, "credential_id": encode_base64url(other.id)}
    sealed = other.seal(decode_base64url(valid["client_data"]), content[:-32])
    yield "another passkey under the id of this", {**sealed, "credential_id": valid["credential_id"]}
    yield "the handle of another person", {**valid, "user_handle": encode_base64url(b"ben's handle")}


def _forge_shapes() -> Iterator[tuple[str, Forged]]:
    valid = make_valid()
    for name in ("credential_id", "client_data", "authenticator_data", "signature"):
        yield f"no {name}", {key: value for key, value in valid.items() if key != name}
        yield f"{name} with padding", {**valid, name: valid[name] + "="}
        yield f"{name} with a blank", {**valid, name: valid[name] + " "}
        yield f"{name} of 5,000 characters", {**valid, name: "A" * 5_000}
    yield "a field more", {**valid, "user_verified": "true"}
    yield "standard base64", {**valid, "signature": valid["signature"].replace("_", "/").replace("-", "+") + "+/8"}


def _sha384() -> Any:
    from cryptography.hazmat.primitives.hashes import SHA384

    return SHA384()


def _alter(forged: Forged, place: int, value: int | None = None) -> Forged:
    """Return an assertion with another byte in its signed authenticator data."""
    data = bytearray(decode_base64url(forged["authenticator_data"]))
    data[place] = data[place] ^ 0x01 if value is None else value
    return {**forged, "authenticator_data": encode_base64url(bytes(data))}


def list_random(count: int, seed: int) -> Iterator[tuple[str, Forged]]:
    """Yield valid assertions of each algorithm with random bytes changed, cut or added in a random field."""
    draw = random.Random(seed)  # noqa: S311 - the same assertions for the same seed
    valid = {alg: make_valid(alg) for alg in ("ES256", "EdDSA", "RS256")}
    fields = ("client_data", "authenticator_data", "signature", "credential_id")
    while count:
        alg, name = draw.choice([*valid]), draw.choice(fields)
        raw = bytearray(decode_base64url(valid[alg][name]))
        for _ in range(draw.choice((1, 1, 2, 5))):
            place = draw.randrange(len(raw)) if raw else 0
            match draw.randrange(4):
                case 0 if raw:
                    raw[place] ^= 1 << draw.randrange(8)
                case 1 if raw:
                    raw[place] = draw.randrange(256)
                case 2:
                    raw[place:place] = draw.randbytes(draw.randrange(1, 9))
                case _:
                    del raw[place : place + draw.randrange(1, 9)]
        changed = encode_base64url(bytes(raw))
        if changed != valid[alg][name]:
            count -= 1
            yield alg, {**valid[alg], name: changed}


def accept_new(forged: Forged) -> object:
    """Check a new passkey as the desk does."""
    new = NewPasskey.model_validate(forged)
    return check_new(new, CHALLENGE, PARTY)


def make_new(attestation: bytes | None = None, **changed: Any) -> Forged:
    client_data = write_client_data("webauthn.create", CHALLENGE, PARTY.origin, changed)
    return {
        "credential_id": encode_base64url(device().id),
        "client_data": encode_base64url(client_data),
        "attestation": encode_base64url(device().attest() if attestation is None else attestation),
    }


def list_forged_new() -> Iterator[tuple[str, Forged]]:
    """Yield forged new passkeys, each with its name."""
    yield "the type of an assertion", make_new(type="webauthn.get")
    yield "another challenge", make_new(challenge=encode_base64url(OTHER_CHALLENGE))
    yield "another origin", make_new(origin="https://evil.example.com")
    yield "a frame of another site", make_new(crossOrigin=True)
    yield "nobody verified", make_new(device().attest(PRESENT | ATTESTED))
    yield "nobody present", make_new(device().attest(VERIFIED | ATTESTED))
    yield "no attested data", make_new(device().attest(FLAGS))
    yield "another host", make_new(Authenticator(party="evil.example.com", id=device().id).attest())
    yield "another id", {**make_new(), "credential_id": encode_base64url(b"another")}
    yield "truncated CBOR", make_new(device().attest()[:-1])
    yield "a truncated key", make_new(device().attest(key=device().key[:-1]))
    yield "no map", make_new(cbor2.dumps(["none"]))
    for fmt in ("tpm", "fido-u2f", "packed", "apple", "android-key", "android-safetynet", "compound", ""):
        row = cbor2.loads(device().attest())
        yield f"the format {fmt!r}", make_new(cbor2.dumps({**row, "fmt": fmt}))
    row = cbor2.loads(device().attest())
    yield "a statement of none", make_new(cbor2.dumps({**row, "attStmt": {"sig": b"x"}}))
    keys = {
        "ES256 of a P-384 key": describe_key(ec.generate_private_key(ec.SECP384R1()), -7),
        "ES384": describe_key(ec.generate_private_key(ec.SECP384R1()), -35),
        "RS256 of 1024 bits": describe_key(rsa.generate_private_key(65537, 1024), -257),  # noqa: S505 - a forgery
        "RS1": describe_key(device("RS256").private, -65535),
        "PS256": describe_key(device("RS256").private, -37),
        "an RSA key as ES256": describe_key(device("RS256").private, -7),
        "an EC key as RS256": describe_key(device().private, -257),
        "a point that is not on the curve": {**describe_key(device().private, -7), -2: bytes(32)},
        "no algorithm": {1: 2, -1: 1},
        "a secret key": {1: 4, 3: 5, -1: bytes(32)},
    }
    for name, key in keys.items():
        yield name, make_new(device().attest(key=cbor2.dumps(key)))
    yield "an uncompressed point", make_new(device().attest(key=b"\x04" + bytes(64)))


def list_unreadable_challenges() -> Iterator[str]:
    rows: list[Any] = [{}, {"challenge": 7}, {"challenge": "a="}, [], "x"]
    for facts in rows:
        yield encode_base64url(json.dumps(facts).encode())


def check_unreadable(client_data: str) -> None:
    read_challenge(client_data)
