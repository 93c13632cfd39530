"""The tick that makes checkpoints, each hour and every 1,000 events, and delivers them to the sinks."""

from functools import cache
from pathlib import Path

import structlog

from sayso.core.clock import DAY_MS, HOUR_MS
from sayso.core.key_files import SecretKey, read_key_file
from sayso.errors import Unavailable
from sayso.features.evidence.checkpoints import make_checkpoint, read_checkpoint
from service.core.wiring import Wiring
from service.features.evidence.losses import doubt_lost_calls
from service.features.evidence.sinks import Sink, deliver
from service.features.evidence.store import CheckpointStore

EVENTS = 1_000
_MOST_MADE = 20  # the checkpoints of one tick
_KEPT_DAYS = 31  # how much longer than trails checkpoints are kept: a run may wait so long for its next event
_OVERLAP_MS = 600_000  # versions of the rules saved so long before the last checkpoint are covered again
_PAGE = 20

_LOG = structlog.get_logger(__name__)

keys_of = cache(read_key_file)
"""The keys of a file, read once in a process."""


def find_keys(path: Path | None) -> tuple[SecretKey, ...]:
    """Return the keys of the key file, the current one first; none without a file."""
    return keys_of(path) if path is not None else ()


async def keep_checkpoints(wiring: Wiring) -> None:
    """Make the checkpoints that are due, and deliver what the sinks miss; one process at a time."""
    store, keys = wiring.part(CheckpointStore), find_keys(wiring.settings.key_file)
    if not wiring.settings.checkpoints or not keys:
        await store.rest()
        return
    async with store.lease() as taken:
        if not taken:
            return
        await doubt_lost_calls(wiring, keys)
        await store.begin()
        now_ms = await store.now_ms()
        for _ in range(_MOST_MADE):
            if not await make_due(wiring, keys[0], now_ms):
                break
        await _deliver_all(wiring, store)
        await store.forget_old(now_ms - (wiring.settings.keep_trail_days + _KEPT_DAYS) * DAY_MS)


async def make_due(wiring: Wiring, key: SecretKey, now_ms: int) -> bool:
    """Make a checkpoint over the chains that changed, if it is due; return whether one was made."""
    store = wiring.part(CheckpointStore)
    last = await store.read_last()
    if last.number and now_ms - last.at_ms < HOUR_MS and await store.count_changed() < EVENTS:
        return False
    run_ids = await store.list_changed(EVENTS)
    leaves = await store.read_heads(run_ids, last.at_ms - _OVERLAP_MS)
    made = make_checkpoint(last.number + 1, now_ms, last.digest, wiring.tenant, leaves, key)
    return await store.save(last, made, made.digest, run_ids)


async def _deliver_all(wiring: Wiring, store: CheckpointStore) -> None:
    last, held = await store.read_last(), await store.read_delivered()
    complete = True
    for sink in map(Sink, wiring.settings.checkpoints):
        try:
            await _deliver(wiring, store, sink, held.get(sink.id, 0))
        except Unavailable as error:
            complete = False
            _LOG.error("checkpoint_not_delivered", sink=sink.name, reason=error.message)
    if complete:
        await store.note_all_delivered(last.at_ms)


async def _deliver(wiring: Wiring, store: CheckpointStore, sink: Sink, after: int) -> None:
    while lines := await store.list_lines(after, _PAGE):
        for made in map(read_checkpoint, lines):
            await deliver(sink, made, wiring.posts)
            await store.note_delivered(sink.id, made.number)
            after = made.number
