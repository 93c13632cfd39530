"""An https receiver on this machine."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from tests.conformance.desks import wait_until


def free_port() -> int:
    """Return an unused port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(app: object, port: int, certificate: Path) -> Iterator[None]:
    """Serve an ASGI app at https://localhost in a thread."""
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        host="127.0.0.1",
        port=port,
        ssl_certfile=certificate,
        ssl_keyfile=certificate,
        log_level="warning",
        lifespan="off",
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: True if server.started else None)
        yield
    finally:
        server.should_exit = True
        thread.join()
