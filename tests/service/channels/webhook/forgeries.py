"""Messages to the webhook by name: forged, malformed, signed but no decision, and genuine."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from sayso.core.clock import now_ms
from sayso.core.signing import new_signing_key, new_signing_secret, sign_message
from tests.service.channels.webhook.scenes import GLOBAL, Forge, Scene, Sent, sign


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

GENUINE: dict[str, Forge] = {
    "as it is": lambda scene, sent: sent,
    "chunked": lambda scene, sent: replace(sent, chunked=True),
    "signed 290 s ago": at(-290),
    "signed 299 s ahead": at(299),
    "with its reviewer": member(reviewer="anna"),
    "with a second signature before it": resign(lambda text: f"v1,AAAA {text}"),
    "with an unknown version before it": resign(lambda text: f"v9,eA== {text}"),
}
"""Messages that decide."""
