"""A token names a person only if everything about it is right."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.errors import InvalidPersonToken
from service.core.auth.person_tokens import MOST_CHARS, PersonTokens, Proof
from tests.service.core.auth.signing import (
    DESK,
    IDP,
    OTHER,
    SECRET,
    private_key,
    public_pem,
    row,
    rsa_jwk,
    sign,
    write_issuers,
)

OTHERS_KEY = private_key("EdDSA", OTHER)
STRANGER = private_key("EdDSA", "stranger")


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> PersonTokens:
    folder = tmp_path_factory.mktemp("issuers")
    (folder / "jwks.json").write_text(json.dumps({"keys": [rsa_jwk("r1", alg="RS256"), rsa_jwk("e1", use="enc")]}))
    shared = [
        {"id": "h1", "alg": "HS256", "secret": SECRET},
        {"id": "c1", "alg": "ES256", "public_key": public_pem("ES256")},
        {"id": "r2", "alg": "RS256", "public_key": public_pem("RS256", "r2")},
        {"id": "k1", "alg": "EdDSA", "public_key": public_pem("EdDSA", IDP)},
    ]
    first = row(jwks={"file": "jwks.json"}, keys=shared, longest_s=3600, leeway_s=10)
    return PersonTokens(write_issuers(folder, first, row(OTHER, audience=["https://elsewhere.example", DESK])))


def forge(header: Any, payload: Any, signature: bytes = b"x") -> str:
    """Return a token with these parts."""
    parts = [json.dumps(one).encode() if not isinstance(one, bytes) else one for one in (header, payload)]
    return ".".join(base64.urlsafe_b64encode(one).rstrip(b"=").decode() for one in (*parts, signature))


def reheader(token: str, **changes: Any) -> str:
    """Return the token with a changed header and its old signature."""
    head, payload, signature = token.split(".")
    header = json.loads(base64.urlsafe_b64decode(head + "=="))
    changed = base64.urlsafe_b64encode(json.dumps({**header, **changes}).encode()).rstrip(b"=").decode()
    return f"{changed}.{payload}.{signature}"


def sign_with_public_key() -> str:
    """Return a token signed by HMAC with a public key as the secret, which everybody knows."""
    import hashlib
    import hmac

    head, payload, _ = sign(alg="EdDSA", headers={"kid": "r2"}).split(".")
    header = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "kid": "r2"}).encode()).rstrip(b"=").decode()
    mac = hmac.new(public_pem("RS256", "r2").encode(), f"{header}.{payload}".encode(), hashlib.sha256).digest()
    assert head
    return f"{header}.{payload}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


@pytest.mark.parametrize(
    ("key", "alg", "key_id"),
    [
        (private_key("EdDSA", IDP), "EdDSA", "k1"),
        (SECRET, "HS256", "h1"),
        (private_key("ES256"), "ES256", "c1"),
        (private_key("RS256"), "RS256", "r1"),
        (private_key("RS256", "r2"), "RS256", "r2"),
    ],
)
def test_token_of_a_known_key_names_the_person(tokens: PersonTokens, key: Any, alg: str, key_id: str) -> None:
    token = sign(key, alg, {"kid": key_id})
    assert tokens.verify(token) == Proof("mara", "Mara Lindqvist", IDP)


def test_token_for_one_of_several_audiences_counts(tokens: PersonTokens) -> None:
    assert tokens.verify(sign(OTHERS_KEY, iss=OTHER, aud=[DESK, "https://x.example"])).issuer == OTHER


def test_key_id_may_be_left_out_where_the_issuer_has_one_key(tokens: PersonTokens) -> None:
    assert tokens.verify(sign(OTHERS_KEY, iss=OTHER, headers={"kid": None})).person == "mara"


@pytest.mark.parametrize("name", [None, 5, "a\nb", "x" * 201, "\u202eevil"])
def test_display_name_that_is_no_name_is_left_out(tokens: PersonTokens, name: Any) -> None:
    assert tokens.verify(sign(name=name)).name == ""


def test_clocks_may_differ_by_the_leeway(tokens: PersonTokens) -> None:
    assert tokens.verify(sign(iat=-600, exp=-5)).person == "mara"
    assert tokens.verify(sign(iat=5, nbf=5)).person == "mara"


REFUSED: dict[str, tuple[Callable[[], str], str]] = {
    "signed by a stranger": (lambda: sign(STRANGER), "signature does not verify"),
    "signed by the key of another issuer": (lambda: sign(OTHERS_KEY), "signature does not verify"),
    "of another issuer, signed by ours": (lambda: sign(iss=OTHER), "signature does not verify"),
    "of an unknown issuer": (lambda: sign(iss="https://evil.example"), "not one that this desk trusts"),
    "of an issuer in another spelling": (lambda: sign(iss=IDP + "/"), "not one that this desk trusts"),
    "without an issuer": (lambda: sign(iss=None), "not one that this desk trusts"),
    "with a list as its issuer": (
        lambda: forge({"alg": "EdDSA", "kid": "k1"}, {"iss": [IDP]}),
        "not one that this desk trusts",
    ),
    "for another audience": (lambda: sign(aud="https://other.example"), "another audience"),
    "for several others": (lambda: sign(aud=["https://a.example", "https://b.example"]), "another audience"),
    "for a part of the audience": (lambda: sign(aud=DESK[:-1]), "another audience"),
    "without an audience": (lambda: sign(aud=None), "no claim aud"),
    "expired": (lambda: sign(iat=-900, exp=-60), "has expired"),
    "without an expiry": (lambda: sign(exp=None), "no claim exp"),
    "with a text as its expiry": (lambda: sign(exp="9999999999"), "times are not numbers"),
    "without its time of issue": (lambda: sign(iat=None), "no claim iat"),
    "not valid yet": (lambda: sign(nbf=300), "not valid yet"),
    "issued in the future": (lambda: sign(iat=300, exp=900), "not valid yet"),
    "living too long": (lambda: sign(exp=3601), "lives longer than 3600 s"),
    "backdated to live shorter": (lambda: sign(iat=-3700, exp=600), "lives longer than 3600 s"),
    "with alg none": (lambda: forge({"alg": "none", "kid": "k1"}, {"iss": IDP, "sub": "mara"}), "not EdDSA"),
    "with alg None in capitals": (lambda: forge({"alg": "NONE", "kid": "k1"}, {"iss": IDP}), "not EdDSA"),
    "with alg none and no signature": (
        lambda: forge({"alg": "none"}, {"iss": IDP}).rpartition(".")[0] + ".",
        "three parts",
    ),
    "with a public key as the secret": (sign_with_public_key, "not RS256"),
    "with another algorithm of its key": (
        lambda: sign(private_key("RS256", "r2"), "PS256", {"kid": "r2"}),
        "not RS256, the only one",
    ),
    "with a shared secret for a public key": (lambda: sign(SECRET, "HS256"), "not EdDSA, the only one"),
    "with a key id that is not known": (lambda: sign(headers={"kid": "k2"}), "names no key"),
    "with the key id of an encryption key": (
        lambda: sign(private_key("RS256"), "RS256", {"kid": "e1"}),
        "names no key",
    ),
    "without a key id among several keys": (lambda: sign(headers={"kid": None}), "names no key"),
    "with a replayed key id of another key": (lambda: sign(headers={"kid": "c1"}), "not ES256"),
    "with a key id of another issuer": (lambda: sign(OTHERS_KEY, iss=OTHER, headers={"kid": "h1"}), "names no key"),
    "with a key id that is a path": (lambda: sign(headers={"kid": "../../dev/null"}), "names no key"),
    "with a key of its own": (lambda: sign(STRANGER, headers={"jwk": {"kty": "OKP"}}), "header has jwk"),
    "with an address of its keys": (lambda: sign(STRANGER, headers={"jku": "https://evil.example"}), "header has jku"),
    "with a certificate of its own": (lambda: sign(STRANGER, headers={"x5c": ["MIIB"]}), "header has x5c"),
    "with a critical extension": (lambda: sign(headers={"crit": ["exp"]}), "cannot be read"),
    "with an unencoded payload": (lambda: reheader(sign(), b64=False), "not a|cannot be read|header has b64"),
    "of another type": (lambda: sign(headers={"typ": "logout+jwt"}), "another type"),
    "without a person": (lambda: sign(sub=None), "claim sub is not the name"),
    "with an empty person": (lambda: sign(sub=""), "claim sub is not the name"),
    "with spaces around the person": (lambda: sign(sub=" mara"), "claim sub is not the name"),
    "with a line break in the person": (lambda: sign(sub="mara\nroot"), "claim sub is not the name"),
    "with a long person": (lambda: sign(sub="m" * 201), "claim sub is not the name"),
    "huge": (lambda: sign(note="x" * MOST_CHARS), "the limit is 8192"),
    "empty": (lambda: "", "three parts"),
    "two in one": (lambda: f"{sign()},{sign()}", "three parts"),
    "with a bearer prefix": (lambda: f"Bearer {sign()}", "three parts"),
    "of two parts": (lambda: sign().rpartition(".")[0], "three parts"),
    "of four parts": (lambda: f"{sign()}.AA", "three parts"),
    "encrypted": (lambda: f"{sign()}.AA.AA", "three parts"),
    "with padding": (lambda: f"{sign()}=", "three parts"),
    "with a line break": (lambda: f"{sign()}\n", "three parts"),
    "with a list as its payload": (lambda: forge({"alg": "EdDSA", "kid": "k1"}, [IDP]), "cannot be read"),
    "with a payload that is no JSON": (lambda: forge({"alg": "EdDSA", "kid": "k1"}, b"\xff{"), "cannot be read"),
    "with a deep payload": (lambda: forge({"alg": "EdDSA"}, b'{"a":' + b"[" * 3000), "cannot be read"),
    "with a header that is a list": (lambda: forge([1], {"iss": IDP}), "cannot be read"),
    "with its payload changed": (
        lambda: ".".join((sign().split(".")[0], sign(sub="root").split(".")[1], sign().split(".")[2])),
        "signature does not verify",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_token_is_refused(tokens: PersonTokens, case: str) -> None:
    make, problem = REFUSED[case]
    with pytest.raises(InvalidPersonToken, match=problem):
        tokens.verify(make())


@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_token_with_a_flipped_bit_is_refused(tokens: PersonTokens, place: int, bit: int) -> None:
    token = sign()
    raw = bytearray(token.encode())
    raw[place % len(raw)] ^= 1 << bit
    with pytest.raises(InvalidPersonToken):
        tokens.verify(raw.decode("latin-1"))


@given(text=st.text(max_size=300))
def test_any_text_is_refused_with_a_sentence(tokens: PersonTokens, text: str) -> None:
    with pytest.raises(InvalidPersonToken, match=r"\.$"):
        tokens.verify(text)


def test_refusal_repeats_nothing_of_the_token(tokens: PersonTokens) -> None:
    token = sign(STRANGER, sub="secret-person")
    with pytest.raises(InvalidPersonToken) as caught:
        tokens.verify(token)
    assert "secret-person" not in str(caught.value)
    assert token.split(".")[1] not in str(caught.value)


def test_desk_without_issuers_refuses_every_token() -> None:
    with pytest.raises(InvalidPersonToken, match="Set SAYSO_TOKEN_ISSUERS"):
        PersonTokens(None).verify(sign())


def test_another_claim_can_name_the_person(tmp_path: Path) -> None:
    found = PersonTokens(write_issuers(tmp_path, row(person_claim="email")))
    assert found.verify(sign(email="mara@example.com")).person == "mara@example.com"
    with pytest.raises(InvalidPersonToken, match="claim email"):
        found.verify(sign())


def test_rotated_keys_count_once_the_file_has_changed(tmp_path: Path) -> None:
    path = write_issuers(tmp_path, row())
    found = PersonTokens(path)
    assert found.verify(sign()).person == "mara"
    rotated = {"id": "k2", "alg": "EdDSA", "public_key": public_pem("EdDSA", "stranger")}
    write_issuers(tmp_path, row(keys=[rotated], longest_s=1800))
    assert found.verify(sign(STRANGER, headers={"kid": "k2"})).person == "mara"
    with pytest.raises(InvalidPersonToken, match="names no key"):
        found.verify(sign())


def test_faulty_file_keeps_the_last_valid_issuers(tmp_path: Path) -> None:
    path = write_issuers(tmp_path, row())
    found = PersonTokens(path)
    found.load()
    path.write_text("version: 1\n")
    assert found.verify(sign()).person == "mara"
    path.unlink()
    assert found.verify(sign()).person == "mara"
