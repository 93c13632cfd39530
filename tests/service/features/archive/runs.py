"""Ended runs with all that may belong to one, and their move into the archive."""

from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from sayso.core.clock import DAY_MS, HOUR_MS
from sayso.core.records.suspensions import SuspensionRecord
from service.core.store.keys import keys_of
from service.core.store.runs.external_events import ExternalEvent, ExternalEvents
from service.core.wiring import Wiring
from service.features.archive.desk import RunArchive, archive_of
from service.features.archive.keeping import keep_archive
from service.features.discussions.discussing import add_comment, attach
from tests.builders import approve, finish, make_pending, person
from tests.service.worlds import read_store

KEYS = keys_of("default")
LATER_DAYS = 32
FILE = b"%PDF-1.7 \x00\xff"


async def end_a_run(wiring: Wiring, **result: Any) -> SuspensionRecord:
    """A run with a decision, a comment, a file and an event of another system, that ended."""
    pending = await make_pending(wiring)
    await attach(wiring, pending.id, "i1", "log.pdf", FILE, person("anna"))
    await add_comment(wiring, pending.id, "i1", "Checked, and fine.", "anna", None)
    event = ExternalEvent(1, None, {"type": "note"})
    await wiring.part(ExternalEvents).add(pending.run.id, "agent", "sayso", [event])
    await wiring.store.redis.delete(KEYS.unchecked)
    return await finish(wiring, await approve(wiring, pending), result={"paid": True, **result})


def archive(wiring: Wiring) -> RunArchive:
    run_archive = archive_of(wiring.store)
    assert run_archive is not None
    return run_archive


async def keep(wiring: Wiring, days: float = LATER_DAYS) -> None:
    """Move all runs that are old enough after this many days."""
    await wiring.store.redis.delete(KEYS.unchecked)
    now_ms = await wiring.schedule.now_ms() + int(days * DAY_MS) + HOUR_MS
    while await keep_archive(wiring, now_ms):
        pass


async def read_run_keys(url: str, *ids: str) -> dict[bytes, Any]:
    """What the store holds of these runs, without the marks of the archive."""
    held = await read_store(url)
    return {name: value for name, value in held.items() if any(id_.encode() in name for id_ in ids)}


async def count_keys(url: str) -> int:
    async with Redis.from_url(url) as redis:
        return int(await redis.dbsize())


def list_files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "archive").rglob("*.*"))
