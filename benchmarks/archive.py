"""Measure memory and disk of runs, and an archive of many: `make bench ARGS=--archive`.

Ended runs with one call of 300 bytes are made through the desk, measured, and archived. An archive of 100,000 is then
made by the writer of segments from copies under other ids, and runs are read back by id.
"""

import asyncio
import tempfile
from pathlib import Path
from random import Random
from statistics import median
from typing import cast

import uvloop
from redis import Redis

from benchmarks.fills import SETTINGS
from launch.server import running_server
from sayso.core.clock import DAY_MS, monotonic_ms, new_id
from sayso.core.key_files import create_key_file
from sayso.errors import Unavailable
from sayso.features.archive.sizing import APPENDED, ARCHIVED, HOT, INDEXED
from service.assembly import assemble
from service.core.store.keys import keys_of
from service.core.wiring import Wiring
from service.features.archive.desk import MOST_RUNS, RunArchive, archive_of, keep_archive
from service.features.archive.segments import ArchivedRun
from tests.builders import approve, ask, finish, make_pending

RUNS, COPIES, READS = 1_000, 100_000, 100
_AT_ONCE, _LATER_MS = 4, 40 * DAY_MS
_WORDS = (
    *("parcel", "arrived", "damaged", "customer", "asks", "refund", "order"),
    *("carrier", "replaced", "invoice", "sent", "again", "address", "late"),
)


async def end_run(wiring: Wiring, number: int) -> None:
    """End a run with one call of 300 bytes that a person approved."""
    note = " ".join(Random(number).choices(_WORDS, k=36))[:250]  # noqa: S311
    record = await make_pending(wiring, ask(order=f"A-{number}", note=note))
    await finish(wiring, await approve(wiring, record), result={"paid": True})


async def end_runs(wiring: Wiring, count: int) -> None:
    """End so many runs, some at once."""
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            try:
                await end_run(wiring, number)
            except Unavailable:  # a busy machine read the freezes too late; the run stays open
                await wiring.freezes.known(fresh=True)

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))


def read_memory(redis: Redis) -> int:
    """Return the memory of all data, bytes, without buffers of connections."""
    return int(cast("dict[str, int]", redis.info("memory"))["used_memory_dataset"])


def _copy(run: ArchivedRun) -> ArchivedRun:
    ids = {"id": new_id("run"), "suspensions": (new_id("sus"),)}
    return run.model_copy(update={"summary": run.summary.model_copy(update=ids)})


async def _measure(url: str, home: Path, scale: float) -> dict[str, float]:
    create_key_file(home / "keys")
    settings = SETTINGS.model_copy(
        update={"redis_url": url, "archive": f"file://{home}/archive", "key_file": home / "keys", "home": home}
    )
    count, figures = max(100, round(RUNS * scale)), dict[str, float]()
    with Redis.from_url(url) as redis:
        async with assemble(settings) as wiring:
            archive = archive_of(wiring.store)
            assert archive is not None  # noqa: S101
            await end_run(wiring, -1)
            memory_before, file_before = read_memory(redis), _read_file(redis)
            await end_runs(wiring, count)
            figures["memory of an ended run"] = (read_memory(redis) - memory_before) / count
            figures["appended by a run"] = (_read_file(redis) - file_before) / count
            redis.delete(keys_of(settings.tenant).unchecked)
            began_ms = monotonic_ms()
            while await keep_archive(wiring, await wiring.schedule.now_ms() + _LATER_MS):
                pass
            figures["runs archived a second"] = count / (monotonic_ms() - began_ms) * 1000
            entries = await archive.list_live()
            figures["archive of a run"] = sum(entry.bytes for entry in entries.values()) / count
            memory_before = read_memory(redis)
            copies = await _fill(archive, max(MOST_RUNS, round(COPIES * scale)))
            figures["index of an archived run"] = (read_memory(redis) - memory_before) / copies
            figures["reading back, ms"] = await _read_back(wiring, archive)
    return figures


def _read_file(redis: Redis) -> int:
    """Return the size of the store's file, bytes."""
    return int(cast("dict[str, int]", redis.info("persistence"))["aof_current_size"])


async def _fill(archive: RunArchive, count: int) -> int:
    """Write segments of copies; return their number."""
    (name, *_) = await archive.list_live()
    runs = (await archive.open(name)).list_runs()
    for _ in range(0, count, len(runs)):
        await archive.write([_copy(run) for run in runs])
    return -(-count // len(runs)) * len(runs)


async def _read_back(wiring: Wiring, archive: RunArchive) -> float:
    """Return the median time to read an archived run by id, ms, each from another segment."""
    took_ms = []
    for name in list(await archive.list_live())[:READS]:
        run = (await archive.open(name)).summaries[-1]
        archive.forget_opened()
        began_ms = monotonic_ms()
        archived = await archive.find(run.id)
        took_ms.append(monotonic_ms() - began_ms)
        assert archived is not None  # noqa: S101
    return median(took_ms)


def main(scale: float) -> int:
    """Measure and print; return 1 where a constant of `sayso size` is over 20 % off."""
    with (
        tempfile.TemporaryDirectory(prefix="sayso-archive-") as folder,
        running_server(Path(folder) / "store") as url,
    ):
        figures = uvloop.run(_measure(url, Path(folder), scale))
    for name, value in figures.items():
        print(f"{name:<26} {value:>10,.1f}")
    known = {"memory of an ended run": HOT, "appended by a run": APPENDED, "archive of a run": ARCHIVED}
    wrong = [name for name, value in known.items() if abs(figures[name] / value - 1) > 0.2]
    month = 30 * 48_000 * figures["memory of an ended run"]
    index = figures["index of an archived run"]
    more = 1 + 1_000_000 * index / month
    print(f"1,000,000 archived runs beside 30 days of 2,000 an hour: {more:.3f} x their memory")
    print(f"index: {index:.1f} of {INDEXED} bytes. Constants over 20 % off: {wrong or 'none'}")
    return int(bool(wrong))
