"""Forged ID tokens by name, random ones, and the check that each must fail."""

import base64
import json
import random
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from hmac import digest
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from service.core.auth.providers import Provider
from service.features.sign_in.tokens import check_id_token, find_key, hash_access_token, read_claims, read_header
from tests.fakes.provider import CLIENT_ID, Key, make_key

NOW_S = 1_800_000_000
NONCE, ACCESS_TOKEN = "the nonce of this sign-in", "the access token of this sign-in"
ISSUER = "https://id.example.com"
PROVIDER = Provider(id="company", title="Company", issuer=ISSUER, client_id=CLIENT_ID)
CLAIMS: Mapping[str, Any] = {
    "iss": ISSUER,
    "aud": CLIENT_ID,
    "sub": "s-1",
    "exp": NOW_S + 300,
    "iat": NOW_S - 5,
    "nonce": NONCE,
    "at_hash": hash_access_token(ACCESS_TOKEN, "RS256"),
}
LOGOUT_EVENT: dict[str, Any] = {"http://schemas.openid.net/event/backchannel-logout": {}}


@cache
def keys() -> dict[str, Key]:
    """The provider's keys by algorithm."""
    return {alg: make_key(alg, f"key-{alg}") for alg in ("RS256", "PS256", "ES256", "EdDSA")}


@cache
def published() -> list[Mapping[str, Any]]:
    """The JWKS: the provider's keys, and others that verify nothing."""
    weak = {**make_key("RS256", "weak", 1024).public}
    secret = {"kty": "oct", "k": encode(b"0" * 32), "kid": "secret", "alg": "HS256"}
    sealing = {**make_key("RS256", "sealing").public, "use": "enc"}
    wide = {**ec_public(ec.SECP384R1()), "kid": "wide", "alg": "ES256"}
    return [*(key.public for key in keys().values()), weak, secret, sealing, wide]


def ec_public(curve: ec.EllipticCurve) -> dict[str, Any]:
    numbers = ec.generate_private_key(curve).public_key().public_numbers()
    size = (curve.key_size + 7) // 8
    point = {"x": encode(numbers.x.to_bytes(size, "big")), "y": encode(numbers.y.to_bytes(size, "big"))}
    return {"kty": "EC", "crv": "P-384", **point}


def accept(token: str) -> dict[str, Any]:
    """Return the claims of a token as a sign-in does; raises `Untrusted`."""
    header = read_header(token, PROVIDER)
    key = find_key(published(), header)
    if key is None:
        raise LookupError("no key")
    claims = read_claims(token, key, PROVIDER, NOW_S)
    check_id_token(claims, PROVIDER, nonce=NONCE, access_token=ACCESS_TOKEN, alg=header.alg)
    return claims


def make_valid(alg: str = "RS256") -> str:
    return keys()[alg].sign({**CLAIMS, "at_hash": hash_access_token(ACCESS_TOKEN, alg)})


def encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def join(header: Any, claims: Any, signature: bytes = b"") -> str:
    parts = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in (header, claims)]
    return ".".join(map(encode, (*parts, signature)))


def list_forged() -> Iterator[tuple[str, str]]:
    """Yield forged tokens, each with its name."""
    yield from _forge_algorithms()
    yield from _forge_headers()
    yield from _forge_claims()
    yield from _forge_signatures()
    yield from _forge_shapes()


def _forge_algorithms() -> Iterator[tuple[str, str]]:
    for alg in ("none", "None", "NONE", "nOnE", "", "RS1", "HS256 ", "rs256", "ES256K", "RS512", "Ed25519", "ES384"):
        for signature in (b"", b"x" * 256):
            yield f"alg {alg!r} with {len(signature)} bytes", join({"alg": alg, "kid": "key-RS256"}, CLAIMS, signature)
    public = keys()["RS256"].private.public_key()
    secrets = {
        "PEM": public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "PEM without an end": public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).strip(),
        "DER": public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        "PKCS1": public.public_bytes(Encoding.PEM, PublicFormat.PKCS1),
        "JWK": json.dumps(keys()["RS256"].public).encode(),
        "modulus": decode(keys()["RS256"].public["n"]),
        "client id": CLIENT_ID.encode(),
        "nothing": b"",
        "secret of the JWKS": b"0" * 32,
    }
    for alg, name in (("HS256", "sha256"), ("HS384", "sha384"), ("HS512", "sha512")):
        for kind, secret in secrets.items():
            for key_id in ("key-RS256", "secret"):
                begin = join({"alg": alg, "kid": key_id}, CLAIMS).rstrip(".")
                yield f"{alg} with {kind} as {key_id}", f"{begin}.{encode(digest(secret, begin.encode(), name))}"
    for alg, key in keys().items():
        for other in keys():
            if other != alg:
                yield (
                    f"{other} signed as {alg}",
                    join({"alg": alg, "kid": f"key-{alg}"}, CLAIMS, decode(make_valid(other).split(".")[2])),
                )
                yield f"{alg} with the id of {other}", key.sign(CLAIMS, kid=f"key-{other}")


def _forge_headers() -> Iterator[tuple[str, str]]:
    attacker = make_key("RS256", "key-RS256")
    yield "another key of the same id", attacker.sign(CLAIMS)
    yield "a key in the header", attacker.sign(CLAIMS, jwk=attacker.public)
    yield "a JWKS in the header", attacker.sign(CLAIMS, jku="https://evil.example/jwks")
    yield "a certificate in the header", attacker.sign(CLAIMS, x5c=["MIIB"])
    yield "an address of a certificate", attacker.sign(CLAIMS, x5u="https://evil.example/x5u")
    for key_id in ("other", "", "../../dev/null", "key-RS256 ", "KEY-RS256", "' OR 1=1 --", "weak", "sealing", "wide"):
        yield f"the key id {key_id!r}", attacker.sign(CLAIMS, kid=key_id)
    for kind in ("at+jwt", "logout+jwt", "secevent+jwt", "JWE", "jwt ", "dpop+jwt"):
        yield f"the type {kind!r}", keys()["RS256"].sign(CLAIMS, typ=kind)
    for name, value in {"crit": ["exp"], "b64": False, "enc": "A256GCM", "zip": "DEF"}.items():
        begin = join({"alg": "RS256", "kid": "key-RS256", name: value}, CLAIMS).rstrip(".")
        signature = keys()["RS256"].private.sign(begin.encode(), PKCS1v15(), SHA256())
        yield f"the parameter {name}", f"{begin}.{encode(signature)}"
    for name, header in {"a number": 7, "a list": ["RS256"], "null": None}.items():
        yield f"{name} as header", join(header, CLAIMS, b"x" * 256)
        yield f"{name} as alg", join({"alg": header, "kid": "key-RS256"}, CLAIMS, b"x" * 256)
        yield f"{name} as key id", join({"alg": "RS256", "kid": header}, CLAIMS, b"x" * 256)


_WRONG: Mapping[str, tuple[Any, ...]] = {
    "iss": (None, "", f"{ISSUER}/", ISSUER.upper(), "http://id.example.com", [ISSUER], f"{ISSUER}.evil.org", 7, " "),
    "aud": (
        None,
        "",
        "other",
        [],
        [""],
        ["other"],
        {"sayso": 1},
        7,
        "Sayso",
        "sayso ",
        ["sayso", "other"],
        [["sayso"]],
    ),
    "exp": (None, "", NOW_S - 61, NOW_S - 60, 0, -1, str(NOW_S + 300), True, [NOW_S + 300], {}),
    "iat": (None, "", NOW_S + 61, 2**62, str(NOW_S), True, [], {}),
    "nbf": (None, "", NOW_S + 61, "soon", True, []),
    "azp": ("", "other", 7, [CLIENT_ID], "Sayso"),
    "nonce": (None, "", "other", 7, [NONCE], NONCE.upper(), f"{NONCE} ", f" {NONCE}", {}),
    "sub": (None, "", 7, ["s-1"], {}, "x" * 256, True),
    "at_hash": (None, "", "other", 7, [], encode(sha256(ACCESS_TOKEN.encode()).digest()), CLAIMS["at_hash"].upper()),
}


def _forge_claims() -> Iterator[tuple[str, str]]:
    key = keys()["RS256"]
    for name, values in _WRONG.items():
        for value in values:
            yield f"{name} = {str(value)[:40]!r} ({type(value).__name__})", key.sign({**CLAIMS, name: value})
    for name in ("iss", "aud", "exp", "iat", "nonce", "sub"):
        yield f"no {name}", key.sign({claim: value for claim, value in CLAIMS.items() if claim != name})
    logout = {name: value for name, value in CLAIMS.items() if name != "nonce"}
    yield "a logout token", key.sign({**logout, "events": LOGOUT_EVENT, "jti": "1"})
    for payload in (b"", b"7", b"null", b"[]", b'"x"', b"{", b"\xff\xfe{}", json.dumps(CLAIMS).encode("utf-16")):
        yield f"the payload {payload[:12]!r}", key.sign_bytes(payload)
    twice = json.dumps({**CLAIMS}).encode()[:-1] + b', "sub": "admin"}'
    yield "a claim twice", key.sign_bytes(twice)
    yield "a number that is none", key.sign_bytes(json.dumps({**CLAIMS, "exp": float("nan")}).encode())
    yield "an end without end", key.sign_bytes(json.dumps({**CLAIMS, "exp": float("inf")}).encode())
    yield "a deep payload", key.sign_bytes(b'{"a":' + b"[" * 2_000 + b"]" * 2_000 + b"}")


def _forge_signatures() -> Iterator[tuple[str, str]]:
    for alg in keys():
        header, claims, signature = make_valid(alg).split(".")
        raw = decode(signature)
        yield f"{alg} without a signature", f"{header}.{claims}."
        for place in (0, len(raw) // 2, len(raw) - 1):
            flipped = raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]
            yield f"{alg} with byte {place} flipped", f"{header}.{claims}.{encode(flipped)}"
        for length in (1, len(raw) - 1, len(raw) + 1):
            yield f"{alg} with {length} bytes", f"{header}.{claims}.{encode((raw + b'x')[:length])}"
        yield f"{alg} of zeros", f"{header}.{claims}.{encode(bytes(len(raw)))}"
        for changed in ({"sub": "admin"}, {"exp": NOW_S + 10**6}, {"aud": [CLIENT_ID]}, {"groups": ["admins"]}):
            payload = encode(json.dumps({**CLAIMS, **changed}).encode())
            yield f"{alg} of other claims {changed}", f"{header}.{payload}.{signature}"
    header, claims, signature = make_valid("ES256").split(".")
    raw = decode(signature)
    pair = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    yield "ES256 in DER", f"{header}.{claims}.{encode(pair)}"


def _forge_shapes() -> Iterator[tuple[str, str]]:
    token = make_valid()
    header, claims, signature = token.split(".")
    shapes = {
        "nothing": "",
        "one part": header,
        "two parts": f"{header}.{claims}",
        "four parts": f"{token}.{signature}",
        "five parts": f"{header}.{claims}.{signature}.a.b",
        "dots": "..",
        "a blank before": f" {token}",
        "a line end": f"{token}\n",
        "a line end within": f"{header}.\n{claims}.{signature}",
        "padding": f"{header}=.{claims}.{signature}",
        "other base64": f"{header}.{claims}.+/{signature[2:]}",
        "a wide letter": f"{header}.{claims}.é{signature[1:]}",
        "too many characters": f"{header}.{claims}{'A' * 33_000}.{signature}",
        "JSON": json.dumps({"payload": claims, "protected": header, "signature": signature}),
        "a word before": f"Bearer {token}",
        "parts exchanged": f"{claims}.{header}.{signature}",
        "no header": f".{claims}.{signature}",
        "no claims": f"{header}..{signature}",
    }
    yield from shapes.items()


ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."


def list_random(count: int, seed: int) -> Iterator[str]:
    """Yield tokens that are valid but for random changes; some carry claims that nobody signed."""
    dice = random.Random(seed)  # noqa: S311 - the same tokens for the same seed
    valid = [make_valid(alg) for alg in keys()]
    for _ in range(count):
        token = dice.choice(valid)
        kind = dice.randrange(4)
        if kind == 0:
            yield _change(token, dice)
        elif kind == 1:
            header, _claims, signature = token.split(".")
            altered = {**CLAIMS, dice.choice(list(CLAIMS)): dice.randrange(2**32), "sub": f"s-{dice.random()}"}
            yield f"{header}.{encode(json.dumps(altered).encode())}.{signature}"
        elif kind == 2:
            first, second = (dice.choice(valid).split(".") for _ in range(2))
            yield ".".join((first[0], second[1], encode(dice.randbytes(dice.choice((32, 64, 256))))))
        else:
            header, claims, signature = token.split(".")
            yield f"{header}.{claims}.{encode(dice.randbytes(len(decode(signature))))}"


def _change(token: str, dice: random.Random) -> str:
    """Return the token with one to three characters changed, so that another text is signed or another signature."""
    before = token.rpartition(".")
    while True:
        changed = list(token)
        for _ in range(dice.randint(1, 3)):
            changed[dice.randrange(len(changed))] = dice.choice(ALPHABET)
        text = "".join(changed)
        head, _dot, signature = text.rpartition(".")
        try:
            same = head == before[0] and decode(signature) == decode(before[2])
        except ValueError:
            same = False
        if not same:
            return text
