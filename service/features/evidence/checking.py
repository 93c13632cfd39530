"""Comparison of the heads in checkpoints with the chains in the store."""

import asyncio
from collections.abc import Sequence
from typing import Any

from sayso.core.clock import DAY_MS
from sayso.wire.evidence import ChainFault, HeadsChecked, HeadToCheck
from service.core.store.activity import MOST_ENTRIES
from service.core.store.inspection import find_chain_fault
from service.core.store.runs.runs import read_entry
from service.core.store.tenants import StorePart
from service.core.wiring import Wiring
from service.features.evidence.store import ACTIVITY, RULES, RUN, CheckpointStore, read_link


class Chains(StorePart):
    """The entries of chains as they are stored."""

    async def read_trails(self, run_ids: Sequence[str]) -> list[list[bytes]]:
        async with self._redis.pipeline(transaction=False) as pipe:
            for run_id in run_ids:
                pipe.lrange(self._keys.trail(run_id), 0, -1)
            trails: list[list[bytes]] = await pipe.execute()
        gone = [run_id for run_id, trail in zip(run_ids, trails, strict=True) if not trail]
        archived = await self._store.archive.read_trails(gone)
        return [trail or archived.get(run_id, []) for run_id, trail in zip(run_ids, trails, strict=True)]

    async def find_activity(self, seq: int) -> tuple[int, str]:
        """Return the number of the oldest entry of the activity log, and the hash of an entry; empty if missing."""
        first: Any = await self._redis.lindex(self._keys.activity, 0)
        begin = read_link(first or b"").seq
        raw: Any = await self._redis.lindex(self._keys.activity, seq - begin) if seq >= begin else None
        return begin, read_link(raw or b"").hash

    async def count_activity(self) -> int:
        return int(await self._redis.llen(self._keys.activity))


async def check_heads(wiring: Wiring, heads: Sequence[HeadToCheck]) -> HeadsChecked:
    """Return which chains are not as these heads say."""
    now_ms = await wiring.part(CheckpointStore).now_ms()
    expired_before_ms = now_ms - wiring.settings.keep_trail_days * DAY_MS
    runs = [head for head in heads if head.chain.startswith(RUN)]
    trails = await wiring.part(Chains).read_trails([head.chain.removeprefix(RUN) for head in runs])
    faults: list[ChainFault] = []
    expired = 0
    for head, trail in zip(runs, trails, strict=True):
        if not trail and head.at_ms < expired_before_ms:
            expired += 1
            continue
        fault = await asyncio.to_thread(_compare, head, trail)
        faults += [ChainFault(chain=head.chain, fault=fault)] if fault else []
    for head in heads:
        fault = await _compare_other(wiring, head)
        faults += [ChainFault(chain=head.chain, fault=fault)] if fault else []
    return HeadsChecked(checked=len(heads), expired=expired, faults=faults)


def _compare(head: HeadToCheck, trail: Sequence[bytes]) -> str:
    if not trail:
        return f"The trail was deleted: it had {head.seq} events."
    if len(trail) < head.seq:
        return f"The trail was cut: it had {head.seq} events, and {len(trail)} are there."
    entries = [read_entry(raw, seq) for seq, raw in enumerate(trail, start=1)]
    if fault := find_chain_fault(entries):
        return fault
    if entries[head.seq - 1].hash != head.hash:
        return f"The trail was rewritten: event {head.seq} is another one."
    return ""


async def _compare_other(wiring: Wiring, head: HeadToCheck) -> str:
    if head.chain == ACTIVITY:
        return await _compare_activity(wiring, head)
    if head.chain.startswith(RULES):
        version = head.chain.removeprefix(RULES)
        digest = await wiring.part(CheckpointStore).digest_rules(version)
        if digest and digest != head.hash:
            return f"The text of version {version} of the rules was altered."
    return ""


async def _compare_activity(wiring: Wiring, head: HeadToCheck) -> str:
    chains = wiring.part(Chains)
    begin, hash_ = await chains.find_activity(head.seq)
    if head.seq < begin and await chains.count_activity() >= MOST_ENTRIES:
        return ""
    if not hash_:
        return f"The activity log was cut: entry {head.seq} is missing."
    if hash_ != head.hash:
        return f"The activity log was rewritten: entry {head.seq} is another one."
    broken_at = await wiring.activity.check()
    return f"Entry {broken_at} of the activity log does not fit the chain." if broken_at is not None else ""
