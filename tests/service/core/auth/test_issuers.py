"""The file of token issuers: every fault is named, and weak keys are refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from service.core.auth.person_tokens import InvalidIssuers, read_issuers
from tests.service.core.auth.signing import IDP, SECRET, public_pem, row, rsa_jwk, write_issuers

ED = public_pem("EdDSA", IDP)


def read_faults(folder: Path, *rows: dict[str, Any]) -> str:
    with pytest.raises(InvalidIssuers) as caught:
        read_issuers(write_issuers(folder, *rows))
    return str(caught.value)


def test_file_is_read_with_its_keys(tmp_path: Path) -> None:
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [rsa_jwk("r1")]}))
    found = read_issuers(write_issuers(tmp_path, row(jwks={"file": "jwks.json", "alg": "PS256"})))
    assert {name: key.alg for name, key in found[IDP].keys.items()} == {"k1": "EdDSA", "r1": "PS256"}
    assert (found[IDP].row.longest_s, found[IDP].row.person_claim) == (3600, "sub")


def test_secret_may_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDP_SECRET", SECRET)
    keys = [{"id": "h1", "alg": "HS256", "secret": "env:IDP_SECRET"}]
    assert read_issuers(write_issuers(tmp_path, row(keys=keys)))[IDP].keys["h1"].key == SECRET.encode()


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"keys": []}, "needs keys or jwks"),
        ({"keys": [{"id": "a", "alg": "none", "public_key": ED}]}, "keys.0.alg"),
        ({"keys": [{"id": "a", "alg": "HS512", "secret": SECRET}]}, "keys.0.alg"),
        ({"keys": [{"id": "a", "alg": "EdDSA"}]}, "a key for EdDSA needs public_key"),
        ({"keys": [{"id": "a", "alg": "HS256", "public_key": ED}]}, "a key for HS256 needs secret"),
        ({"keys": [{"id": "a", "alg": "HS256", "secret": "short"}]}, "use 32 or more"),
        ({"keys": [{"id": "a", "alg": "HS256", "secret": "env:MISSING_SECRET"}]}, "no variable MISSING_SECRET"),
        ({"keys": [{"id": "a", "alg": "RS256", "public_key": ED}]}, "no public key for RS256"),
        ({"keys": [{"id": "a", "alg": "EdDSA", "public_key": "nonsense"}]}, "not a public key in PEM"),
        ({"keys": [{"id": "a", "alg": "RS256", "public_key": public_pem("RS256", "weak")}]}, "use 2048 or more"),
        ({"keys": [{"id": "a", "alg": "EdDSA", "public_key": ED} for _ in range(2)]}, "an id of its own"),
        ({"audience": []}, "audience"),
        ({"longest_s": 86_401}, "longest_s"),
        ({"leeway_s": 301}, "leeway_s"),
        ({"algorithms": ["RS256"]}, "algorithms"),
        ({"jwks": {"file": "absent.json"}}, "cannot be read"),
    ],
)
def test_fault_of_an_issuer_is_named(tmp_path: Path, parts: dict[str, Any], problem: str) -> None:
    faults = read_faults(tmp_path, row(**parts))
    assert problem in faults
    assert faults.startswith("issuers.yaml:")


@pytest.mark.parametrize(
    ("jwk", "problem"),
    [
        ({"kty": "oct", "k": "c2VjcmV0", "kid": "o1", "alg": "HS256"}, "public keys only"),
        (rsa_jwk("r1", d="AQAB"), "public keys only"),
        (rsa_jwk("r1"), "not named"),
        (rsa_jwk("r1", alg="RS512"), "its algorithm is RS512"),
        (rsa_jwk("r1", alg="none"), "its algorithm is none"),
        (rsa_jwk("", alg="RS256"), "an id of its own"),
        (rsa_jwk("k1", alg="RS256"), "an id of its own"),
        ({"kty": "RSA", "kid": "r1", "alg": "RS256"}, "key r1"),
    ],
)
def test_fault_of_a_jwks_is_named(tmp_path: Path, jwk: dict[str, Any], problem: str) -> None:
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [jwk]}))
    assert problem in read_faults(tmp_path, row(jwks={"file": "jwks.json"}))


@pytest.mark.parametrize("text", ["", "[]", "version: 2\nissuers: []\n", "version: 1\nissuers: []\n", "a: b: c\n"])
def test_file_without_issuers_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "issuers.yaml"
    path.write_text(text)
    with pytest.raises(InvalidIssuers):
        read_issuers(path)


def test_issuer_is_listed_once(tmp_path: Path) -> None:
    assert "is there twice" in read_faults(tmp_path, row(), row())


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidIssuers, match="cannot be read"):
        read_issuers(tmp_path / "absent.yaml")
