"""HTTPS receivers on this machine, with their own certificate and scripted responses."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme
import uvicorn
from starlette.requests import Request
from starlette.responses import Response

from launch.stops import wait_until
from service.core.wiring import Wiring
from workers.delivery import Courier
from workers.outbox import FanOut

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
REGISTRATION = "6f1d3b62-2c8a-4d3c-9a86-0b6f3c2d1e4f"

Say = Callable[[dict[str, Any]], Response]


def echo(message: dict[str, Any]) -> Response:
    """Answer as a receiver of the protocol does."""
    if message["type"] == "webhook.verification":
        return Response(json.dumps({"challenge": message["challenge"]}))
    return Response(status_code=204)


@dataclass
class Receiver:
    """What came in, and what is answered."""

    url: str
    say: Say = echo
    came: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    def events(self) -> list[dict[str, Any]]:
        """The messages about decisions, in the order in which they came."""
        bodies = [json.loads(body) for _, body in self.came]
        return [one for one in bodies if one["type"] == "request.resolved"]

    def delivery(self, **members: Any) -> dict[str, Any]:
        """Its registration, as a provisioner sends it."""
        known = {"type": "webhook", "url": self.url, "registration_id": REGISTRATION, "signing_secret": SECRET}
        return {**known, **members}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        body = await request.body()
        self.came.append((dict(request.headers), body))
        await self.say(json.loads(body))(scope, receive, send)


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for this machine; return it, and the authority that vouches for it."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    own = authority.issue_cert("localhost", "127.0.0.1")
    own.private_key_and_cert_chain_pem.write_to_path(str(folder / "own.pem"))
    return folder / "own.pem", folder / "authority.pem"


@contextmanager
def receiving(certificate: Path, host: str = "localhost") -> Iterator[Receiver]:
    """Serve a receiver in a thread of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        receiver = Receiver(f"https://{host}:{listener.getsockname()[1]}/aap")
        with serving_https(receiver, certificate, listener):
            yield receiver


@contextmanager
def serving_https(app: Any, certificate: Path, listener: socket.socket) -> Iterator[None]:
    """Serve an app over https in a thread of its own."""
    config = uvicorn.Config(
        app,
        ssl_certfile=certificate,
        ssl_keyfile=certificate,
        log_config=None,
        lifespan="off",
        timeout_graceful_shutdown=0,  # a client may keep an idle connection open
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        assert wait_until(lambda: server.started or not thread.is_alive(), 30)
        yield
    finally:
        server.should_exit = True
        thread.join()


async def deliver_events(wiring: Wiring, courier: Courier | None = None) -> Courier:
    """Save the messages of all announcements, then make one attempt at each due message."""
    courier = courier or Courier(wiring)
    await FanOut(wiring).announce_due()
    await courier.deliver_due()
    await courier.finish()
    return courier
