"""Commit counts, by which each process notices a store that went back: a lagging replica, or an old copy.

The store counts the commits of each process, and every process remembers all counts: in memory and, where it has a
home, on disk. A count that is lower than the remembered one shows that commits are gone. The MACs of records cannot
show that, because an older record is authentic.

After a change of the server a process starts no calls until every process that was active has compared its counts with
the new server: a replica may lack commits that only another process knows.
"""

import asyncio
import fcntl
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import structlog
from pydantic import TypeAdapter, ValidationError
from redis.asyncio import Redis

from sayso.core.records.freezes import Loss
from sayso.errors import Unavailable
from service.core.store.connection.connecting import as_ms, name_shared, text
from service.core.store.connection.pipeline import Ask, Pipeline
from service.core.store.keys import FORMAT, STORE, TenantKeys
from service.core.store.loss.moves import OPEN, Move, read_move

FOLDER = "commits"
_EVERY_S = 1.0
_UNSETTLED_EVERY_S = 0.1
_FORGETFUL = "mem-"  # begins the names of processes that remember nothing on disk
_ACTIVE_MS = 10_000  # how long after its last comparison a process counts as active; a lost reply takes 5 s to notice

log = structlog.get_logger(__name__)


class Seen(NamedTuple):
    """The id of a store and its counts by process, as of `at_ms`."""

    store: str = ""
    at_ms: int = 0
    counts: Mapping[str, int] = {}


class _Memory(NamedTuple):
    """What one process keeps on disk: its name, what it saw last, and what it saw before that."""

    process: str
    seen: Seen
    past: tuple[Seen, ...] = ()


_MEMORY = TypeAdapter(_Memory)


class _Read(NamedTuple):
    server: str
    is_set_up: bool
    seen: Seen
    compared: Mapping[str, str]  # the server and the time of each process's last comparison
    mark: bytes | None  # of a move


async def _note_nothing(_loss: Loss) -> None: ...


async def _refresh_nothing() -> None: ...


async def _recall_nothing() -> int:
    return 0


class CommitCounts:
    """The counts of one tenant, as this process saw them last. `on_loss` freezes everything."""

    def __init__(self, redis: Redis, pipeline: Pipeline, keys: TenantKeys) -> None:
        self._redis, self._pipeline, self._keys = redis, pipeline, keys
        self._comparing = asyncio.Lock()
        self._server: str | None = None
        self._past: tuple[Seen, ...] = ()
        self._losses = 0
        self._remembered: list[_Memory] = []
        self._file: int | None = None
        self.folder: Path | None = None  # of the memory, where it can be written
        self.process, self.seen, self.settled = secrets.token_hex(4), Seen(), True
        self.epoch = 0  # counts the changes of the server, and the losses; what was read before one may be wrong
        self.on_recall: Callable[[], Awaitable[int]] = _recall_nothing
        self.on_loss: Callable[[Loss], Awaitable[None]] = _note_nothing
        self.on_settled: Callable[[], Awaitable[object]] = _refresh_nothing
        self._is_ending = self._is_forgetful = False
        self.move: Move | None = None  # as of the last comparison
        pipeline.on_open = self.compare

    def own(self) -> int:
        """Return the count of this process's commits that the store must have at least."""
        return self.seen.counts.get(self.process, 0)

    def note(self, number: int, at_ms: int) -> None:
        """Remember the count of a commit of this process that the store confirmed."""
        counts = {**self.seen.counts, self.process: max(number, self.own())}
        self.seen = self.seen._replace(counts=counts, at_ms=max(at_ms, self.seen.at_ms))

    def mark(self) -> tuple[str, str, str, str]:
        """Return the command that says with which server this process compared its commits, and when."""
        return "HSET", self._keys.comparing, self.process, f"{self._server} {self.seen.at_ms}"

    def check_live(self) -> None:
        """Raise `Unavailable` where this is not the live copy of the tenant, as of the last comparison."""
        if self.move is not None:
            raise self.move.describe(self._keys.tenant)

    async def require(self) -> None:
        """Compare after a commit that the store did not take; raises `Unavailable` where this copy is not live."""
        await self.compare()
        self.check_live()

    def check_settled(self, epoch: int) -> None:
        """Raise `Unavailable` where this server may lack commits, or changed since this epoch."""
        if not self.settled or epoch != self.epoch:
            raise Unavailable(
                "The store's server changed, and not every process has compared its commits with it yet. "
                "Nothing was changed. Try again in a few seconds."
            )

    async def compare(self, ask: Ask | None = None) -> None:
        """Compare the store with what this process saw; freeze everything if the store went back."""
        seen, losses = self.seen, self._losses  # a commit that is confirmed after this may be missing in what is read
        read = await self._read(ask or self._pipeline.ask_each)
        async with self._comparing:
            if losses != self._losses:  # another comparison has noticed it meanwhile
                return
            if self._server not in (None, read.server):
                self._unsettle()
            self._server = read.server
            seen = await self._recall(seen, read)
            if (loss := self._find_loss(seen, read)) is not None:
                self._unsettle()
                log.error("store_went_back", commits=loss.commits, from_ms=loss.from_ms, to_ms=loss.to_ms)
                await self.on_loss(loss)
                self.seen, self._past = read.seen, ()
                self._losses += 1
            self._adopt(read)
            await self._follow(read.mark)
            if self.move is not None:  # the absence of its comparison says that this process knows of the move
                await self._redis.hdel(self._keys.comparing, self.process)
            elif read.is_set_up:
                await self._redis.hset(*self.mark()[1:])
            if not self.settled and not self._find_others(read):
                await self.on_settled()
                self.settled = True
            self._save()

    @asynccontextmanager
    async def kept(self, home: Path, tenant: str) -> AsyncIterator[None]:
        """Compare each second during the block, and remember the counts in this home where it can be written."""
        self._open_file(home / FOLDER, tenant)
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            self._is_ending = True  # `asyncio.wait_for` of Python 3.11, in redis-py, may swallow a cancellation
            watching.cancel()
            await asyncio.wait((watching,))
            if self._file is not None:
                self._save()
                os.close(self._file)
                self._file = None
            with suppress(Unavailable):
                await self._redis.hdel(self._keys.comparing, self.process)

    async def count_forgetful(self) -> int:
        """Return how many active processes could not write their home when they started, or this one since."""
        read = await self._read(self._pipeline.ask_each)
        since_ms = read.seen.at_ms - _ACTIVE_MS
        names = [name for name, said in read.compared.items() if _read_number(said.rpartition(" ")[2]) > since_ms]
        return sum(name.startswith(_FORGETFUL) or (name == self.process and self._is_forgetful) for name in names)

    async def _watch(self) -> None:
        while not self._is_ending:
            try:
                await self.compare()
            except Unavailable:
                pass
            except Exception:  # a fault here must not end the comparisons
                log.exception("commits_not_compared")
            if not self._is_ending:
                await asyncio.sleep(_EVERY_S if self.settled else _UNSETTLED_EVERY_S)

    async def _read(self, ask: Ask) -> _Read:
        keys = self._keys
        store, version = name_shared(self._redis, STORE), name_shared(self._redis, FORMAT)
        commands = (("GET", store), ("EXISTS", version), ("HGETALL", keys.commits), ("HGETALL", keys.comparing))
        asked = await ask(*commands, ("GET", keys.moving), ("TIME",), ("INFO", "server"), ("INFO", "replication"))
        for reply in asked[:6]:
            if isinstance(reply, Exception):
                raise Unavailable(f"The store refuses to show its commits: {reply}") from reply
        store, exists, counts, compared, mark, time, *infos = asked
        seen = Seen(
            text(store or b""), as_ms(*time), {name: _read_number(number) for name, number in _pair(counts).items()}
        )
        return _Read(_identify(infos), bool(exists), seen, _pair(compared), mark)

    async def _follow(self, raw: bytes | None) -> None:
        """Note the mark of a move. A copy whose move has ended becomes live with its first process."""
        move = read_move(raw)
        if raw is not None and move is not None and move.state == "ready":
            opened = await self._redis.eval(OPEN, 1, self._keys.moving, raw)
            move = None if opened else move
        self.move = move

    async def _recall(self, seen: Seen, read: _Read) -> Seen:
        """Return what this process saw; at first, what the processes of its home remember of this store.

        What they remember from before the last loss that was noticed is not compared again.
        """
        store = read.seen.store
        if seen.store or not store or not read.is_set_up:
            return seen
        noticed_ms = await self.on_recall()
        for memory in self._remembered:
            if memory.seen.store == store and memory.seen.at_ms > noticed_ms:
                seen = Seen(store, max(seen.at_ms, memory.seen.at_ms), _join(seen.counts, memory.seen.counts))
                self._past += memory.past
        # Comparisons that began together each recall, and processes recall what others did: it would double each time.
        self._past = _thin(tuple(sorted(self._past, key=lambda past: past.at_ms)), read.seen.at_ms)
        return seen

    def _find_loss(self, seen: Seen, read: _Read) -> Loss | None:
        now = read.seen
        if not seen.store or not read.is_set_up or now.store not in ("", seen.store):
            return None  # it is new, emptied or another store
        gone = _count_gone(seen, now)
        if now.store and not gone:
            return None
        known = (past.at_ms for past in self._past if not _count_gone(past, now))
        return Loss(commits=gone, from_ms=max(known, default=0), to_ms=seen.at_ms)

    def _adopt(self, read: _Read) -> None:
        """Remember what was read; counts of confirmed commits may be ahead of it."""
        now = read.seen
        if now.store != self.seen.store or not read.is_set_up:
            self.seen, self._past = now, ()
        counts = _join(self.seen.counts, now.counts)
        if counts != self.seen.counts or not self._past:
            self._past = _thin((*self._past, now), now.at_ms)
        self.seen = now._replace(counts=counts)

    def _unsettle(self) -> None:
        self.settled, self.epoch = False, self.epoch + 1

    def _find_others(self, read: _Read) -> list[str]:
        """Return the active processes that have not compared their commits with this server."""
        return [
            name
            for name, (server, _, at_ms) in ((name, said.rpartition(" ")) for name, said in read.compared.items())
            if name != self.process and server != read.server and _read_number(at_ms) > read.seen.at_ms - _ACTIVE_MS
        ]

    def _open_file(self, folder: Path, tenant: str) -> None:
        """Take over the name and memory of an ended process of this home, and read those of all."""
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._remembered = [memory for path in folder.glob(f"{tenant}.[0-9]*") if (memory := _load(path))]
            self._file = _claim(folder, tenant)
            own = _load_from(os.pread(self._file, 1 << 24, 0))
        except OSError as error:
            log.warning("commits_not_remembered", folder=str(folder), error=str(error))
            self.process = f"{_FORGETFUL}{self.process}"
            return
        self.process = own.process if own is not None else self.process
        self.folder = folder

    def _save(self) -> None:
        if self._file is None:
            return
        raw = _MEMORY.dump_json(_Memory(self.process, self.seen, self._past)) + b"\n"
        try:
            os.pwrite(self._file, raw, 0)
            os.ftruncate(self._file, len(raw))
            self._is_forgetful = False
        except OSError as error:
            self._is_forgetful = True
            log.warning("commits_not_remembered", error=str(error))


def _pair(reply: Any) -> dict[str, str]:
    flat = reply if isinstance(reply, list) else [part for pair in reply.items() for part in pair]
    return {text(name): text(value) for name, value in zip(flat[::2], flat[1::2], strict=True)}


def _read_number(written: str) -> int:
    """Return a number of the store. One that is none counts as nothing, so its commits are missing."""
    return int(written) if written.isdecimal() else 0


def _identify(infos: Sequence[Any]) -> str:
    """Return the run id and the replication id of a server; empty where it tells neither."""
    lines = [line for info in infos if isinstance(info, bytes) for line in info.decode().splitlines()]
    named = dict(line.split(":", 1) for line in lines if ":" in line)
    return ".".join(named[name] for name in ("run_id", "master_replid") if name in named)


def _join(counts: Mapping[str, int], others: Mapping[str, int]) -> Mapping[str, int]:
    return {**counts, **{name: max(number, counts.get(name, 0)) for name, number in others.items()}}


def _count_gone(seen: Seen, now: Seen) -> int:
    return sum(max(0, number - now.counts.get(name, 0)) for name, number in seen.counts.items())


def _thin(past: tuple[Seen, ...], now_ms: int) -> tuple[Seen, ...]:
    """Return the oldest of each doubling of the age, up to twelve days."""
    kept: dict[int, Seen] = {}
    for seen in past:
        kept.setdefault(max(0, (now_ms - seen.at_ms) // 1000).bit_length(), seen)
    return tuple(seen for bits, seen in kept.items() if bits <= 20)


def _claim(folder: Path, tenant: str) -> int:
    """Open and lock the first file of this tenant that no process holds."""
    for number in count(1):
        file = os.open(folder / f"{tenant}.{number}", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            os.close(file)
    raise AssertionError


def _load(path: Path) -> _Memory | None:
    return _load_from(path.read_bytes())


def _load_from(raw: bytes) -> _Memory | None:
    with suppress(ValidationError):
        return _MEMORY.validate_json(raw.partition(b"\n")[0])
    return None
