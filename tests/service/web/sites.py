"""The dashboard on a small server of its own, and people who are signed in to it."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles
from httpx import ASGITransport, AsyncClient

from launch.waits import wait_until
from sayso.clock import new_secret, now_ms
from sayso.errors import (
    Conflict,
    InvalidInput,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    SaysoError,
    TooManyRequests,
    Unavailable,
)
from service.reviewers import hash_token
from service.settings import Settings
from service.store.connections import connect
from service.store.people import People, Reviewer, Session
from service.web.errors import render_problem
from service.web.pages import STATIC
from service.web.routes import router
from service.wiring import Wiring, wire
from tests.service.web.stories import TENANT

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
CSP = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'"
CSRF = "c" * 64
OWN = {"Sec-Fetch-Site": "same-origin"}
"""What a browser says of a form on one of our own pages."""

_STATUSES = {
    NotFound: 404,
    NotAuthenticated: 401,
    NotAllowed: 403,
    InvalidInput: 422,
    Conflict: 409,
    TooManyRequests: 429,
    Unavailable: 503,
}

T = TypeVar("T")


@dataclass(frozen=True)
class ShownProblem:
    """What the edge knows of an error."""

    status: int
    title: str
    detail: str
    headers: Mapping[str, str] = field(default_factory=dict)


def create_site(settings: Settings) -> FastAPI:
    """The pages alone, with the errors and headers that the service puts around them."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with wire(settings) as wiring:
            app.state.wiring = wiring
            app.state.closing = asyncio.Event()
            listening = asyncio.create_task(wiring.watch.listen())
            yield
            listening.cancel()

    app = FastAPI(version="0.1.0", lifespan=lifespan)
    app.include_router(router)
    app.mount("/static", StaticFiles(directory=STATIC))

    @app.exception_handler(SaysoError)
    async def show(request: Request, error: SaysoError) -> Response:
        status = next(code for kind, code in _STATUSES.items() if isinstance(error, kind))
        return render_problem(request, ShownProblem(status, type(error).__name__, error.message))

    @app.exception_handler(RequestValidationError)
    async def show_misfit(request: Request, error: RequestValidationError) -> Response:
        return render_problem(request, ShownProblem(422, "Invalid input", "The address has something wrong in it."))

    @app.middleware("http")
    async def secure(request: Request, follow: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await follow(request)
        response.headers["Content-Security-Policy"] = CSP
        return response

    return app


def settings_for(store_url: str, home: Path, **fields: str) -> Settings:
    """Settings over this store, with rules that ask about everything and deny one thing."""
    policy = home / "policy.yaml"
    policy.write_text(POLICY)
    return Settings(home=home, redis_url=store_url, policy=policy, **fields)  # type: ignore[arg-type]


async def let_in(settings: Settings, name: str) -> str:
    """Make a reviewer who is signed in already, and return the session's token: no password takes its time."""
    redis = connect(settings.store_url)
    people = People(redis)
    await people.add_reviewer(TENANT, Reviewer(name=name, password_hash="none", created_at_ms=now_ms()))
    token = new_secret()
    session = Session(tenant=TENANT, name=name, roles=("reviewer",), csrf=CSRF, created_at_ms=now_ms())
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
    app = create_site(settings)
    async with app.router.lifespan_context(app):
        cookies = {"sayso_session": await let_in(settings, name)} if name is not None else {}
        transport = ASGITransport(app)
        async with AsyncClient(transport=transport, base_url=settings.public_url, cookies=cookies) as client:
            yield Visit(client, app.state.wiring, app)


@dataclass
class Site:
    """A running site: its address, and a way to act on its records from outside."""

    url: str
    settings: Settings

    def act(self, story: Callable[[Wiring], Awaitable[T]]) -> T:
        """Do something through the desk, as another process would."""

        async def run() -> T:
            async with wire(self.settings) as wiring:
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


class ClosingServer(uvicorn.Server):
    """A server that tells open streams when it is to end."""

    def __init__(self, app: FastAPI) -> None:
        super().__init__(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2))
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then the rest."""
        self._app.state.closing.set()
        await super().shutdown(sockets)


@contextmanager
def serve(settings: Settings) -> Iterator[Site]:
    """Serve the dashboard from a thread on a free port."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        server = ClosingServer(create_site(settings))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        try:
            wait_until(lambda: server.started, 10)
            yield Site(f"http://127.0.0.1:{bound.getsockname()[1]}", settings)
        finally:
            server.should_exit = True
            thread.join(timeout=10)
