"""The service with a probe of its event loop at `/-/hold`: `python -m benchmarks.holds.service`."""

import asyncio
import socket

from fastapi import Request
from fastapi.responses import JSONResponse

from benchmarks.holds.probes import LoopProbe
from service.__main__ import Server
from service.app import create_app
from service.core.settings import Settings

HOLD = "/-/hold"
"""Returns the longest hold since the last request, in milliseconds."""


class ProbedServer(Server):
    """The service's own server, with a probe that runs in its event loop."""

    def __init__(self, settings: Settings) -> None:
        app = create_app(settings)
        self._probe = LoopProbe()

        async def read(_request: Request) -> JSONResponse:
            return JSONResponse(self._probe.take())

        app.add_route(HOLD, read)
        app.router.routes.insert(0, app.router.routes.pop())
        super().__init__(app, settings)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then probe."""
        await super().startup(sockets)
        self._probing = asyncio.create_task(self._probe.run())


if __name__ == "__main__":
    ProbedServer(Settings()).run()
