"""The index of archived segments in the store, and runs as they leave the store and come back to it."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from sayso.core.records.base import Stored
from sayso.core.records.suspensions import RunStatus, SuspensionRecord
from sayso.errors import Unavailable, Unreadable
from service.core.store.connection.commits import Commit, split_values
from service.core.store.connection.connecting import text, texts
from service.core.store.connection.macs import REFUSED
from service.core.store.runs.erasures import Age, read_chain
from service.core.store.runs.retention import build_deletion
from service.core.store.suspensions.reading import Unpacked, pack_record
from service.core.store.tenants import StorePart, TenantStore
from service.features.archive.segments import ArchivedRun, Filter, Summary

_SHARE = "share "
_PAGE = 100
_ATTEMPTS = 100


class Entry(Stored):
    """A segment in the index. One that is `live` holds runs; a pass deletes a dead one, whose writing was cut off.

    `starts` and `ends` are the first and last beginnings and ends of its runs, ms, `unerased_ms` the first end of one
    with contents, 0 without any.
    """

    state: Literal["live", "dead"]
    made_at_ms: int
    sha256: str = ""
    bytes: int = 0
    runs: int = 0
    starts: tuple[int, int] = (0, 0)
    ends: tuple[int, int] = (0, 0)
    unerased_ms: int = 0
    ids: str = ""

    @cached_property
    def _filter(self) -> Filter:
        return Filter(base64.b64decode(self.ids))

    def may_hold(self, any_id: str) -> bool:
        return self.state == "live" and self._filter.may_hold(any_id)


class Hot(NamedTuple):
    """The latest record of a run in the store."""

    suspension_id: str
    version: int


def describe_segment(runs: Sequence[Summary], raw: bytes, made_at_ms: int) -> Entry:
    """Return the entry of a segment with these runs."""
    starts, ends = [run.started_ms for run in runs], [run.ended_ms for run in runs]
    ids = Filter.of(id_ for run in runs for id_ in (run.id, *run.suspensions))
    return Entry(
        state="live",
        made_at_ms=made_at_ms,
        sha256=sha256(raw).hexdigest(),
        bytes=len(raw),
        runs=len(runs),
        starts=(min(starts), max(starts)),
        ends=(min(ends), max(ends)),
        unerased_ms=min((run.ended_ms for run in runs if run.erased_ms is None), default=0),
        ids=base64.b64encode(ids.bits).decode(),
    )


class ArchiveIndex(StorePart):
    """The segments of one tenant, by name; read again when its version changes."""

    def __init__(self, store: TenantStore) -> None:
        super().__init__(store)
        self._version, self._entries = -1, dict[str, Entry]()

    async def read(self) -> Mapping[str, Entry]:
        """Return all entries. Raises `Unreadable` for one that another program wrote."""
        version = await self.read_version()
        if version != self._version:
            raws: Any = await self._redis.hgetall(self._keys.archive)
            self._entries = {text(name): self._parse(text(name), raw) for name, raw in raws.items()}
            self._version = version
        return self._entries

    async def read_version(self) -> int:
        """Return the version of the index, which every change raises."""
        return int(text(await self._redis.get(self._keys.archive_version) or b"0"))

    def _parse(self, name: str, raw: bytes) -> Entry:
        known = self._entries.get(name)
        if known is not None and known.model_dump_json().encode() == raw:
            return known
        try:
            return Entry.model_validate_json(raw)
        except ValidationError as error:
            why = "its MAC is missing or wrong" if raw == REFUSED else "it has another form"
            raise Unreadable(f"The entry {name} of the archive's index cannot be read: {why}.") from error

    async def change(
        self,
        changed: Mapping[str, Entry | None],
        uncut: Iterable[str] = (),
        hot: Iterable["Hot"] = (),
        since: int | None = None,
    ) -> int | None:
        """Set and remove entries in one commit; return the index's new version.

        Returns None, with nothing changed, where a run in the store is not as in `hot`, or where the index changed
        `since` a version. `uncut` are runs that the store holds beside these segments.
        """
        keys, hot, uncut = self._keys, list(hot), list(uncut)
        for _ in range(_ATTEMPTS):
            version = await self.read_version() if since is None else since
            commit = Commit()
            commit.expect(keys.archive_version, version)
            for run in hot:
                commit.expect(keys.suspension(run.suspension_id), run.version)
            commit.write("SET", keys.archive_version, str(version + 1))
            for name, entry in changed.items():
                if entry is None:
                    commit.write("HDEL", keys.archive, name)
                else:
                    commit.write("HSET", keys.archive, name, entry.model_dump_json())
            for some in split_values(uncut):
                commit.write("ZADD", keys.uncut, *(part for run_id in some for part in (0, run_id)))
            if await self._send(commit):
                return version + 1
            if since is not None or (hot and await self.read_version() == version):
                return None
        raise Unavailable("The archive's index changes too often; nothing was changed. Try again in a moment.")


class HotRuns(StorePart):
    """Ended runs of one tenant in the store, on their way into the archive and back."""

    async def list_old(self, age: Age, limit: int, *, oldest_before_ms: int) -> list[str]:
        """Return up to `limit` runs of this age; none while they are fewer and the oldest ended after a time."""
        old, is_due = list[str](), False
        for status in RunStatus:
            skip = 0
            while status.ended and len(old) < limit:
                index = self._keys.runs(status)
                ids = texts(await self._redis.zrangebyscore(index, "-inf", age.ended_before_ms, start=skip, num=_PAGE))
                if not ids:
                    break
                skip += len(ids)
                for run_id in await self._list_settled(ids):
                    record = await self._read_latest(run_id)
                    if record is not None and record.run_status.ended and age.reached(record):
                        old.append(run_id)
                        is_due = is_due or record.updated_at_ms < oldest_before_ms
        return old[:limit] if is_due or len(old) >= limit else []

    async def _list_settled(self, run_ids: list[str]) -> list[str]:
        """Return those that no checkpoint has yet to cover, and that nobody reads back."""
        keys = self._keys
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.zmscore(keys.recalled, run_ids)
            pipe.hmget(keys.unchecked, run_ids)
            pipe.hmget(keys.checking, run_ids)
            marks = await pipe.execute()
        return [run_id for run_id, *held in zip(run_ids, *marks, strict=True) if not any(map(bool, held))]

    async def _read_latest(self, run_id: str) -> SuspensionRecord | None:
        try:
            suspension_id: Any = await self._redis.get(self._keys.run(run_id))
            raw: Any = await self._redis.get(self._keys.suspension(text(suspension_id or b"")))
            return self._readings.read(text(suspension_id), raw).record if raw is not None else None
        except Unreadable:
            return None  # it stays until it is readable

    async def take(self, run_id: str) -> tuple[ArchivedRun, list[SuspensionRecord]] | None:
        """Return an ended run as it goes into the archive, with its records; None for one that is not there."""
        chain = await read_chain(self._store, run_id)
        if not chain or not chain[0].record.run_status.ended:
            return None
        keys, ids = self._keys, [stored.record.id for stored in chain]
        async with self._redis.pipeline(transaction=True) as pipe:
            for key in (keys.trail, keys.external_events, keys.comments):
                pipe.lrange(key(run_id), 0, -1)
            for key in (keys.external_events_seen, keys.comments_seen, keys.files, keys.file_contents):
                pipe.hgetall(key(run_id))
            pipe.get(keys.state(run_id))
            pipe.zscore(keys.erased, run_id)
            pipe.zmscore(keys.decided, ids)
            trail, external, comments, *hashes, state, erased_ms, decided = await pipe.execute()
        if REFUSED in trail or len(trail) != chain[0].head.seq:
            raise Unreadable(f"The trail of {run_id} was altered, so the run stays in the store.")
        external_seen, comments_seen, files = (_decode(held) for held in hashes[:3])
        run = ArchivedRun(
            summary=_summarize(chain, None if erased_ms is None else int(erased_ms)),
            records=tuple(_write_record(stored) for stored in chain),
            decided={id_: int(at_ms) for id_, at_ms in zip(ids, decided, strict=True) if at_ms is not None},
            trail=tuple(texts(trail)),
            external=tuple(texts(external)),
            external_seen=external_seen,
            comments=tuple(texts(comments)),
            comments_seen=comments_seen,
            files=files,
            file_contents={text(name): base64.b64encode(content).decode() for name, content in hashes[3].items()},
            state=base64.b64encode(state or b"").decode(),
        )
        return run, [stored.record for stored in chain]

    async def remove(self, run: ArchivedRun, records: Sequence[SuspensionRecord], version: int) -> bool:
        """Delete an archived run in one commit, if it is as it was taken, and the index has this version.

        So no segment that holds the run was replaced meanwhile. Returns whether it was deleted.
        """
        keys, run_id, commit = self._keys, run.summary.id, await build_deletion(self._store, records)
        commit.expect(keys.archive_version, version)
        commit.expect_length(keys.trail(run_id), len(run.trail))
        commit.expect_length(keys.external_events(run_id), len(run.external))
        commit.expect_length(keys.comments(run_id), len(run.comments))
        commit.expect_length(keys.file_contents(run_id), len(run.file_contents))
        for key in (keys.trail, keys.comments, keys.comments_seen):
            commit.write("DEL", key(run_id))
        for index in (keys.erased, keys.recalled, keys.uncut):
            commit.write("ZREM", index, run_id)
        return await self._send(commit)

    async def put_back(self, run: ArchivedRun, version: int, now_ms: int) -> bool:
        """Save an archived run for its readers, in one commit, unless it is in the store or the index has changed.

        Returns whether it is in the store.
        """
        keys, summary, commit = self._keys, run.summary, Commit()
        commit.expect(keys.suspension(summary.suspensions[0]), 0)
        commit.expect(keys.archive_version, version)
        commit.write("SET", keys.run(summary.id), summary.suspensions[0])
        for suspension_id, raw in zip(summary.suspensions, run.records, strict=True):
            record, head, commit_id, _ = self._readings.read(suspension_id, raw.encode())
            packed = pack_record(record, head, commit_id, self._sealer, small=True)
            commit.write("SET", keys.suspension(suspension_id), packed)
        lists = ((keys.trail, run.trail), (keys.external_events, run.external), (keys.comments, run.comments))
        for key, values in lists:
            for some in split_values(values):
                commit.write("RPUSH", key(summary.id), *some)
        contents = {name: base64.b64decode(content) for name, content in run.file_contents.items()}
        seen = ((keys.external_events_seen, run.external_seen), (keys.comments_seen, run.comments_seen))
        for key, fields in (*seen, (keys.files, run.files), (keys.file_contents, contents)):
            for name, value in fields.items():
                commit.write("HSET", key(summary.id), name, value)
        for name, value in run.files.items():
            if name.startswith(_SHARE):
                commit.write("HINCRBY", keys.file_shares, name.removeprefix(_SHARE), value)
        if "bytes" in run.files:
            commit.write("DECRBY", keys.file_bytes, str(-int(run.files["bytes"])))
        if run.state:
            commit.write("SET", keys.state(summary.id), base64.b64decode(run.state))
        for suspension_id, at_ms in run.decided.items():
            commit.write("ZADD", keys.decided, at_ms, suspension_id)
        for index in (keys.runs(summary.status), keys.runs_of(summary.owner)):
            commit.write("ZADD", index, summary.started_ms, summary.id)
        if summary.erased_ms is not None:
            commit.write("ZADD", keys.erased, summary.erased_ms, summary.id)
        commit.write("ZADD", keys.recalled, now_ms, summary.id)
        return await self._send(commit) or bool(await self._redis.exists(keys.run(summary.id)))

    def parse(self, run: ArchivedRun, suspension_ids: Sequence[str]) -> list[SuspensionRecord | Unreadable]:
        """Return some records of an archived run, the first first; an error for one that cannot be read."""
        raws = dict(zip(run.summary.suspensions, run.records, strict=True))
        return [self._parse(id_, raws[id_]) for id_ in reversed(run.summary.suspensions) if id_ in suspension_ids]

    def _parse(self, suspension_id: str, raw: str) -> SuspensionRecord | Unreadable:
        try:
            return self._readings.read(suspension_id, raw.encode()).record
        except Unreadable as error:
            return error

    async def count_recalled(self) -> int:
        return int(await self._redis.zcard(self._keys.recalled))

    async def list_recalled(self, before_ms: int) -> list[str]:
        return texts(await self._redis.zrangebyscore(self._keys.recalled, "-inf", before_ms))

    async def note_changed(self, run_id: str) -> None:
        """Record that a recalled run is not as in its segment any more."""
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.zadd(self._keys.uncut, {run_id: 0})
            pipe.zrem(self._keys.recalled, run_id)
            await pipe.execute()

    async def list_uncut(self) -> dict[str, Hot | None]:
        """Return runs to cut out of the segments that hold them, with their records where they are in the store."""
        run_ids = sorted(texts(await self._redis.zrange(self._keys.uncut, 0, -1)))
        records = [await self._read_latest(run_id) for run_id in run_ids]
        latest = (Hot(record.id, record.version) if record is not None else None for record in records)
        return dict(zip(run_ids, latest, strict=True))

    async def note_cut(self, run_ids: Sequence[str]) -> None:
        for some in split_values(run_ids):
            await self._redis.zrem(self._keys.uncut, *some)


def _summarize(chain: Sequence[Unpacked], erased_ms: int | None) -> Summary:
    last = chain[0].record
    return Summary(
        id=last.run.id,
        agent=last.run.agent,
        owner=last.run.owner,
        status=last.run_status,
        started_ms=last.run.started_at_ms,
        ended_ms=last.updated_at_ms,
        erased_ms=erased_ms,
        suspensions=tuple(stored.record.id for stored in chain),
    )


def _write_record(stored: Unpacked) -> str:
    """Return a stored record in clear: its header, the mark of a plain one, and JSON."""
    record, head, commit_id, _ = stored
    doc = record.model_dump_json(exclude_defaults=True, exclude={"release"})
    return f"{record.version}|{head.seq}|{head.hash}|{commit_id}|0{doc}"


def _decode(held: Mapping[bytes, bytes]) -> dict[str, str]:
    return {text(name): text(value) for name, value in held.items()}
