"""Forged, altered, late and repeated decisions by webhook: none decides anything, as the reference verifier agrees."""

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import Any, cast

import pytest
from httpx import AsyncClient, Response
from pydantic import SecretStr
from standardwebhooks import webhooks as reference

from sayso.clock import now_ms
from sayso.errors import InvalidSignature
from sayso.records.suspensions import SuspensionRecord
from sayso.signing import SignedMessage, new_signing_key, new_signing_secret, sign_message, verify_message
from service.auth.credentials import Principal
from service.operations.senders import NewSender, register_sender, revoke_sender, rotate_sender
from service.settings import Settings
from tests.builders import make_pending, make_person
from tests.service.worlds import World, read_store

GLOBAL = "whsec_" + base64.b64encode(b"g" * 32).decode()
Headers = list[tuple[str, str]]


@dataclass(frozen=True)
class Sent:
    """A message as it goes over the wire; `offset_s` shifts the time at which it was signed."""

    secret: str
    body: bytes
    path: str
    id: str = "msg_1"
    offset_s: int = 0
    timestamp: str | None = None
    signatures: str | None = None
    extra: tuple[tuple[str, str], ...] = ()
    without: tuple[str, ...] = ()
    chunked: bool = False
    signed_body: bytes | None = None

    @property
    def time(self) -> str:
        return self.timestamp or str(now_ms() // 1000 + self.offset_s)

    def headers(self) -> Headers:
        """Return the three headers, the extra ones after them."""
        time = self.time
        signature = self.signatures
        if signature is None:
            signature = sign(self.secret, self.id, time, self.body if self.signed_body is None else self.signed_body)
        own = [("webhook-id", self.id), ("webhook-timestamp", time), ("webhook-signature", signature)]
        return [one for one in own if one[0] not in self.without] + list(self.extra)


@dataclass(frozen=True)
class Scene:
    """A sender with an item to decide, and what others hold."""

    world: World
    sender: NewSender
    other: NewSender
    record: SuspensionRecord
    rotated: str
    revoked: NewSender

    def decision(self, **members: Any) -> dict[str, Any]:
        item = self.record.items[0]
        made = {"suspension_id": self.record.id, "item_id": item.item_id, "action": "approve", "digest": item.digest}
        return {**made, **members}

    def message(self, **members: Any) -> Sent:
        body = json.dumps(self.decision(**members)).encode()
        return Sent(self.sender.secret, body, f"/hooks/decisions/{self.sender.sender.id}")


Forge = Callable[[Scene, Sent], Sent]


def sign(secret: str, message_id: str, timestamp: str, body: bytes) -> str:
    """Return a signature of exactly these bytes, whatever the header says."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = message_id.encode() + b"." + timestamp.encode() + b"." + body
    return "v1," + base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"webhook_secret": (SecretStr(GLOBAL),)})


@pytest.fixture
async def scene(world: World) -> Scene:
    root = Principal("default", "root", cast("Any", "human"), ("reviewer", "admin"))
    await make_person(world.wiring, "ben")
    sender = await register_sender(world.wiring, root, "pager", "anna")
    other = await register_sender(world.wiring, root, "ticket", "ben")
    revoked = await register_sender(world.wiring, root, "former", "ben")
    await revoke_sender(world.wiring, root, revoked.sender.id)
    rotated = await rotate_sender(world.wiring, root, sender.sender.id, 0)
    record = await make_pending(world.wiring)
    return Scene(world, NewSender(rotated.sender, rotated.secret), other, record, sender.secret, revoked)


async def post(scene: Scene, sent: Sent) -> Response:
    async with scene.world.client() as client:
        return await _post(client, sent)


async def _post(client: AsyncClient, sent: Sent) -> Response:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(sent.body), 7):
            yield sent.body[start : start + 7]

    raw = [(name.encode(), value.encode("latin-1", "replace")) for name, value in sent.headers()]
    return await client.post(sent.path, content=pieces() if sent.chunked else sent.body, headers=raw)


def flip(text: str, bit: int) -> str:
    """Return a text with one bit of one character changed."""
    place = bit // 7 % len(text)
    return text[:place] + chr(ord(text[place]) ^ (1 << bit % 7)) + text[place + 1 :]


def flip_body(bit: int) -> Forge:
    def forge(scene: Scene, sent: Sent) -> Sent:
        raw = bytearray(sent.body)
        raw[bit // 8 % len(raw)] ^= 1 << bit % 8
        return replace(sent, body=bytes(raw), signed_body=sent.body)

    return forge


def flip_signature(bit: int) -> Forge:
    def forge(scene: Scene, sent: Sent) -> Sent:
        time = sent.time
        raw = bytearray(base64.b64decode(sign(sent.secret, sent.id, time, sent.body).removeprefix("v1,")))
        raw[bit // 8 % len(raw)] ^= 1 << bit % 8
        return replace(sent, timestamp=time, signatures=f"v1,{base64.b64encode(raw).decode()}")

    return forge


def flip_header(field: str, bit: int) -> Forge:
    """Change one bit of a header after signing."""

    def forge(scene: Scene, sent: Sent) -> Sent:
        time = sent.time
        signature = sign(sent.secret, sent.id, time, sent.body)
        changed = {"id": sent.id, "timestamp": time}
        changed[field] = flip(changed[field], bit)
        return replace(sent, signatures=signature, **cast("Any", changed))

    return forge


def rewrite(change: Callable[[bytes], bytes]) -> Forge:
    """Change the body after signing."""
    return lambda scene, sent: replace(sent, body=change(sent.body), signed_body=sent.body)


def resign(change: Callable[[str], str]) -> Forge:
    """Change the signature header."""

    def forge(scene: Scene, sent: Sent) -> Sent:
        time = sent.time
        return replace(sent, timestamp=time, signatures=change(sign(sent.secret, sent.id, time, sent.body)))

    return forge


def at(offset_s: int) -> Forge:
    return lambda scene, sent: replace(sent, offset_s=offset_s)


def stamped(write: Callable[[int], str]) -> Forge:
    """Sign with a timestamp in another form."""
    return lambda scene, sent: replace(sent, timestamp=write(now_ms() // 1000))


def by(secret: Callable[[Scene], str]) -> Forge:
    return lambda scene, sent: replace(sent, secret=secret(scene))


def named(message_id: str) -> Forge:
    return lambda scene, sent: replace(sent, id=message_id)


def to(path: Callable[[Scene], str]) -> Forge:
    return lambda scene, sent: replace(sent, path=path(scene))


def twice(name: str, value: Callable[[Sent], str] | None = None) -> Forge:
    """Send a header twice, with the same or another value."""

    def forge(scene: Scene, sent: Sent) -> Sent:
        time = sent.time
        first = replace(sent, timestamp=time)
        known = dict(first.headers())
        return replace(
            first, signatures=known["webhook-signature"], extra=((name, value(first) if value else known[name]),)
        )

    return forge


def without(*names: str) -> Forge:
    return lambda scene, sent: replace(sent, without=names)


def chunked(forge: Forge) -> Forge:
    return lambda scene, sent: replace(forge(scene, sent), chunked=True)


def body(write: Callable[[Scene, bytes], bytes]) -> Forge:
    """Sign another body with the right secret: what is signed but is no valid decision."""
    return lambda scene, sent: replace(sent, body=write(scene, sent.body))


def member(**members: Any) -> Forge:
    return lambda scene, sent: replace(sent, body=json.dumps(scene.decision(**members)).encode())


def _reencoded() -> dict[str, Callable[[bytes], bytes]]:
    return {
        "spaces removed": lambda raw: raw.replace(b": ", b":"),
        "indented": lambda raw: json.dumps(json.loads(raw), indent=1).encode(),
        "keys sorted": lambda raw: json.dumps(json.loads(raw), sort_keys=True).encode(),
        "escaped": lambda raw: raw.replace(b"approve", b"\\u0061pprove"),
        "UTF-16": lambda raw: raw.decode().encode("utf-16"),
        "UTF-8 with a mark": lambda raw: b"\xef\xbb\xbf" + raw,
        "a line feed after it": lambda raw: raw + b"\n",
        "a space before it": lambda raw: b" " + raw,
        "CR LF between members": lambda raw: raw.replace(b", ", b",\r\n"),
        "base64": base64.b64encode,
        "URL encoding": lambda raw: b"body=" + raw,
        "a null byte after it": lambda raw: raw + b"\x00",
        "a list around it": lambda raw: b"[" + raw + b"]",
        "twice": lambda raw: raw + raw,
        "cut short": lambda raw: raw[:-1],
        "empty": lambda raw: b"",
        "denied": lambda raw: raw.replace(b"approve", b"deny"),
        "another item": lambda raw: raw.replace(b'"i1"', b'"i2"'),
        "a member added": lambda raw: raw[:-1] + b', "message": "ok"}',
        "a member doubled": lambda raw: raw[:-1] + b', "action": "approve"}',
    }


FORGED: dict[str, Forge] = {
    **{f"bit {bit} of the body flipped": flip_body(bit) for bit in range(0, 320, 8)},
    **{f"bit {bit} of the signature flipped": flip_signature(bit) for bit in range(0, 256, 8)},
    **{f"bit {bit} of the id flipped": flip_header("id", bit) for bit in range(0, 35, 3)},
    **{f"bit {bit} of the time flipped": flip_header("timestamp", bit) for bit in range(0, 70, 7)},
    **{f"body re-encoded: {name}": rewrite(change) for name, change in _reencoded().items()},
    **{f"chunked, bit {bit} flipped": chunked(flip_body(bit)) for bit in (1, 99, 500)},
    **{f"signed {s} s ago": at(-s) for s in (301, 302, 360, 3_600, 86_400, 31_536_000)},
    **{f"signed {s} s ahead": at(s) for s in (302, 303, 360, 3_600, 86_400)},
    "time in milliseconds": stamped(lambda now: str(now * 1000)),
    "time negative": stamped(lambda now: f"-{now}"),
    "time zero": stamped(lambda now: "0"),
    "time is a word": stamped(lambda now: "now"),
    "time is infinite": stamped(lambda now: "inf"),
    "time is not a number": stamped(lambda now: "nan"),
    "time in hexadecimal": stamped(hex),
    "time very long": stamped(lambda now: "9" * 400),
    "secret of another sender": by(lambda scene: scene.other.secret),
    "secret of the address without a sender": by(lambda scene: GLOBAL),
    "secret before the rotation": by(lambda scene: scene.rotated),
    "secret of a revoked sender": by(lambda scene: scene.revoked.secret),
    "secret made up": by(lambda scene: new_signing_secret()),
    "secret of zeros": by(lambda scene: "whsec_" + base64.b64encode(bytes(32)).decode()),
    "secret empty": by(lambda scene: "whsec_"),
    "secret cut short": by(lambda scene: "whsec_" + scene.sender.secret[6:-8]),
    "secret's text as key": by(lambda scene: "whsec_" + base64.b64encode(scene.sender.secret.encode()).decode()),
    "secret is the sender's id": by(
        lambda scene: "whsec_" + base64.b64encode(scene.sender.sender.id.encode()).decode()
    ),
    "to another sender's address": to(lambda scene: f"/hooks/decisions/{scene.other.sender.id}"),
    "to a revoked sender's address": to(lambda scene: f"/hooks/decisions/{scene.revoked.sender.id}"),
    "to an unknown sender": to(lambda scene: "/hooks/decisions/whs_none"),
    "to the address without a sender": to(lambda scene: "/hooks/decisions"),
    "no id": without("webhook-id"),
    "no time": without("webhook-timestamp"),
    "no signature": without("webhook-signature"),
    "no headers": without("webhook-id", "webhook-timestamp", "webhook-signature"),
    "empty id": named(""),
    "empty signature": resign(lambda text: ""),
    "signature without its version": resign(lambda text: text.removeprefix("v1,")),
    "version alone": resign(lambda text: "v1,"),
    "version 2": resign(lambda text: text.replace("v1", "v2")),
    "version of ed25519": resign(lambda text: text.replace("v1", "v1a")),
    "signature in hexadecimal": resign(lambda text: "v1," + base64.b64decode(text[3:]).hex()),
    "signature of capitals swapped": resign(str.swapcase),
    "signature reversed": resign(lambda text: "v1," + text[:2:-1]),
    "signature of zeros": resign(lambda text: "v1," + base64.b64encode(bytes(32)).decode()),
    "signature cut to 16 bytes": resign(
        lambda text: "v1," + base64.b64encode(base64.b64decode(text[3:])[:16]).decode()
    ),
    "signature doubled": resign(lambda text: "v1," + base64.b64encode(base64.b64decode(text[3:]) * 2).decode()),
    "signature by ed25519": lambda scene, sent: replace(
        sent, timestamp=(now := sent.time), signatures=sign_message(new_signing_key(), sent.id, int(now), sent.body)
    ),
    "signature without id": lambda scene, sent: replace(sent, signatures=sign(sent.secret, "", sent.time, sent.body)),
    "signature of the body alone": lambda scene, sent: replace(
        sent,
        signatures="v1,"
        + base64.b64encode(hmac.digest(base64.b64decode(sent.secret[6:]), sent.body, hashlib.sha256)).decode(),
    ),
    "signature by SHA-1": lambda scene, sent: replace(
        sent,
        timestamp=(now := sent.time),
        signatures="v1,"
        + base64.b64encode(
            hmac.digest(base64.b64decode(sent.secret[6:]), f"{sent.id}.{now}.".encode() + sent.body, hashlib.sha1)
        ).decode(),
    ),
    "id moved into the time": lambda scene, sent: replace(
        sent, id="msg", timestamp=f"1.{sent.time}", signatures=sign(sent.secret, "msg.1", sent.time, sent.body)
    ),
}
"""Messages whose signature is wrong, by name; the reference verifier refuses each of them, too."""

STRICTER: dict[str, Forge] = {
    "two ids": twice("webhook-id"),
    "two different ids": twice("webhook-id", lambda sent: "msg_2"),
    "two times": twice("webhook-timestamp"),
    "two different times": twice("webhook-timestamp", lambda sent: str(int(sent.time) - 1)),
    "two signatures": twice("webhook-signature"),
    "two signatures, one forged": twice("webhook-signature", lambda sent: "v1,AAAA"),
    "time with a fraction": stamped(lambda now: f"{now}.0"),
    "time with a sign": stamped(lambda now: f"+{now}"),
    "time with a zero in front": stamped(lambda now: f"0{now}"),
    "time in exponents": stamped(lambda now: f"{now / 1e9}e9"),
    "id with a space": named("msg 1"),
    "id with 201 characters": named("m" * 201),
    "signatures separated by a comma": resign(lambda text: f"{text},{text}"),
    "seventeen signatures": resign(lambda text: "v2,eA== " * 16 + text),
}
"""Messages that Sayso refuses although the reference verifier, which never sees a second header, may accept them."""

SIGNED: dict[str, Forge] = {
    "duplicate action": body(lambda scene, raw: raw[:-1] + b', "action": "approve"}'),
    "duplicate item": body(lambda scene, raw: raw[:-1] + b', "item_id": "i1"}'),
    "duplicate key, escaped": body(lambda scene, raw: raw[:-1] + b', "\\u0061ction": "approve"}'),
    "unknown member": member(by="root"),
    "reviewer of another sender": member(reviewer="ben"),
    "reviewer is an admin": member(reviewer="root"),
    "reviewer in capitals": member(reviewer="ANNA"),
    "reviewer is nobody": member(reviewer="nobody"),
    "reviewer is a list": member(reviewer=["anna"]),
    "digest of another item": member(digest="0" * 64),
    "item that is not there": member(item_id="i9"),
    "suspension that is not there": member(suspension_id="sus_none"),
    "action that is not there": member(action="allow"),
    "not JSON": body(lambda scene, raw: b"{{{"),
    "not UTF-8": body(lambda scene, raw: raw.replace(b"approve", b"appr\xffve")),
    "a list": body(lambda scene, raw: b"[" + raw + b"]"),
    "lone surrogate": body(lambda scene, raw: raw.replace(b"approve", b"\\ud800")),
    "nothing": body(lambda scene, raw: b""),
    "infinite number": body(lambda scene, raw: raw.replace(b'"approve"', b"1e999")),
}
"""Messages with a right signature that are no valid decision of their sender."""


@contextmanager
def clock_at(at_ms: int) -> Iterator[None]:
    """Let the reference verifier, which reads the machine's clock, see this time."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Clock":
            return cls.fromtimestamp(0, tz) + timedelta(milliseconds=at_ms)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "datetime", Clock)
        yield


def reference_accepts(secret: str, headers: Headers, body_: bytes, at_ms: int | None = None) -> bool:
    """Return whether the reference verifier accepts the message; it takes the last of two headers."""
    try:
        with clock_at(now_ms() if at_ms is None else at_ms):
            reference.Webhook(secret).verify(body_, dict(headers), json_parse=False)
    except (reference.WebhookVerificationError, reference.EmptyWebhookSecretError, ValueError, OverflowError):
        return False
    return True


def test_there_are_enough_cases() -> None:
    assert len(FORGED) + len(STRICTER) + len(SIGNED) >= 150


async def assert_nothing_changed(scene: Scene, before: dict[bytes, bytes | None]) -> None:
    after = await read_store(str(scene.world.wiring.settings.store_url))
    assert after == before


@pytest.mark.parametrize("name", FORGED)
async def test_forged_message_is_refused_as_by_the_reference(scene: Scene, name: str) -> None:
    sent = FORGED[name](scene, scene.message())
    before = await read_store(str(scene.world.wiring.settings.store_url))
    answer = await post(scene, sent)
    assert (answer.status_code, answer.json()["type"]) == (401, "/problems/invalid-signature"), answer.text
    await assert_nothing_changed(scene, before)
    held = scene.other.secret if scene.other.sender.id in sent.path else scene.sender.secret
    elsewhere = scene.revoked.sender.id in sent.path or not sent.path.endswith(scene.sender.sender.id)
    assert elsewhere or not reference_accepts(held, sent.headers(), sent.body)


@pytest.mark.parametrize("name", STRICTER)
async def test_malformed_header_is_refused(scene: Scene, name: str) -> None:
    before = await read_store(str(scene.world.wiring.settings.store_url))
    answer = await post(scene, STRICTER[name](scene, scene.message()))
    assert (answer.status_code, answer.json()["type"]) == (401, "/problems/invalid-signature"), answer.text
    await assert_nothing_changed(scene, before)


@pytest.mark.parametrize("name", SIGNED)
async def test_signed_message_that_is_no_decision_is_refused(scene: Scene, name: str) -> None:
    sent = SIGNED[name](scene, scene.message())
    before = await read_store(str(scene.world.wiring.settings.store_url))
    answer = await post(scene, sent)
    assert answer.status_code in (400, 403, 404, 409, 422), answer.text
    await assert_nothing_changed(scene, before)


GENUINE: dict[str, Forge] = {
    "as it is": lambda scene, sent: sent,
    "chunked": lambda scene, sent: replace(sent, chunked=True),
    "signed 290 s ago": at(-290),
    "signed 299 s ahead": at(299),
    "with its reviewer": member(reviewer="anna"),
    "with a second signature before it": resign(lambda text: f"v1,AAAA {text}"),
    "with an unknown version before it": resign(lambda text: f"v9,eA== {text}"),
}


@pytest.mark.parametrize("name", GENUINE)
async def test_genuine_message_decides_as_its_reviewer(scene: Scene, name: str) -> None:
    sent = GENUINE[name](scene, scene.message())
    assert reference_accepts(scene.sender.secret, sent.headers(), sent.body)
    answer = await post(scene, sent)
    assert (answer.status_code, answer.json()["verdict"]) == (200, "approved"), answer.text
    record = (await scene.world.wiring.desk.suspensions.read(scene.record.id)).record
    assert record.items[0].outcome is not None
    assert (record.items[0].outcome.by.id, record.items[0].outcome.by.channel) == ("anna", "webhook")


_EDGES = [sign * ms for sign in (-1, 1) for ms in (0, 299_000, 299_999, 300_000, 300_001, 301_000)]


@pytest.mark.parametrize("offset_ms", _EDGES)
def test_five_minutes_end_as_for_the_reference(offset_ms: int) -> None:
    secret, at_s = new_signing_secret(), 1_795_255_307
    signature = sign_message(secret, "msg_1", at_s, b"{}")
    now = at_s * 1000 - offset_ms
    try:
        verify_message([secret], SignedMessage("msg_1", str(at_s), signature, b"{}"), now)
        accepted = True
    except InvalidSignature:
        accepted = False
    headers = [("webhook-id", "msg_1"), ("webhook-timestamp", str(at_s)), ("webhook-signature", signature)]
    assert accepted == reference_accepts(secret, headers, b"{}", now) == (abs(offset_ms) <= 300_000)


async def test_replayed_message_changes_nothing(scene: Scene) -> None:
    sent = replace(scene.message(), timestamp=str(now_ms() // 1000))
    assert (await post(scene, sent)).json()["repeated"] is False
    before = await read_store(str(scene.world.wiring.settings.store_url))
    again = await post(scene, sent)
    assert (again.status_code, again.json()["repeated"]) == (200, True)
    await assert_nothing_changed(scene, before)


async def test_id_of_an_earlier_message_with_another_body_is_refused(scene: Scene) -> None:
    assert (await post(scene, scene.message())).status_code == 200
    before = await read_store(str(scene.world.wiring.settings.store_url))
    answer = await post(scene, scene.message(action="deny", message="changed my mind"))
    assert answer.status_code == 409
    assert "webhook-id" in answer.json()["detail"]
    await assert_nothing_changed(scene, before)


async def test_same_id_of_two_senders_is_two_messages(scene: Scene) -> None:
    assert (await post(scene, scene.message())).status_code == 200
    path = f"/hooks/decisions/{scene.other.sender.id}"
    answer = await post(scene, replace(scene.message(), secret=scene.other.secret, path=path))
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/already-decided")


async def test_old_secret_is_accepted_until_the_overlap_ends(scene: Scene) -> None:
    root = Principal("default", "root", cast("Any", "human"), ("reviewer", "admin"))
    rotated = await rotate_sender(scene.world.wiring, root, scene.sender.sender.id, 60)
    assert (await post(scene, scene.message())).status_code == 200
    sent = replace(scene.message(), secret=rotated.secret, id="msg_2")
    assert (await post(scene, sent)).json()["type"] == "/problems/already-decided"


async def test_sender_of_an_inactive_reviewer_is_refused(scene: Scene) -> None:
    await scene.world.wiring.reviewers.deactivate("anna")
    answer = await post(scene, scene.message())
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/not-allowed")


async def test_address_without_a_sender_still_takes_the_secret_of_the_settings(scene: Scene) -> None:
    sent = replace(scene.message(reviewer="ben"), secret=GLOBAL, path="/hooks/decisions")
    assert (await post(scene, sent)).json()["verdict"] == "approved"
    record = (await scene.world.wiring.desk.suspensions.read(scene.record.id)).record
    assert record.items[0].outcome is not None
    assert record.items[0].outcome.by.id == "ben"
