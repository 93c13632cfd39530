"""A sender of signed decisions with an item to decide, and messages as they go over the wire."""

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from httpx import AsyncClient, Response

from sayso.core.clock import now_ms
from sayso.core.records.suspensions import SuspensionRecord
from service.features.webhooks.endpoints import NewSender
from tests.service.worlds import World

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
    """Return a signature of exactly these bytes."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = message_id.encode() + b"." + timestamp.encode() + b"." + body
    return "v1," + base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()


async def post(scene: Scene, sent: Sent) -> Response:
    async with scene.world.client() as client:
        return await _post(client, sent)


async def _post(client: AsyncClient, sent: Sent) -> Response:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(sent.body), 7):
            yield sent.body[start : start + 7]

    raw = [(name.encode(), value.encode("latin-1", "replace")) for name, value in sent.headers()]
    return await client.post(sent.path, content=pieces() if sent.chunked else sent.body, headers=raw)
