"""Batches of changes in one script. Each change succeeds or fails alone; the caller gets those that failed."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from sayso.core.records.events import TrailHead
from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.errors import SaysoError
from service.core.store.connection.commits import Update
from service.core.store.connection.connecting import as_ms
from service.core.store.connection.pipeline import Part, Script
from service.core.store.lua import read_script
from service.core.store.suspensions.commits import build_commit
from service.core.store.suspensions.reading import read_record
from service.core.store.tenants import TenantStore

_LOAD = Script(read_script("load_many"))
_COMMIT = Script(read_script("commit").removesuffix("return commit(KEYS, ARGV)\n") + read_script("commit_many"))

PRECOMPUTED_FOR_MS = 2_000  # how long after its due time, ms, a precomputed commit may be saved
Verb = Callable[[SuspensionRecord, int], Change]


class PrecomputedCommit(NamedTuple):
    """The precomputed commit of a suspension that is due at `at_ms`."""

    suspension_id: str
    at_ms: int
    commit: "PackedCommit"


class PackedCommit(NamedTuple):
    """A commit as its batch sends it, and the change for observers."""

    part: Part
    update: Update | None


class DueBatches:
    """Batches on their own connections, so that single changes do not queue behind them."""

    def __init__(self, store: TenantStore, mark_ms: Callable[[], int]) -> None:
        self.mark_ms, self._keys, self._pipelines = mark_ms, store.keys, store.connections.batches
        self._store, self._sealer, self._macs = store, store.sealer, store.connections.macs

    async def change(self, suspension_ids: Sequence[str], verb: Verb, valid_until_ms: int = 0) -> list[str]:
        """Apply the transition, saved up to `valid_until_ms`; return the ids that failed. Raises `Unavailable`."""
        now_ms, packed = await self._load(suspension_ids)
        left: list[str] = []
        commits: dict[str, PackedCommit] = {}
        for suspension_id, raw in zip(suspension_ids, packed, strict=True):
            try:
                if raw is None:
                    raise ValueError("the suspension is gone")
                record, head, *_ = read_record(self._sealer, suspension_id, raw)
                change = verb(record, max(now_ms, record.updated_at_ms))
                commit = None if change.record is record else self._pack(record, change, head)
            except (SaysoError, ValueError):
                left.append(suspension_id)
                continue
            if commit is not None:
                commits[suspension_id] = commit
        return left + await self._send(list(commits), list(commits.values()), valid_until_ms)

    async def precompute(
        self, suspension_ids: Sequence[str], verb: Verb, until_ms: int
    ) -> tuple[PrecomputedCommit, ...]:
        """Return the commits of pending suspensions due before `until_ms`, each valid from its due time on."""
        now_ms, packed = await self._load(suspension_ids)
        commits: list[PrecomputedCommit] = []
        for suspension_id, raw in zip(suspension_ids, packed, strict=True):
            with suppress(SaysoError, ValueError):
                record, head, *_ = read_record(self._sealer, suspension_id, raw or b"")
                at_ms = record.due_at_ms
                if record.status is Status.PENDING and at_ms is not None and now_ms < at_ms < until_ms:
                    change = verb(record, at_ms)
                    if change.record is not record:
                        commit = self._pack(record, change, head, (at_ms, at_ms + PRECOMPUTED_FOR_MS))
                        commits.append(PrecomputedCommit(suspension_id, at_ms, commit))
        return tuple(commits)

    async def fulfil(self, commits: Sequence[PrecomputedCommit], valid_until_ms: int = 0) -> list[str]:
        """Save precomputed commits up to `valid_until_ms`; return the ids of those that changed or were too late."""
        ids, parts = [commit.suspension_id for commit in commits], [commit.commit for commit in commits]
        return await self._send(ids, parts, valid_until_ms)

    async def _load(self, suspension_ids: Sequence[str]) -> tuple[int, list[bytes | None]]:
        names = [self._keys.suspension(suspension_id) for suspension_id in suspension_ids]
        seconds, micros, packed = await next(self._pipelines).run(_LOAD, names)
        return max(as_ms(seconds, micros), self.mark_ms()), self._macs.verify(("MGET", *names), packed)

    async def _send(
        self, suspension_ids: Sequence[str], commits: Sequence[PackedCommit], valid_until_ms: int
    ) -> list[str]:
        if not commits:
            return []
        answers = await next(self._pipelines).run_parts(_COMMIT, valid_until_ms, [commit.part for commit in commits])
        if not answers:  # one is malformed, which the caller finds by changing each alone, or `valid_until_ms` is past
            return [*suspension_ids]
        for answer, commit in zip(answers, commits, strict=True):
            if isinstance(answer, list) and answer[0] == 0:
                self._store.counts.note(answer[3], as_ms(*answer[1:3]))
                self._store.note_saved(commit.update)
        results = zip(suspension_ids, answers, strict=True)
        return [suspension_id for suspension_id, answer in results if not isinstance(answer, list) or answer[0] != 0]

    def _pack(
        self, record: SuspensionRecord, change: Change, head: TrailHead, between_ms: tuple[int, int] = (0, 0)
    ) -> PackedCommit:
        commit, _, _ = build_commit(
            record, change, head, os.urandom(6).hex(), None, self._store, small=between_ms != (0, 0)
        )
        self._store.count(commit)
        commit.between_ms = between_ms
        return PackedCommit(Part.pack(*commit.arguments(self._macs)), commit.update)
