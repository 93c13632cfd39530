"""A browser's push service as a small program: it checks headers and signatures, and decrypts as a browser does."""

import base64
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import http_ece
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid02
from starlette.requests import Request
from starlette.responses import Response

from sayso.core.clock import now_ms
from service.core.store.channels import Subscription
from tests.receivers import serving_https
from tests.service.channels.conformance import Shown

LARGEST_BODY = 4096
_HEADERS = {"ttl": "[0-9]{1,7}", "topic": "[A-Za-z0-9_-]{1,32}", "urgency": "very-low|low|normal|high"}


def encode(raw: bytes) -> str:
    """Return base64url without padding, as browsers write it."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """Return the bytes of base64url without padding."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Browser:
    """A subscribed browser, the messages it received, and whether the service still knows it."""

    subscription: Subscription
    key: ec.EllipticCurvePrivateKey
    secret: bytes
    received: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    gone: bool = False
    arrived: threading.Event = field(default_factory=threading.Event)


@dataclass
class PushService:
    """The service at `url`; `refusal` answers every message."""

    url: str
    browsers: dict[str, Browser] = field(default_factory=dict)
    refusal: Response | None = None

    def subscribe(self) -> Browser:
        """Make a browser that is subscribed."""
        key, secret = ec.generate_private_key(ec.SECP256R1()), b"sixteen bytes!!!"
        public = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        path = f"/send/{len(self.browsers)}"
        subscription = Subscription(endpoint=f"{self.url}{path}", p256dh=encode(public), auth=encode(secret))
        browser = self.browsers[path] = Browser(subscription, key, secret)
        return browser

    def at(self, address: str) -> Browser:
        """Return the browser of an address."""
        return next(one for one in self.browsers.values() if one.subscription.address == address)

    def cards(self, address: str) -> list[Shown]:
        return [Shown(f"{one['title']}\n{one['body']}", bool(one.get("actions"))) for one in self.at(address).received]

    def refuse(self, status: int, retry_after_s: int = 0) -> None:
        headers = {"Retry-After": str(retry_after_s)} if retry_after_s else {}
        self.refusal = Response(status_code=status, headers=headers) if status else None

    def remove(self, address: str) -> None:
        self.at(address).gone = True

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        answer = self.refusal or self._take(request, await request.body())
        await answer(scope, receive, send)

    def _take(self, request: Request, body: bytes) -> Response:
        browser = self.browsers.get(request.url.path)
        if browser is None or browser.gone:
            return Response(status_code=410)
        if len(body) > LARGEST_BODY:
            return Response(status_code=413)
        if fault := _find_fault(request, self.url):
            return Response(fault, 400)
        raw = http_ece.decrypt(body, private_key=browser.key, auth_secret=browser.secret, version="aes128gcm")
        browser.received.append(json.loads(raw))
        browser.headers.append(dict(request.headers))
        browser.arrived.set()
        return Response(status_code=201, headers={"Location": f"{self.url}/message/1"})


@contextmanager
def serving_push(certificate: Path, host: str = "localhost") -> Iterator[PushService]:
    """Serve a push service in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        service = PushService(f"https://{host}:{listener.getsockname()[1]}")
        with serving_https(service, certificate, listener):
            yield service


def _find_fault(request: Request, audience: str) -> str:
    """Return what a real service would refuse in the headers, or an empty text."""
    headers = request.headers
    if request.method != "POST" or headers.get("content-encoding") != "aes128gcm":
        return "not a message"
    for name, pattern in _HEADERS.items():
        if not re.fullmatch(pattern, headers.get(name, "")):
            return name
    found = re.fullmatch(r"vapid t=([\w.-]+),\s?k=([\w-]+)", headers.get("authorization", ""))
    if found is None or not Vapid02.verify(headers["authorization"]):
        return "VAPID"
    claims = json.loads(decode(found[1].split(".")[1]))
    if claims["aud"] != audience or not claims["sub"].startswith(("mailto:", "https://")):
        return "claims"
    return "" if now_ms() / 1000 < claims["exp"] <= now_ms() / 1000 + 86_400 else "exp"
