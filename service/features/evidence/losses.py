"""Calls that a sink's checkpoints show to be later than the store, after the store went back."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

import structlog

from sayso.core.key_files import SecretKey
from sayso.core.records.freezes import Freeze
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.transitions.permits import may_start
from sayso.errors import InvalidInput, NotFound, Unreadable
from sayso.features.evidence.checkpoints import Checkpoint, find_public_key, find_root, read_checkpoint
from sayso.features.evidence.verify_evidence import is_signed
from sayso.wire.evidence import HeadToCheck
from service.core.wiring import Wiring
from service.features.evidence.checking import check_heads
from service.features.evidence.store import RUN, CheckpointStore

_HOLDER = "unknown"
_WHY = "The store went back, and a checkpoint has later events of this run: the call may have been decided, and run."
_AT_ONCE = 500

_LOG = structlog.get_logger(__name__)


async def doubt_lost_calls(wiring: Wiring, keys: Sequence[SecretKey]) -> None:
    """Put unspent calls in doubt whose runs lost events that a file of checkpoints knows, once for each loss."""
    store = wiring.part(CheckpointStore)
    lost = [freeze for freeze in await wiring.freezes.known(fresh=True) if freeze.lost is not None]
    freeze = max(lost, key=lambda freeze: freeze.at_ms, default=None)
    if freeze is None or freeze.lost is None or await store.is_compared(freeze.id):
        return
    heads = await asyncio.to_thread(_read_heads, wiring, freeze.lost.from_ms, keys)
    for begin in range(0, len(heads), _AT_ONCE):
        for fault in (await check_heads(wiring, heads[begin : begin + _AT_ONCE])).faults:
            await _doubt(wiring, freeze, fault.chain.removeprefix(RUN))
    await store.note_compared(freeze.id)


def _read_heads(wiring: Wiring, since_ms: int, keys: Sequence[SecretKey]) -> list[HeadToCheck]:
    """Return the latest heads of runs in the checkpoints of files since a time, which one of these keys signed."""
    heads: dict[str, HeadToCheck] = {}
    public_keys = [find_public_key(key) for key in keys]
    for made in _read_files(wiring.settings.checkpoints):
        if made.tenant != wiring.tenant or made.at_ms < since_ms or not _is_genuine(made, public_keys):
            continue
        for leaf in made.leaves:
            if leaf.chain.startswith(RUN) and (leaf.chain not in heads or heads[leaf.chain].seq < leaf.seq):
                heads[leaf.chain] = HeadToCheck(chain=leaf.chain, seq=leaf.seq, hash=leaf.hash, at_ms=made.at_ms)
    return [*heads.values()]


def _read_files(sinks: Sequence[str]) -> Iterator[Checkpoint]:
    for parts in map(urlsplit, sinks):
        path = Path(unquote(parts.path))
        if parts.scheme != "file" or not path.exists():
            continue
        with path.open(encoding="ascii", errors="replace") as lines:
            for line in lines:
                with suppress(InvalidInput):  # a crash has cut it
                    yield read_checkpoint(line)


def _is_genuine(made: Checkpoint, public_keys: Sequence[str]) -> bool:
    whole = find_root([leaf.digest() for leaf in made.leaves]).hex() == made.root
    return whole and is_signed(made.statement, made.signature, public_keys)


async def _doubt(wiring: Wiring, freeze: Freeze, run_id: str) -> None:
    try:
        run = await wiring.runs.read(run_id)
        record = (await wiring.desk.suspensions.read(run.suspension_id)).record
    except (NotFound, Unreadable):
        _LOG.warning("run_lost", run=run_id)
        await wiring.activity.record("run_lost", freeze.by, door="desk", target=run_id)
        return
    if _may_run(record):
        await wiring.desk.void_starts(record.id, _HOLDER, _WHY)
        _LOG.warning("call_in_doubt", suspension=record.id, run=run_id)


def _may_run(record: SuspensionRecord) -> bool:
    """Whether a call of the record can still start, and nobody was warned of it yet."""
    if record.status is Status.PENDING:
        return not any(_WHY in (item.prompt.reason or "") for item in record.items)
    return record.status in (Status.DECIDED, Status.RESUMING) and any(map(may_start, record.items))
