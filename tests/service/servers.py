"""Serve the app over a real socket, for tests of what only a real server does: streams, signals, broken requests."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from launch.stops import wait_until
from service.app import create_app
from service.core.settings import Settings
from service.core.store.connection.formats import check_format
from service.edge.http.connections import ServerConfig


@contextmanager
def served(settings: Settings) -> Iterator[str]:
    """Serve on a free port in a thread of its own; yields the address."""
    config = ServerConfig(create_app(settings), settings, port=0, log_config=None, lifespan="on")
    server = uvicorn.Server(config)

    def run() -> None:
        asyncio.run(check_format(settings.store_url))
        server.run()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert wait_until(lambda: server.started or not thread.is_alive(), 30)
        (listener,) = server.servers
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
