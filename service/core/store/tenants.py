"""Connections of one process to its store, and the share of one tenant in them."""

from collections.abc import Sequence
from itertools import cycle, islice
from math import inf

from redis.asyncio import Redis

from service.core.cache import Refresher
from service.core.store.connection.commits import Commit, Writer
from service.core.store.connection.connecting import translated
from service.core.store.connection.pipeline import Pipeline
from service.core.store.keys import keys_of
from service.core.store.lua import read_script
from service.core.store.suspensions.reading import Readings

_BATCH_PIPELINES = 4  # the server reads about 16 kB from each between two writes to its disk


class Connections:
    """The connections of one process, shared by all tenants. Each connects on first use."""

    def __init__(self, redis: Redis, refresher: Refresher | None = None) -> None:
        self.redis = redis
        self.refresher = refresher or Refresher()  # of the caches that read through these connections
        self.time_read = (0, -inf)  # the server's last known time, ms, and the monotonic time of that reading
        self.changes = Pipeline(redis)
        self.intake = Pipeline(redis)
        self.ready = Pipeline(redis)
        self.batches = cycle([Pipeline(redis) for _ in range(_BATCH_PIPELINES)])

    def close(self) -> None:
        """Close the connections, except the pool of `redis`, and refresh no more caches."""
        self.refresher.stop()
        for pipeline in (self.changes, self.intake, self.ready, *islice(self.batches, _BATCH_PIPELINES)):
            pipeline.close()


class TenantStore:
    """The share of one tenant: its key names, its unreadable records, and what features add to its commits."""

    def __init__(self, connections: Connections, tenant: str, writers: Sequence[Writer]) -> None:
        self.writers = writers
        self.connections = connections
        self.redis = connections.redis
        self.keys = keys_of(tenant)
        self.readings = Readings(tenant)
        self._commit = connections.redis.register_script(read_script("commit"))

    async def send(self, commit: Commit) -> bool:
        """Run a commit; return False, with nothing written, where a guard fails."""
        names, args = commit.arguments()
        async with translated():
            failed_guard, *_ = await self._commit(keys=names, args=args)
        return not failed_guard
