"""Passes over the archive, and what the doctor says of it."""

import structlog

from sayso.errors import SaysoError, Unavailable, Unreadable
from service.core.store.tenants import TenantStore
from service.core.wiring import Wiring
from service.features.archive.desk import RunArchive, archive_of
from service.features.archive.segments import ArchivedRun

_NAMED = 5
_STRAY = (
    "A pass deletes those whose runs the store or other segments hold as well. Move the others out of the archive, and "
    "delete them when their runs are as old as SAYSO_KEEP_TRAIL_DAYS says."
)

_LOG = structlog.get_logger(__name__)


async def describe_archive(store: TenantStore, *, fresh: bool = True) -> tuple[bool, str, str]:
    """Return whether the archive is whole, as `find_damage`, a sentence about it, and what to do."""
    archive = archive_of(store)
    if archive is None:
        return (
            True,
            "There is no archive. Set SAYSO_ARCHIVE to move old runs out of the store.",
            "",
        )
    try:
        segments, faults = await archive.list_live(), await archive.find_damage(fresh=fresh)
        strays = await _list_strays(archive)
    except SaysoError as error:
        return False, error.message, "Correct SAYSO_ARCHIVE, or start what it names."
    text = f"{sum(entry.runs for entry in segments.values())} runs lie in {len(segments)} segments"
    if not faults and strays:
        text = f"{text}. {len(strays)} more are not in the index, such as {strays[0]}: it has lost them"
        return False, f"{text}, so nobody finds their runs, and no erasure reaches them.", _STRAY
    if not faults:
        return True, f"{text}; each is as it was written.", ""
    more = f" And {len(faults) - _NAMED} more." if len(faults) > _NAMED else ""
    text = f"{text}; {len(faults)} are damaged. {' '.join(faults[:_NAMED])}{more}"
    return False, text, "Restore them from a copy of the archive. Until then their runs cannot be read."


async def keep_archive(wiring: Wiring, now_ms: int) -> bool:
    """Make one pass over the archive; return whether there may be more runs to move."""
    archive = archive_of(wiring.store)
    if archive is None:
        return False
    try:
        await archive.tidy(now_ms)
        await _clear_strays(archive)
        erased, moved = await archive.erase_old(now_ms), await archive.move_old(now_ms)
    except (Unavailable, Unreadable) as error:
        _LOG.error("archive_failed", reason=error.message)
        return False
    if erased or moved:
        _LOG.info("runs_archived", runs=moved, erased=erased)
    return moved > 0


async def _list_strays(archive: RunArchive) -> list[str]:
    """Return the segments that the index does not name: the store went back past them, or somebody put them there."""
    names = await archive.list_names()  # first: a segment is in the index before it is written
    indexed = await archive.index.read()
    return [name for name in names if name not in indexed]


async def _clear_strays(archive: RunArchive) -> None:
    """Delete those whose runs are all kept elsewhere as well, no older than there.

    Others stay, because they may hold the only copy of a run.
    """
    for name in await _list_strays(archive):
        try:
            runs = (await archive.open_stray(name)).list_runs()
            if not all([await _is_kept_elsewhere(archive, run) for run in runs]):
                continue
        except Unreadable:
            continue
        await archive.place.delete(archive.locate(name))
        _LOG.warning("stray_segment_deleted", segment=name, runs=len(runs))


async def _is_kept_elsewhere(archive: RunArchive, run: ArchivedRun) -> bool:
    stored = await archive.hot.take(run.summary.id)
    other = stored[0] if stored is not None else await archive.find(run.summary.id)
    if other is None or other.summary.suspensions != run.summary.suspensions:
        return False
    if other.summary.erased_ms is not None:
        return True
    parts = ((each.trail, each.comments, each.file_contents) for each in (other, run))
    return all(len(there) >= len(here) for there, here in zip(*parts, strict=True))
