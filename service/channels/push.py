"""Push notifications, encrypted for the browser (RFC 8291) and signed with VAPID (RFC 8292)."""

import asyncio
import base64
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Annotated, Literal
from urllib.parse import urlsplit

import http_ece
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid02, VapidException
from pydantic import AfterValidator, Field, JsonValue, SecretStr, field_validator

from sayso.core.clock import now_ms
from sayso.core.text.language import cut
from sayso.errors import InvalidInput, NotFound, Unreadable
from service.channels.base import ConfiguredChannel, DeliveryFailed, Recipient, Rendered, allowed_actions
from service.channels.cards import Card, build_digest
from service.channels.config import ChannelConfig
from service.core.outgoing.connections import UnsafeUrl, check_url
from service.core.outgoing.http import read_retry_after_ms
from service.core.settings.receivers import Secret
from service.core.store.channels import Subscription, Subscriptions
from service.core.store.directory import Contact
from service.core.wiring import Wiring

LARGEST_PAYLOAD_BYTES = 3_000  # push services take 4096 bytes with the encryption
LONGEST_TEXT_CHARS = 300


def render_card(card: Card, *, alert: bool = True) -> Rendered:
    """Return the card as JSON for the service worker, in place of the item's last; `alert` makes a sound."""
    if card.live:
        purpose, body = "decide before it runs", card.headline
        if card.reverses:
            purpose, body = "it ran at once, undo it?", f"{body}\nUntil {card.deadline}; after that it stays as it is."
        title = f"Urgent: {purpose}" if card.urgent else f"{purpose[:1].upper()}{purpose[1:]}"
    else:
        title, body = "Closed", f"{cut(card.closing, LONGEST_TEXT_CHARS)}\n{card.headline}"
    payload: dict[str, JsonValue] = {
        "title": title,
        "body": body,
        "path": urlsplit(card.link).path,
        "tag": tag_of(card),
        "alert": alert and card.live,
    }
    encoded = json.dumps(payload, ensure_ascii=False).encode()
    return Rendered(encoded, f"{title}\n{body}", False, allowed_actions(card, complete=False, decides=frozenset()))


def render_digest(cards: Sequence[Card], event_id: str) -> bytes:
    """Return the JSON of a notification about many open items, which opens the inbox."""
    digest = build_digest(cards, LONGEST_TEXT_CHARS, lambda entry: len(entry.text) + 1)
    lines = [*(entry.text for entry in digest.entries), *([digest.rest] if digest.rest else [])]
    payload = {"title": digest.title, "body": "\n".join(lines), "path": "/", "tag": hash_tag(event_id), "alert": True}
    return json.dumps(payload, ensure_ascii=False).encode()


def tag_of(card: Card) -> str:
    """Return the item's name in notifications and as the push service's topic: 32 characters of base64url."""
    return hash_tag(f"{card.suspension_id} {card.item_id}")


def hash_tag(name: str) -> str:
    """Return a name as push services take it."""
    return sha256(name.encode()).hexdigest()[:32]


TOKEN_S = 12 * 3600  # how long a signature is valid; push services accept a day
_OURS = (400, 401, 403, 413)  # statuses that a repetition does not change


def _check_contact(contact: str) -> str:
    if not contact.isascii() or not contact.startswith(("mailto:", "https://")) or len(contact.split()) != 1:
        raise ValueError("write mailto:ops@example.com or an https address; push services contact you there")
    return contact


class PushConfig(ChannelConfig):
    """The fields of web push. Without `private_key` one is made at first use and kept in the store."""

    kind: Literal["push"]
    contact: Annotated[str, AfterValidator(_check_contact)]
    private_key: Secret | None = Field(default=None, description="VAPID private key: 32 bytes in base64url.")
    keep_s: int = Field(default=43_200, ge=0, le=2_419_200, description="How long a push service keeps a message.")

    @field_validator("private_key")
    @classmethod
    def _check_key(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None:
            read_key(key.get_secret_value())
        return key


class PushChannel(ConfiguredChannel[PushConfig]):
    """Notifications to subscribed browsers; `attach` gives it the store. The process closes its connections."""

    destination = "web push"

    def __init__(self, config: PushConfig) -> None:
        super().__init__(config)
        self._parts: Wiring | None = None
        key = config.private_key
        self._vapid: Vapid02 | None = read_key(key.get_secret_value()) if key is not None else None

    def attach(self, parts: Wiring) -> None:
        """Use the store and the guarded connections of this process."""
        self._parts = parts

    def destination_of(self, address: str) -> str:
        """Return the push service of one browser, which fails for itself."""
        return address.partition("/")[0]

    def render(self, card: Card) -> Rendered:
        return render_card(card)

    async def send(self, to: Recipient, card: Card, event_id: str) -> str:
        """Send the notification; a repeated one replaces the first, because the tag is the same."""
        await self._send_card(to, card, alert=True)
        return tag_of(card)

    async def send_digest(self, to: Recipient, cards: Sequence[Card], event_id: str) -> None:
        """Send one notification about open items, which opens the inbox."""
        await self._send(to, render_digest(cards, event_id), hash_tag(event_id), urgent=False)

    async def update(self, to: Recipient, reference: str, card: Card) -> None:
        """Replace the notification, without a sound."""
        await self._send_card(to, card, alert=False)

    async def remind(self, to: Recipient, reference: str, card: Card, event_id: str) -> None:
        await self._send_card(to, card, alert=True)

    async def public_key(self) -> str:
        """Return the key that browsers subscribe to, in base64url."""
        key = (await self._find_vapid()).public_key
        return _encode(key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))

    @property
    def parts(self) -> Wiring:
        """The parts that `attach` gave; raises `DeliveryFailed` without them."""
        if self._parts is None:
            raise DeliveryFailed(f"{self.name} is not connected to the store.")
        return self._parts

    async def _send_card(self, to: Recipient, card: Card, *, alert: bool) -> None:
        rendered = await asyncio.to_thread(render_card, card, alert=alert)
        await self._send(to, rendered.body, tag_of(card), urgent=card.urgent)

    async def _send(self, to: Recipient, payload: bytes, tag: str, *, urgent: bool) -> None:
        try:
            subscription = await self.parts.part(Subscriptions).find(to.address)
        except Unreadable as error:
            raise DeliveryFailed(error.message) from error
        if subscription is None:
            raise DeliveryFailed("The browser has unsubscribed.", permanent=True)
        parts = urlsplit(subscription.endpoint)
        audience, until_s = f"{parts.scheme}://{parts.netloc}", now_ms() // 1000 + TOKEN_S
        claims = {"sub": self.config.contact, "aud": audience, "exp": until_s}
        signed: dict[str, str] = (await self._find_vapid()).sign(claims)
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Encoding": "aes128gcm",
            "TTL": str(self.config.keep_s),
            "Urgency": "high" if urgent else "normal",
            "Topic": tag,
            **signed,
        }
        try:
            answer = await self.parts.posts.send(subscription.endpoint, headers, encrypt(subscription, payload))
        except UnsafeUrl as error:
            raise DeliveryFailed(error.message, permanent=True) from error
        if answer.accepted:
            return
        service = self.destination_of(to.address)
        if answer.status in (404, 410):
            await forget_browser(self.parts, self.name, to.address, by=self.name)
            raise DeliveryFailed("The browser has unsubscribed.", permanent=True)
        if answer.status == 0:
            raise DeliveryFailed(f"{service}: {answer.error}.")
        permanent = answer.status in _OURS or 300 <= answer.status < 400
        wait_s = read_retry_after_ms(answer, now_ms()) / 1000
        raise DeliveryFailed(f"{service} responded {answer.status}.", permanent=permanent, retry_after_s=wait_s)

    async def _find_vapid(self) -> Vapid02:
        if self._vapid is None:
            self._vapid = read_key(await self.parts.part(Subscriptions).keep_key(make_key()))
        return self._vapid


async def forget_browser(parts: Wiring, channel: str, address: str, *, by: str) -> None:
    """Unsubscribe a browser, and unlink it from its person."""
    await parts.part(Subscriptions).delete(address)
    contact = await parts.contacts.find(channel, address)
    if contact is not None:
        with suppress(NotFound):  # unlinked meanwhile
            await parts.contacts.unlink(contact.person, contact.id, by)


def check_subscription(endpoint: str, p256dh: str, auth: str, *, loopback: bool = False) -> Subscription:
    """Return the subscription that a browser sends; raises `InvalidInput`."""
    check_url(endpoint, loopback=loopback)
    try:
        key, secret = _decode(p256dh), _decode(auth)
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key)
    except ValueError:
        key = secret = b""
    if len(key) != 65 or len(secret) != 16:
        raise InvalidInput("The browser's keys are invalid. Turn notifications off in the browser, and on again.")
    return Subscription(endpoint=endpoint, p256dh=_encode(key), auth=_encode(secret))


def encrypt(subscription: Subscription, payload: bytes) -> bytes:
    """Return the payload as only the browser can read it."""
    sealed: bytes = http_ece.encrypt(
        payload,
        salt=os.urandom(16),
        private_key=ec.generate_private_key(ec.SECP256R1()),
        dh=_decode(subscription.p256dh),
        auth_secret=_decode(subscription.auth),
        version="aes128gcm",
    )
    return sealed


def make_key() -> str:
    """Return a new private key: 32 bytes in base64url."""
    number = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value
    return _encode(number.to_bytes(32))


def read_key(text: str) -> Vapid02:
    """Return the signer of a private key; raises `ValueError`."""
    try:
        return Vapid02.from_raw(text.encode())
    except (ValueError, VapidException) as error:
        raise ValueError("a VAPID key is 32 bytes in base64url") from error


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    """Return the bytes of base64url text with or without padding; raises `ValueError`."""
    if not text.isascii() or len(text) > 200:
        raise ValueError("not base64url")
    return base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), altchars=b"-_", validate=True)


async def subscribe(
    parts: Wiring, channel: PushChannel, person: str, sent: tuple[str, str, str], label: str
) -> Contact:
    """Save a browser's endpoint, key and secret for a person, also if somebody else used it; raises `InvalidInput`."""
    subscription = check_subscription(*sent, loopback=parts.settings.aap_allow_loopback)
    await forget_browser(parts, channel.name, subscription.address, by=person)
    await parts.part(Subscriptions).save(subscription)
    made = await parts.contacts.create_code(person, channel.name)
    return await parts.contacts.redeem_code(channel.name, made.code, subscription.address, label)
