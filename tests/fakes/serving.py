"""Serving of fakes over HTTP, each on a port of its own in a thread."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from launch.stops import wait_until


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an ASGI app on a free port; yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, log_config=None, lifespan="off", access_log=False, timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            assert wait_until(lambda: server.started or not thread.is_alive(), 30)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
