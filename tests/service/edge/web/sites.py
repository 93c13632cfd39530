"""The service as people meet it, in this process or on a port of its own, and people who are signed in to it."""

import asyncio
import signal
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from launch.stops import wait_until
from sayso.core.clock import new_secret, now_ms
from service.__main__ import Server
from service.app import create_app
from service.assembly import assemble
from service.core.auth.reviewers import hash_token
from service.core.settings import Settings
from service.core.store.connection.connecting import connect
from service.core.store.connection.formats import check_format
from service.core.store.connection.macs import Macs
from service.core.store.people import People, Reviewer, Session
from service.core.wiring import Wiring
from service.edge.web.sessions import cookie_name
from tests.builders import store_of
from tests.service.edge.web.stories import TENANT

PASSWORD = "correct horse battery"
POLICY = """\
version: 1
default: request_approval
rules:
  - id: never-over-1000
    tool: refund_payment
    when: args.amount > 1000
    action: deny
    reason: Nobody refunds more than 1000 here
"""
TOKEN = "c" * 64
"""The form token of every session that a test opens."""

CSRF = "0" * 64 + TOKEN
"""What a form of such a session may send: the mask, and the masked token."""

OWN = {"Sec-Fetch-Site": "same-origin"}
"""What a browser says of a form on one of our own pages."""

T = TypeVar("T")


def settings_for(store_url: str, home: Path, rules: str = POLICY, **fields: str) -> Settings:
    """Settings over this store; without `rules`, the rules ask about everything and deny one thing."""
    policy = home / "policy.yaml"
    policy.write_text(rules)
    return Settings(home=home, redis_url=store_url, policy=policy, **fields)  # type: ignore[arg-type]


async def add_people(wiring: Wiring, *names: str) -> None:
    """Make reviewers who all sign in with the same password."""
    for name in names:
        await wiring.reviewers.add(name, PASSWORD, ("reviewer",))


async def let_in(settings: Settings, name: str) -> str:
    """Make a reviewer who is signed in already, and return the session's token: no password takes its time."""
    redis = connect(settings.store_url, macs=Macs(settings.key_file))
    people = People(store_of(redis))
    await people.add_reviewer(Reviewer(name=name, password_hash="none", created_at_ms=now_ms()))
    token = new_secret()
    session = Session(tenant=TENANT, name=name, roles=("reviewer",), csrf=TOKEN, created_at_ms=now_ms())
    await people.open_session(hash_token(token), session, 3_600_000)
    await redis.aclose()
    return token


@dataclass(frozen=True)
class Visit:
    """Somebody with a browser that runs no scripts, and the desk behind the pages they see."""

    client: AsyncClient
    wiring: Wiring
    app: FastAPI

    async def read(self, place: str, status: int = 200) -> str:
        """Return a page."""
        response = await self.client.get(place)
        assert response.status_code == status, response.text
        return response.text

    async def send(self, place: str, status: int = 303, **fields: str) -> str:
        """Send a form of one of our own pages; return where it leads to, or the page that it shows."""
        response = await self.client.post(place, data={"csrf": CSRF, **fields}, headers=OWN)
        assert response.status_code == status, response.text
        return response.headers["location"] if status == 303 else response.text


@asynccontextmanager
async def visit(settings: Settings, name: str | None = "anna") -> AsyncIterator[Visit]:
    """Open the site in this process for one person; without a name for somebody who is not signed in."""
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        cookies = {cookie_name(settings): await let_in(settings, name)} if name is not None else {}
        transport = ASGITransport(app)
        async with AsyncClient(transport=transport, base_url=settings.public_url, cookies=cookies) as client:
            yield Visit(client, app.state.process.wiring, app)


@dataclass
class Site:
    """A running site: its address, and a way to act on its records from outside."""

    url: str
    settings: Settings

    def act(self, story: Callable[[Wiring], Awaitable[T]]) -> T:
        """Do something through the desk, as another process would."""

        async def run() -> T:
            async with assemble(self.settings) as wiring:
                return await story(wiring)

        return self._beside(run)

    def token_of(self, name: str) -> str:
        """Sign somebody in and return their token."""
        return self._beside(lambda: let_in(self.settings, name))

    def _beside(self, run: Callable[[], Awaitable[T]]) -> T:
        """Run in a thread of its own, for a browser's driver keeps an event loop in this one."""

        async def await_it() -> T:
            return await run()

        with ThreadPoolExecutor(1) as beside:
            return beside.submit(asyncio.run, await_it()).result()


@contextmanager
def serve(settings: Settings, port: int = 0) -> Iterator[Site]:
    """Serve everything from a thread, on a free port by default."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", port))
        server = Server(create_app(settings), settings.model_copy(update={"stop_delay_s": 0}))

        def run() -> None:
            asyncio.run(check_format(settings.store_url))
            server.run(sockets=[bound])

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            assert wait_until(lambda: server.started or not thread.is_alive(), 30)
            yield Site(f"http://127.0.0.1:{bound.getsockname()[1]}", settings)
        finally:
            server.handle_exit(signal.SIGTERM, None)
            thread.join(timeout=10)
