"""Signing and verifying of messages by the Standard Webhooks specification."""

import base64
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.clock import now_ms
from sayso.core.signing import (
    TOLERANCE_S,
    SignedMessage,
    new_signing_key,
    new_signing_secret,
    public_key_of,
    sign_message,
    verify_message,
)
from sayso.errors import InvalidSignature

SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
OTHER = "whsec_" + base64.b64encode(b"o" * 32).decode()
BODY = '{"action":"approve","message":"Grüezi"}'.encode()
NOW_S = now_ms() // 1000

Change = Callable[[SignedMessage], SignedMessage]


def signed(
    secret: str = SECRET, at_s: int | None = None, message_id: str = "msg_1", body: bytes = BODY
) -> SignedMessage:
    at_s = now_ms() // 1000 if at_s is None else at_s
    return SignedMessage(message_id, str(at_s), sign_message(secret, message_id, at_s, body), body)


def takes(message: SignedMessage, *secrets: str) -> bool:
    try:
        return verify_message(secrets or (SECRET,), message, now_ms()) == message.id
    except InvalidSignature:
        return False


def with_signature(change: Callable[[str], str]) -> Change:
    return lambda message: replace(message, signatures=change(message.signatures or ""))


def with_time(timestamp: str) -> Change:
    """Return the message signed again with exactly this timestamp."""

    def change(message: SignedMessage) -> SignedMessage:
        text = f"{message.id}.{timestamp}.".encode() + message.body
        digest = hmac.digest(base64.b64decode(SECRET.removeprefix("whsec_")), text, hashlib.sha256)
        return replace(message, timestamp=timestamp, signatures=f"v1,{base64.b64encode(digest).decode()}")

    return change


def with_id(message_id: str) -> Change:
    """Return the message signed again with another id."""
    return lambda message: signed(message_id=message_id)


def at(shift_s: int) -> Change:
    return lambda message: signed(at_s=now_ms() // 1000 + shift_s)


def hexadecimal(signature: str) -> str:
    return "v1," + base64.b64decode(signature.removeprefix("v1,")).hex()


WRONG: dict[str, Change] = {
    "no id": lambda message: replace(message, id=None),
    "no time": lambda message: replace(message, timestamp=None),
    "no signature": lambda message: replace(message, signatures=None),
    "an empty id": with_id(""),
    "an empty time": lambda message: replace(message, timestamp=""),
    "an empty signature": with_signature(lambda text: ""),
    "another id": lambda message: replace(message, id="msg_2"),
    "another time": lambda message: replace(message, timestamp=str(int(str(message.timestamp)) - 1)),
    "another body": lambda message: replace(message, body=BODY + b" "),
    "a body cut short": lambda message: replace(message, body=BODY[:-1]),
    "an empty body": lambda message: replace(message, body=b""),
    "a body written otherwise": lambda message: replace(message, body=BODY.replace(b":", b": ")),
    "a body in another encoding": lambda message: replace(message, body=BODY.decode().encode("latin-1")),
    "a byte order mark": lambda message: replace(message, body=b"\xef\xbb\xbf" + BODY),
    "somebody else's secret": lambda message: signed(OTHER),
    "an id moved into the time": lambda message: replace(message, id="msg", timestamp=f"1.{NOW_S}"),
    "a time moved into the body": lambda message: replace(message, timestamp="1", body=BODY),
    "five minutes and two seconds ago": at(-TOLERANCE_S - 2),
    "in five minutes and two seconds": at(TOLERANCE_S + 2),
    "an hour ago": at(-3600),
    "long ago": at(-NOW_S + 1),
    "a day ahead": at(86_400),
    "milliseconds": with_time(str(NOW_S * 1000)),
    "a negative time": with_time(f"-{NOW_S}"),
    "a time with a sign": with_time(f"+{NOW_S}"),
    "a time with a fraction": with_time(f"{NOW_S}.5"),
    "a time in exponents": with_time("1.7e9"),
    "a time in hexadecimal": with_time(hex(NOW_S)),
    "a time with a space": with_time(f" {NOW_S}"),
    "a time with underscores": with_time(f"{NOW_S:_}"),
    "a time with a zero in front": with_time(f"0{NOW_S}"),
    "a time in other digits": with_time(str(NOW_S).translate({48 + n: 0x0660 + n for n in range(10)})),
    "a time that is a word": with_time("now"),
    "a time that is no number": with_time("nan"),
    "an endless time": with_time("9" * 400),
    "an id with a space": with_id("msg 1"),
    "an id with a line break": with_id("msg\n1"),
    "an endless id": with_id("m" * 201),
    "an id that is not ASCII": with_id("msg_ü"),
    "another version": with_signature(lambda text: text.replace("v1", "v2")),
    "version in capitals": with_signature(lambda text: text.replace("v1", "V1")),
    "no version": with_signature(lambda text: text.removeprefix("v1,")),
    "version alone": with_signature(lambda text: "v1,"),
    "two commas": with_signature(lambda text: text.replace(",", ",,")),
    "something behind it": with_signature(lambda text: text + ",x"),
    "an equals sign for the comma": with_signature(lambda text: text.replace(",", "=")),
    "hexadecimal": with_signature(hexadecimal),
    "other letters": with_signature(str.swapcase),
    "a signature cut short": with_signature(lambda text: text[:-5]),
    "a signature without padding": with_signature(lambda text: text.rstrip("=")),
    "signs that base64 skips": with_signature(lambda text: text.replace("v1,", "v1,!!!!")),
    "a list with commas": with_signature(lambda text: f"{text},{text}"),
    "a list with line breaks": with_signature(lambda text: f"v2,eA==\n{text}"),
    "a list with something malformed": with_signature(lambda text: f"v1 {text}"),
    "an endless list": with_signature(lambda text: "v1,eA== " * 16 + text),
    "a signature that is not ASCII": with_signature(lambda text: text.replace("v1,", "v1,ü")),
}
"""Each change makes one mistake in a valid message."""


def test_table_of_mistakes_is_complete() -> None:
    assert len(WRONG) >= 40


@pytest.mark.parametrize("what", WRONG)
def test_verify_message_with_one_mistake(what: str) -> None:
    message = WRONG[what](signed())
    with pytest.raises(InvalidSignature) as refused:
        verify_message([SECRET], message, now_ms())
    assert refused.value.message.endswith(".")


VECTORS = [
    (
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1_614_265_330,
        '{"test": 2432232314}',
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    ),
    (
        "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
        "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
        1_649_367_553,
        '{"email":"test@example.com","username":"test_user"}',
        "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=",
    ),
    (
        "whsec_plJ3nmyCDGBKInavdOK15jsl",
        "msg_loFOjxBNrRLzqYUf",
        1_731_705_121,
        '{"event_type":"ping","data":{"success":true}}',
        "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=",
    ),
    (SECRET, "msg_1", 1_795_262_584, BODY.decode(), "v1,d/ETt6kpBXsbdU/nHdKFZ7TQs8W8+YsIbyEKZNDwOMo="),
    ("whsec_AA==", "a.b", 1, "", "v1,6MzfNhZrKBEcYN7njd/MShKT7RBMLMhtKpiFgHVy7zw="),
]
"""Messages signed by the reference implementation of Standard Webhooks; the first is that of its own tests."""


@pytest.mark.parametrize(("secret", "message_id", "at_s", "body", "signature"), VECTORS)
def test_sign_message_equals_vector(secret: str, message_id: str, at_s: int, body: str, signature: str) -> None:
    assert sign_message(secret, message_id, at_s, body.encode()) == signature
    message = SignedMessage(message_id, str(at_s), signature, body.encode())
    assert verify_message([secret], message, at_s * 1000) == message_id


@pytest.mark.parametrize("shift_s", [0, 1, -1, TOLERANCE_S - 2, 2 - TOLERANCE_S])
def test_verify_message_within_five_minutes(shift_s: int) -> None:
    message = signed(at_s=now_ms() // 1000 + shift_s)
    assert takes(message)


@pytest.mark.parametrize(("late_ms", "taken"), [(300_000, True), (300_001, False), (-300_000, True), (-300_001, False)])
def test_five_minutes_are_counted_to_the_millisecond(late_ms: int, taken: bool) -> None:
    message = signed(at_s=1_700_000_000)
    try:
        verify_message([SECRET], message, 1_700_000_000_000 + late_ms)
    except InvalidSignature:
        assert not taken
    else:
        assert taken


def test_verify_message_with_several_signatures_and_secrets() -> None:
    message = signed(OTHER)
    both = replace(message, signatures=f"v1a,eA== v2,eA== {signed(SECRET).signatures} {message.signatures}")
    for secrets in ((SECRET, OTHER), (OTHER, SECRET), (OTHER,), (SECRET,)):
        assert takes(both, *secrets)
    assert takes(message, SECRET, OTHER)
    assert not takes(message, SECRET)


def test_verify_message_without_secrets() -> None:
    with pytest.raises(InvalidSignature):
        verify_message([], signed(), now_ms())


@pytest.mark.parametrize("secret", ["", "whsec_", "k" * 44, "whsec_***", "WHSEC_a2tra2tra2tr"])
def test_sign_message_with_invalid_secret(secret: str) -> None:
    with pytest.raises(ValueError, match="whsec_"):
        sign_message(secret, "msg_1", NOW_S, BODY)


KEY = (
    "whsk_"
    + base64.b64encode(bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")).decode()
)
"""The private key of the first test of RFC 8032."""


def test_public_key_of_the_key_of_rfc_8032() -> None:
    public = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    assert public_key_of(KEY) == f"whpk_{base64.b64encode(public).decode()}"


def test_ed25519_signature_verifies_with_the_public_key_alone() -> None:
    message = signed(KEY)
    assert str(message.signatures).startswith("v1a,")
    assert takes(message, public_key_of(KEY))
    assert takes(replace(message, signatures=f"v1,eA== {message.signatures}"), SECRET, public_key_of(KEY))
    assert not takes(message, public_key_of(new_signing_key()))
    assert not takes(message, SECRET)


@pytest.mark.parametrize("what", WRONG)
def test_ed25519_message_with_one_mistake(what: str) -> None:
    message = signed(KEY)
    changed = WRONG[what](replace(message, signatures=str(message.signatures).replace("v1a", "v1")))
    if changed.signatures is not None and "v1," in changed.signatures:
        changed = replace(changed, signatures=changed.signatures.replace("v1,", "v1a,"))
    assert not takes(changed, public_key_of(KEY))


def test_ed25519_signature_with_a_flipped_bit() -> None:
    message = signed(KEY)
    raw = base64.b64decode(str(message.signatures).removeprefix("v1a,"))
    for place in range(len(raw) * 8):
        flipped = bytearray(raw)
        flipped[place // 8] ^= 1 << place % 8
        assert not takes(replace(message, signatures=f"v1a,{base64.b64encode(flipped).decode()}"), public_key_of(KEY))


def test_hmac_with_the_bytes_of_a_public_key_is_refused() -> None:
    public = public_key_of(KEY)
    forged = signed(public.replace("whpk_", "whsec_"))
    assert not takes(forged, public)
    assert not takes(replace(forged, signatures=str(forged.signatures).replace("v1,", "v1a,")), public)


def test_new_secrets_and_keys_differ_each_time() -> None:
    assert len({new_signing_secret() for _ in range(10)} | {new_signing_key() for _ in range(10)}) == 20
    assert takes(signed(own := new_signing_secret()), own)


@pytest.mark.parametrize("key", ["whsk_", "whsk_***", "whsk_a2tra2tra2tr"])
def test_sign_message_with_invalid_key(key: str) -> None:
    with pytest.raises(ValueError, match="whsk_"):
        sign_message(key, "msg_1", NOW_S, BODY)


texts = st.text(alphabet=st.characters(codec="utf-8"))


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=200), texts)
def test_sign_message_follows_the_specification(message_id: str, text: str) -> None:
    at_s = now_ms() // 1000
    ours = sign_message(SECRET, message_id, at_s, text.encode())
    digest = hmac.digest(b"k" * 32, f"{message_id}.{at_s}.{text}".encode(), hashlib.sha256)
    assert ours == f"v1,{base64.b64encode(digest).decode()}"
    message = SignedMessage(message_id, str(at_s), ours, text.encode())
    assert takes(message)


@given(st.data())
def test_verify_message_with_a_flipped_bit(data: st.DataObject) -> None:
    message = signed()
    where = data.draw(st.sampled_from(["id", "timestamp", "signatures", "body"]))
    value = getattr(message, where)
    raw = bytearray(value if isinstance(value, bytes) else value.encode("latin-1"))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= 1 << data.draw(st.integers(0, 7))
    flipped: dict[str, Any] = {where: bytes(raw) if where == "body" else raw.decode("latin-1")}
    changed = replace(message, **flipped)
    assert not takes(changed)
