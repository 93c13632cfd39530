"""`python -m service`: serve HTTP until a signal to stop, after checking the store's durability."""

import asyncio
import resource
import socket as sockets
from types import FrameType

import uvicorn
from fastapi import FastAPI

from sayso.core.policy.files.reading import RulebookError
from sayso.errors import Unavailable
from service.app import create_app
from service.channels.config import InvalidChannels
from service.channels.kinds import open_channels
from service.core.auth.providers import InvalidSignIn
from service.core.logs import log, start
from service.core.outgoing.assessors import InvalidAssessors, assessors_of, check_receivers
from service.core.policy.publishing import rulebook_of
from service.core.settings import InvalidSettings, Settings
from service.core.settings.tenants import list_desks
from service.core.store.connection.connecting import WeakDurability, check_durability
from service.core.store.connection.formats import OtherFormat, check_format
from service.core.store.connection.macs import Macs
from service.core.wiring import providers_of, settle_memory
from service.edge.http.connections import ServerConfig
from service.edge.http.listening import stop_connections
from service.features.control.drills import InvalidDrills, drills_of
from service.tenants import TenantApps, end_waits

GRACE_S = 10  # time for requests in flight after a signal to stop
UNDER_WAY_S = 0.5  # time for connections that have begun when the port closes


class Server(uvicorn.Server):
    """A server that ends long polls and streams on a signal to stop."""

    def __init__(self, app: FastAPI | TenantApps, settings: Settings) -> None:
        super().__init__(
            ServerConfig(
                app,
                settings,
                host=settings.host,
                port=settings.port,
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,  # trusted proxies are a setting; see `create_app`
                timeout_graceful_shutdown=GRACE_S,
                backlog=4096,
            )
        )
        self._app = app
        self._delay_s = settings.stop_delay_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._draining = False

    async def startup(self, sockets: list[sockets.socket] | None = None) -> None:
        """Start, then exclude permanent objects from garbage collection."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        settle_memory()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin closing on a signal to stop, and stop listening a little later; a second signal stops at once."""
        if self._loop is None or self._draining:
            super().handle_exit(sig, frame)
            return
        self._draining = True
        self._loop.call_soon_threadsafe(end_waits, self._app)
        self._loop.call_soon_threadsafe(self._loop.call_later, self._delay_s, super().handle_exit, sig, frame)

    async def shutdown(self, sockets: list[sockets.socket] | None = None) -> None:
        """Answer the requests that are under way to the port, then close it: other services take the next ones."""
        if self._delay_s:
            stop_connections(listener.fileno() for server in self.servers for listener in server.sockets)
            await asyncio.sleep(UNDER_WAY_S)
        await super().shutdown(sockets)


def main(settings: Settings) -> int:
    """Serve; return 1 for a store or rules that cannot be used."""
    try:
        apps = {desk.public_url: _open(desk) for desk in list_desks(settings).values()}
    except (
        InvalidAssessors,
        InvalidChannels,
        InvalidDrills,
        InvalidSignIn,
        InvalidSettings,
        RulebookError,
        WeakDurability,
        OtherFormat,
        Unavailable,
    ) as error:
        log.error("not_started", error=error.message)
        return 1
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each long poll holds a connection
    server = Server(apps[settings.public_url] if settings.tenants is None else TenantApps(apps), settings)
    try:
        server.run()
    except KeyboardInterrupt:
        return 0
    return 0 if server.started else 1


def _open(settings: Settings) -> FastAPI:
    """Return the app of a tenant, once its files and its store were checked."""
    rulebook_of(settings.policy)
    open_channels(settings)
    drills_of(settings.drills)
    providers_of(settings).load()
    check_receivers(assessors_of(settings.assessors), settings.receivers, loopback=settings.aap_allow_loopback)
    allowed, stated = settings.allow_weak_durability, settings.states_durability
    check = check_durability(settings.store_url, allow_weak=allowed, stated=stated, replicas=settings.replicas)
    weakness = asyncio.run(check)
    asyncio.run(check_format(settings.store_url, Macs(settings.key_file)))
    if weakness is not None:
        log.warning("the store may lose confirmed writes", weakness=weakness)
    return create_app(settings, weakness)


if __name__ == "__main__":
    raise SystemExit(start(main, sees=("metrics_token", "webhook_secret"), several=True, process="service"))
