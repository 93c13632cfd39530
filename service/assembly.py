"""Assembly of one process: its connections, and what the features register."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from service.core.logs import Trouble
from service.core.settings import Settings
from service.core.settings.stores import hide_password
from service.core.store.connection.connecting import connect
from service.core.store.connection.macs import Macs
from service.core.store.connection.sealing import Keyring
from service.core.store.connection.watch import Watch
from service.core.store.tenants import Connections
from service.core.wiring import Process, Wiring
from service.features.registry import FEATURES, HOOKS


@asynccontextmanager
async def open_process(settings: Settings) -> AsyncIterator[Process]:
    """Connect to the store and yield the parts; close the connections at the end."""
    redis = connect(settings.store_url, macs=Macs(settings.key_file))
    blocking = connect(settings.store_url, blocking=True)
    trouble, address = Trouble("store_away"), hide_password(settings.store_url)
    watch = Watch(blocking, on_lost=lambda error: trouble.note(error, address=address), on_found=trouble.over)
    connections = Connections(redis, keyring=Keyring(settings.key_file))
    async with AsyncExitStack() as observing:
        opened = [feature.observe(settings) for feature in FEATURES if feature.observe is not None]
        observers = [observer for each in opened for observer in await observing.enter_async_context(each)]
        process = Process(settings, connections, watch, HOOKS._replace(observers=tuple(observers)))
        try:
            store = process.wiring.store
            async with store.counts.kept(settings.home, settings.tenant):
                if store.counts.folder is not None:
                    store.starts.keep_in(store.counts.folder, settings.tenant)
                yield process
                await process.wiring.recovery.end()
        finally:
            connections.close()
            await process.posts.aclose()
            await redis.aclose()
            await blocking.aclose()


@asynccontextmanager
async def assemble(settings: Settings) -> AsyncIterator[Wiring]:
    """Connect to the store and yield the parts that serve its tenant."""
    async with open_process(settings) as process:
        yield process.wiring
