"""The archive of one tenant: ended runs move into it, come back for their readers, and are deleted in the end."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from hashlib import sha256

import structlog

from sayso.core.clock import DAY_MS, HOUR_MS, monotonic_ms, new_id
from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.suspensions import SuspensionRecord
from sayso.errors import Altered, Conflict, NotFound, Unavailable, Unreadable
from service.core.store.runs.erasures import PROMISED_MS, Age, Why
from service.core.store.tenants import Archive, EndedRun, TenantStore
from service.core.wiring import Wiring
from service.features.archive.places import open_place
from service.features.archive.segments import ArchivedRun, Segment, Summary, open_segment, write_segment
from service.features.archive.store import ArchiveIndex, Entry, Hot, HotRuns, describe_segment

MOST_RUNS, MOST_BYTES = 2_000, 16 * 1024 * 1024  # of one segment, before compression
MOST_RECALLED = 1_000
MOST_SEARCHED = 200  # the most segments that are opened for one day
_RECALLED_MS = 600_000  # how long a run that is read back stays in the store, at least
_WRITING_MS = 3_600_000  # how long a segment may take from its name to its runs
_CACHED = 2
_SUFFIX = ".sayso"
_AT_ONCE = 8
_ROUNDS = 10
_BY = Actor(id="worker", kind=ActorKind.WORKER, channel="archive")

_LOG = structlog.get_logger(__name__)


class RunArchive(Archive):
    """The archived runs of one tenant; every reader of them reads here."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring, self._settings, self._sealer = wiring, wiring.settings, wiring.store.sealer
        self._keyring = wiring.store.connections.keyring
        self.place, self.index = open_place(wiring.settings), ArchiveIndex(wiring.store)
        self.hot = HotRuns(wiring.store)
        self._opened: OrderedDict[str, Segment] = OrderedDict()
        self._whole_at_ms: dict[str, float] = {}

    async def find(self, any_id: str) -> ArchivedRun | None:
        """Return an archived run by its id or that of a suspension, as last archived; None for one that is not."""
        for name in await self._list_holders(any_id):
            if (run := (await self.open(name)).find(any_id)) is not None:
                return run
        return None

    async def recall(self, any_id: str) -> bool:
        if await self.find(any_id) is None:
            return False
        if await self.hot.count_recalled() >= MOST_RECALLED:
            full = f"{MOST_RECALLED:,} archived runs are open already"
            raise Unavailable(f"{full}. Try again in an hour, or export fewer at once.")
        for _ in range(_ROUNDS):
            version = await self.index.read_version()
            run = await self.find(any_id)
            if run is None or await self.hot.put_back(run, version, await self._wiring.schedule.now_ms()):
                return run is not None
        raise Unavailable("The archive changes too often to read it. Try again in a moment.")

    async def read_trails(self, run_ids: Collection[str]) -> dict[str, list[bytes]]:
        trails: dict[str, list[bytes]] = {}
        for run_id in sorted(run_ids):
            if (run := await self.find(run_id)) is not None:
                trails[run_id] = [entry.encode() for entry in run.trail]
        return trails

    async def list_runs(self, begin_ms: int, end_ms: int) -> dict[str, int]:
        summaries = await self.list_summaries(begin_ms, end_ms)
        return {run.id: run.started_ms for run in summaries}

    async def list_summaries(self, begin_ms: int, end_ms: int, skip: int = 0, limit: int = 10**9) -> list[Summary]:
        """Return summaries of archived runs that began in a time, the first first; open no segment behind the last."""
        entries = sorted((await self.list_live()).items(), key=lambda pair: (pair[1].starts, -pair[1].made_at_ms))
        summaries: dict[str, Summary] = {}
        for name, entry in entries:
            if entry.starts[0] < end_ms and entry.starts[1] >= begin_ms:
                if sum(run.started_ms < entry.starts[0] for run in summaries.values()) >= skip + limit:
                    break
                for run in (await self.open(name)).summaries:
                    if begin_ms <= run.started_ms < end_ms:
                        summaries.setdefault(run.id, run)
        return sorted(summaries.values(), key=lambda run: (run.started_ms, run.id))[skip : skip + limit]

    async def list_decided(
        self, begin_ms: int, end_ms: int, owner: str | None
    ) -> AsyncIterator[SuspensionRecord | Unreadable]:
        live, seen = await self.list_live(), set[str]()
        held = [name for name, entry in live.items() if entry.starts[0] < end_ms and entry.ends[1] >= begin_ms]
        held.sort(key=lambda name: -live[name].made_at_ms)  # of a run in two segments, the later one counts
        for name in held[:MOST_SEARCHED]:
            try:
                segment = await self.open(name)
            except (Unreadable, Unavailable) as error:
                yield Unreadable(error.message)
                continue
            for run in segment.summaries:
                if run.id in seen:
                    continue
                seen.add(run.id)
                if owner in (None, run.owner) and run.started_ms < end_ms and run.ended_ms >= begin_ms:
                    for record in await asyncio.to_thread(self._read_decided, segment, run.id, begin_ms, end_ms):
                        yield record
        if len(held) > MOST_SEARCHED:
            yield Unreadable(f"Cut: {len(held)} archived segments may hold this day, and {MOST_SEARCHED} are searched.")

    def _read_decided(
        self, segment: Segment, run_id: str, begin_ms: int, end_ms: int
    ) -> list[SuspensionRecord | Unreadable]:
        run = segment.find(run_id)
        decided = run.decided.items() if run is not None else ()
        ids = [id_ for id_, at_ms in decided if begin_ms <= at_ms < end_ms]
        return self.hot.parse(run, ids) if run is not None else []

    async def list_live(self) -> dict[str, Entry]:
        """Return the segments that hold runs."""
        return {name: entry for name, entry in (await self.index.read()).items() if entry.state == "live"}

    async def may_hold(self, run_id: str) -> bool:
        return bool(await self._list_holders(run_id))

    async def find_last_day(self) -> str:
        last_ms = max((entry.starts[1] for entry in (await self.list_live()).values()), default=0)
        return read_day(last_ms).isoformat() if last_ms else ""

    async def find_days_beside(self, begin_ms: int, end_ms: int) -> tuple[str, str]:
        """Return the nearest days with runs before and after a time, by the bounds of segments; empty without any."""
        bounds = [at_ms for entry in (await self.list_live()).values() for at_ms in entry.starts]
        before = max((at_ms for at_ms in bounds if at_ms < begin_ms), default=0)
        after = min((at_ms for at_ms in bounds if at_ms >= end_ms), default=0)
        return (read_day(before).isoformat() if before else "", read_day(after).isoformat() if after else "")

    async def open(self, name: str) -> Segment:
        """Return a segment. Raises `Unreadable` for a missing, cut or altered one, and `Unavailable`."""
        entry = (await self.index.read()).get(name)
        if entry is None:
            raise Unreadable(f"The archived segment {name} was replaced meanwhile. Try again.")
        segment = self._opened.get(name)
        if segment is None:
            raw = await self.fetch(name, entry)
            try:
                segment = await asyncio.to_thread(open_segment, name, raw, self._sealer, self._keyring)
            except Unreadable as error:
                raise self._describe_damage(name, error) from error
            self._opened[name] = segment
            if len(self._opened) > _CACHED:
                self._opened.popitem(last=False)
        return segment

    async def list_names(self) -> list[str]:
        """Return the names of all segments in the archive's place. Raises `Unavailable`."""
        paths = await self.place.list(f"{self._wiring.tenant}/")
        return [path.partition("/")[2].removesuffix(_SUFFIX) for path in paths if path.endswith(_SUFFIX)]

    async def open_stray(self, name: str) -> Segment:
        """Return a segment that the index does not name. Raises `Unreadable`, `Unavailable`."""
        raw = await self.place.get(self.locate(name)) or b""
        return await asyncio.to_thread(open_segment, name, raw, self._sealer, self._keyring)

    def forget_opened(self) -> None:
        """Read every segment from its place again."""
        self._opened.clear()

    async def fetch(self, name: str, entry: Entry) -> bytes:
        """Return a segment's bytes. Raises `Unreadable` for a missing, cut or altered one, and `Unavailable`."""
        raw = await self.place.get(self.locate(name))
        if raw is None:
            raise self._describe_damage(name, Unreadable("it is missing"))
        if (await asyncio.to_thread(sha256, raw)).hexdigest() != entry.sha256:
            raise self._describe_damage(name, Altered("it was cut or altered"))
        return raw

    async def move_old(self, now_ms: int) -> int:
        """Move up to a segment of runs that are old enough at `now_ms`; return their number."""
        before_ms = now_ms - self._settings.hot_days * DAY_MS
        age = Age(before_ms, now_ms - PROMISED_MS)
        run_ids = await self.hot.list_old(age, MOST_RUNS, oldest_before_ms=before_ms - DAY_MS)
        taken, size = {}, 0
        for run_id in run_ids:
            try:
                stored = await self.hot.take(run_id)
            except Unreadable as error:
                _LOG.error("run_not_archived", run=run_id, reason=error.message)
                continue
            if stored is not None:
                taken[run_id] = stored
                size += sum(map(len, (*stored[0].records, *stored[0].trail, *stored[0].file_contents.values())))
            if size >= MOST_BYTES:
                break
        if not taken:
            return 0
        hot = [Hot(records[0].id, records[0].version) for _, records in taken.values()]
        version = await self.write([run for run, _ in taken.values()], uncut=taken, hot=hot)
        if version is None:
            return 0
        return sum([await self.hot.remove(run, records, version) for run, records in taken.values()])

    async def tidy(self, now_ms: int) -> None:
        """Finish what was cut off, remove runs that were read back, cut out changed ones, and delete expired ones."""
        for name, entry in (await self.index.read()).items():
            if entry.state == "dead" and entry.made_at_ms < now_ms - _WRITING_MS:
                await self._delete(name)
        for run_id in await self.hot.list_recalled(now_ms - _RECALLED_MS):
            version = await self.index.read_version()
            stored = await self.hot.take(run_id)
            if stored is None or stored[0] != await self.find(run_id):
                await self.hot.note_changed(run_id)
            else:
                await self.hot.remove(*stored, version)
        await self.cut_changed()
        await self._expire(now_ms - self._settings.keep_trail_days * DAY_MS)

    async def cut_changed(self) -> None:
        """Cut the runs out of their segments that the store holds in a later state, such as erased ones."""
        for _ in range(_ROUNDS):
            if not await self._cut_once():
                return
        raise Unavailable("The archive changes too often to cut runs out of it. Try again in a moment.")

    async def _cut_once(self) -> bool:
        """Make one attempt; return whether another one is needed."""
        uncut = await self.hot.list_uncut()
        holders: dict[str, dict[str, Hot]] = {}
        for run_id, hot in uncut.items():
            if hot is not None:
                for name in await self._list_holders(run_id):
                    holders.setdefault(name, {})[run_id] = hot
        changed: set[str] = set()
        for name, runs in holders.items():
            if not await self._cut(name, runs, runs.values()):
                changed |= runs.keys()
        await self.hot.note_cut([run_id for run_id in uncut if run_id not in changed])
        return bool(changed)

    async def erase_old(self, now_ms: int) -> int:
        """Erase the contents of archived runs that are too old at `now_ms`; return their number."""
        days, erased = self._settings.keep_calls_days, 0
        if days is None:
            return 0
        before_ms, why = now_ms - days * DAY_MS, Why(_BY, f"SAYSO_KEEP_CALLS_DAYS is {days}", now_ms)
        for name, entry in (await self.list_live()).items():
            if not 0 < entry.unerased_ms < before_ms:
                continue
            for run in (await self.open(name)).summaries:
                if run.erased_ms is None and run.ended_ms < before_ms:
                    try:
                        await self._wiring.retention.erasures.erase(run.id, why)
                        erased += 1
                    except (Conflict, NotFound, Unreadable) as error:
                        _LOG.warning("contents_not_erased", run=run.id, reason=error.message)
            await self.cut_changed()
        return erased

    async def find_damage(self, *, fresh: bool = True) -> list[str]:
        """Return a sentence for each segment that is missing, cut or altered.

        Without `fresh`, one that this process found whole in the last hour is not read again.
        """
        now_ms, faults, live = monotonic_ms(), list[str](), await self.list_live()
        self._whole_at_ms = {
            name: at_ms
            for name, at_ms in self._whole_at_ms.items()
            if name in live and not fresh and at_ms > now_ms - HOUR_MS
        }
        names = [name for name in live if name not in self._whole_at_ms]
        for begin in range(0, len(names), _AT_ONCE):
            some = names[begin : begin + _AT_ONCE]
            results = await asyncio.gather(*(self.fetch(name, live[name]) for name in some), return_exceptions=True)
            for name, result in zip(some, results, strict=True):
                if isinstance(result, Unreadable):
                    faults.append(result.message)
                elif isinstance(result, BaseException):
                    raise result
                else:
                    self._whole_at_ms[name] = now_ms
        return faults

    async def _list_holders(self, any_id: str) -> list[str]:
        """Return the segments that may hold an id, the latest first."""
        held = [(entry.made_at_ms, name) for name, entry in (await self.index.read()).items() if entry.may_hold(any_id)]
        return [name for _, name in sorted(held, reverse=True)]

    async def _expire(self, ended_before_ms: int) -> None:
        """Delete the runs that ended before this time, of a segment that has only some of them a day later."""
        for name, entry in (await self.list_live()).items():
            if entry.ends[1] < ended_before_ms:
                await self.index.change({name: _kill(entry)})
                await self._delete(name)
            elif entry.ends[0] < ended_before_ms - DAY_MS:
                summaries = (await self.open(name)).summaries
                await self._cut(name, [run.id for run in summaries if run.ended_ms < ended_before_ms])

    async def _cut(self, name: str, run_ids: Collection[str], hot: Collection[Hot] = ()) -> bool:
        """Replace a segment by one without these runs; return False where a run in the store is not as in `hot`."""
        segment, entry = await self.open(name), (await self.index.read())[name]
        kept = segment.list_runs(without=run_ids)
        if len(kept) == len(segment.summaries):
            return True
        dead = {name: _kill(entry)}
        if kept:
            version = await self.write(kept, made_at_ms=entry.made_at_ms, instead=dead, hot=hot)
        else:
            version = await self.index.change(dead, hot=hot)
        if version is not None:
            await self._delete(name)
        return version is not None

    async def _delete(self, name: str) -> None:
        await self.place.delete(self.locate(name))
        await self.index.change({name: None})
        self._opened.pop(name, None)

    async def write(
        self,
        runs: Sequence[ArchivedRun],
        *,
        uncut: Collection[str] = (),
        made_at_ms: int | None = None,
        instead: Mapping[str, Entry] | None = None,
        hot: Collection[Hot] = (),
    ) -> int | None:
        """Write a segment, read it back, and put it into the index, in place of another one; as `ArchiveIndex.change`.

        Until that is done its entry is dead, so what is cut off here is deleted later, and read by nobody.
        """
        now_ms = await self._wiring.schedule.now_ms()
        made_at_ms = now_ms if made_at_ms is None else made_at_ms
        summaries = sorted((run.summary for run in runs), key=lambda run: run.started_ms)
        name = f"{read_day(summaries[0].started_ms)}/{new_id('seg')}"
        since = await self.index.change({name: Entry(state="dead", made_at_ms=now_ms)})
        args = name, runs, made_at_ms, self._sealer, self._keyring.current
        raw = await asyncio.to_thread(write_segment, *args)
        await self.place.put(self.locate(name), raw)
        entry = describe_segment(summaries, raw, made_at_ms)
        read = await self.fetch(name, entry)
        checked = await asyncio.to_thread(open_segment, name, read, self._sealer, self._keyring)
        if checked.list_runs() != list(runs):
            raise Altered(f"The segment {name} does not read back as it was written. Nothing was moved.")
        return await self.index.change({name: entry, **(instead or {})}, uncut, hot, since)

    def _describe_damage(self, name: str, error: Unreadable) -> Unreadable:
        self._whole_at_ms.pop(name, None)
        kind = Altered if isinstance(error, Altered) else Unreadable
        return kind(
            f"The archived segment {name} in {self.place.name} cannot be read: {error.message.rstrip('.')}. Ask the "
            "operator to restore it from a copy of the archive.",
            reason=error.message,
        )

    def locate(self, name: str) -> str:
        """Return the path of a segment in its place."""
        return f"{self._wiring.tenant}/{name}{_SUFFIX}"


def _kill(entry: Entry) -> Entry:
    return Entry(state="dead", made_at_ms=entry.made_at_ms)


def read_day(at_ms: int) -> date:
    """Return the day of a time in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).date()


def archive_of(store: TenantStore) -> RunArchive | None:
    """Return the archive of a tenant, None without one."""
    return store.archive if isinstance(store.archive, RunArchive) else None


async def note_erased(store: TenantStore, run: EndedRun) -> list[tuple[str, ...]]:
    """Let an erased run be cut out of the segments that may hold it."""
    is_held = run.erased and await store.archive.may_hold(run.run_id)
    return [("ZADD", store.keys.uncut, "0", run.run_id)] if is_held else []


async def cut_erased(store: TenantStore) -> None:
    """Cut erased runs out of their segments, at once after an erasure on demand."""
    archive = archive_of(store)
    if archive is not None:
        await archive.cut_changed()
