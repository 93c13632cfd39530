"""The schedule and the ready list. Both are hints: every transition checks the record again."""

from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

from sayso.errors import TooManyRequests, Unreadable
from service.core.cache import Cache, Refresher
from service.core.settings import Settings
from service.core.store.connection.connecting import WRITING, as_ms, name_shared, text, texts
from service.core.store.connection.pipeline import Script
from service.core.store.keys import FORMAT
from service.core.store.load import Sizes
from service.core.store.suspensions.reading import read_record
from service.core.store.tenants import DueList, TenantStore

_WRITING = Script(WRITING)


@dataclass(frozen=True)
class Ready:
    """A suspension that a worker may lease, or that was `handed` to it, and its packed record.

    One that `wants_preview` comes without its record: people are still deciding on it.
    """

    id: str
    packed: bytes
    handed: bool = False
    wants_preview: bool = False


class Queue(NamedTuple):
    """The number of runs on the ready list, and how long the first has waited, ms; 0 if unreadable."""

    runs: int
    oldest_ms: int


class Schedule(DueList):
    """Suspensions by due time, and those that are ready for workers."""

    def __init__(self, store: TenantStore) -> None:
        super().__init__(store.redis, store.keys.schedule)
        self._keys, self._taking, self._sealer = store.keys, store.connections.ready, store.sealer
        self.sizes = Sizes(store)

    async def now_ms(self) -> int:
        return as_ms(*await self._redis.time())

    async def writing_ms(self) -> int:
        """Return the store server's time if it accepts writes; raises `Unavailable`. Writes nothing."""
        return as_ms(*await self._taking.run(_WRITING, []))

    async def is_set_up(self) -> bool:
        """Return whether the store has its format; one that was emptied has none. Raises `Unavailable`."""
        return bool(await self._redis.exists(name_shared(self._redis, FORMAT)))

    async def deadlines(self, after_ms: int, until_ms: int, limit: int) -> list[str]:
        """Return pending suspensions with a deadline after `after_ms` and up to `until_ms`, the earliest first."""
        return texts(await self._redis.zrangebyscore(self._keys.inbox, f"({after_ms}", until_ms, start=0, num=limit))

    async def everything(self) -> list[str]:
        return texts(await self._redis.zrange(self._list, 0, -1))

    async def read_queue(self) -> Queue:
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.time()
            pipe.llen(self._keys.ready)
            pipe.lindex(self._keys.ready, 0)
            time, runs, first = await pipe.execute()
        since_ms = self._read_queued(first) if first is not None else None
        return Queue(int(runs), max(0, as_ms(*time) - since_ms) if since_ms is not None else 0)

    async def queued_since_ms(self) -> int | None:
        """Return when the first entry of the ready list was added; None if it is empty or unreadable."""
        first: Any = await self._redis.lindex(self._keys.ready, 0)
        return self._read_queued(first) if first is not None else None

    async def announce_rush(self, for_ms: int) -> None:
        """Let workers leave the ready list alone for a while, because many deadlines pass."""
        await self._redis.psetex(self._keys.rush, for_ms, "1")

    async def is_rush(self) -> bool:
        """Return whether more deadlines pass than the clock can apply at once."""
        return bool(await self._redis.exists(self._keys.rush))

    async def take(self, timeout_s: float, limit: int = 1, worker: str = "") -> list[Ready]:
        """Wait for suspensions, the oldest first: handed to `worker`, ready, or with a preview to make.

        Empty after the timeout.
        """
        lists = [*([self._keys.handed(worker)] if worker else []), self._keys.ready, self._keys.previews]
        taken = await self._taking.ask("BLMPOP", f"{timeout_s:g}", len(lists), *lists, "LEFT", "COUNT", limit)
        if not taken:
            return []
        if (name := text(taken[0])) == self._keys.previews:
            return [Ready(suspension_id, b"", wants_preview=True) for suspension_id in dict.fromkeys(texts(taken[1]))]
        return [read_ready(entry, handed=name != self._keys.ready) for entry in taken[1]]

    def _read_queued(self, raw: bytes) -> int | None:
        ready = read_ready(raw)
        checked = self._taking.macs.check(self._keys.suspension(ready.id), ready.packed)
        try:
            return read_record(self._sealer, ready.id, checked).record.receipt.enqueued_at_ms
        except Unreadable:
            return None


def read_ready(raw: bytes, *, handed: bool = False) -> Ready:
    """Return an entry of the ready list, or of a worker's own."""
    name, _, packed = raw.partition(b" ")
    return Ready(name.decode(errors="replace"), packed, handed)


SOONEST_S, LATEST_S = 1, 10  # of `Retry-After`


class Backlog:
    """Refuses work for workers while they are behind. The length of the ready list is known to half a second."""

    def __init__(self, schedule: Schedule, limits: Settings, refresher: Refresher) -> None:
        self._queue = Cache(schedule.read_queue, refresher)
        self._limits = limits

    async def admit(self) -> None:
        """Raise `TooManyRequests` while the backlog is over its bound."""
        queue = await self._queue.find()
        if not is_behind(queue, self._limits):
            return
        wait_s = find_wait_s(queue)
        raise TooManyRequests(
            f"{describe_queue(queue)} {describe_bound(self._limits)} Ask again in {wait_s} s.",
            retry_after_s=wait_s,
            limit="backlog",
        )


def is_behind(queue: Queue, limits: Settings) -> bool:
    """Return whether the list is too long, or its first run too old while one worker does not drive them all."""
    too_old = queue.oldest_ms > limits.backlog_s * 1000 and queue.runs > limits.drain_concurrency
    return too_old or queue.runs > limits.backlog_runs


def find_wait_s(queue: Queue) -> int:
    """Return when to ask again: the first run's age estimates how long the list takes, because it is taken in order."""
    return min(max(ceil(queue.oldest_ms / 1000), SOONEST_S), LATEST_S)


def describe_queue(queue: Queue) -> str:
    """Return the length of the list and the age of its first run as a sentence."""
    runs = "1 run waits" if queue.runs == 1 else f"{queue.runs} runs wait"
    return f"{runs} for a worker, the first for {queue.oldest_ms // 1000} s."


def describe_bound(limits: Settings) -> str:
    """Return the bound as a sentence."""
    return (
        f"The bound is {limits.backlog_runs} runs (SAYSO_BACKLOG_RUNS), or {limits.backlog_s} s (SAYSO_BACKLOG_S) "
        f"with more than {limits.drain_concurrency}."
    )
