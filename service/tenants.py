"""Several tenants behind one service: each has an app of its own, found by the host that a request names."""

from collections.abc import Mapping
from contextlib import AsyncExitStack

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from service.app import begin_closing
from service.core.settings.tenants import host_of

_PROBED = ("/healthz", "/readyz")
_NOBODY = "Nobody is served under this host. Use the address of your desk."


class TenantApps:
    """The apps of all tenants. Nothing is shared between them but the process."""

    def __init__(self, apps: Mapping[str, FastAPI]) -> None:
        self._apps = {host_of(url): app for url, app in apps.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        await self._find(scope)(scope, receive, send)

    def _find(self, scope: Scope) -> ASGIApp:
        """Return the app of the host; a probe, which knows no host, asks the first."""
        app = self._apps.get(Headers(scope=scope).get("host", "").lower())
        if app is None and scope["path"] in _PROBED:
            app = next(iter(self._apps.values()))
        return app or PlainTextResponse(_NOBODY, 421)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Start and stop all apps together."""
        await receive()
        async with AsyncExitStack() as running:
            try:
                for app in self._apps.values():
                    await running.enter_async_context(app.router.lifespan_context(app))
            except Exception as error:  # noqa: BLE001 - the server reports it and stops
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                return
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    def list_apps(self) -> tuple[FastAPI, ...]:
        return tuple(self._apps.values())


def end_waits(served: FastAPI | TenantApps) -> None:
    """End all waiting requests and streams."""
    for app in served.list_apps() if isinstance(served, TenantApps) else (served,):
        begin_closing(app)
