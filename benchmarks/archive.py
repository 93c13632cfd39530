"""Measure memory and disk of runs, and an archive of many: `make bench ARGS=--archive`.

Ended runs of several shapes are made through the desk, measured, archived, and compared with what `sayso size` says.
An archive of 100,000 is then made by the writer of segments from copies under other ids (`--scale 10`: a million), and
runs are read back by id.
"""

import tempfile
from pathlib import Path
from statistics import median

import uvloop
from redis import Redis

from benchmarks.fills import SETTINGS
from launch.server import running_server
from sayso.core.clock import monotonic_ms, new_id
from sayso.core.key_files import create_key_file
from sayso.features.archive.sizing import RunSize, Shape, estimate_run, estimate_size
from service.assembly import assemble
from service.core.wiring import Wiring
from service.features.archive.desk import MOST_RUNS, RunArchive, archive_of
from service.features.archive.segments import ArchivedRun
from tests.service.features.archive.shapes import SHAPES, measure_runs, read_memory

RUNS, COPIES, READS = 1_000, 100_000, 100
_MOST_OFF = 0.2

Figures = dict[str, float]


def _copy(run: ArchivedRun) -> ArchivedRun:
    ids = {"id": new_id("run"), "suspensions": (new_id("sus"),)}
    return run.model_copy(update={"summary": run.summary.model_copy(update=ids)})


async def _measure(url: str, home: Path, shape: Shape, scale: float, copies: int) -> tuple[RunSize, Figures]:
    """Return what a run of a shape needs, and figures of an archive of copies; none without copies."""
    create_key_file(home / "keys")
    settings = SETTINGS.model_copy(
        update={"redis_url": url, "archive": f"file://{home}/archive", "key_file": home / "keys", "home": home}
    )
    figures: Figures = {}
    with Redis.from_url(url) as redis:
        async with assemble(settings) as wiring:
            size = await measure_runs(wiring, redis, max(100, round(RUNS * scale)), shape)
            if copies:
                archive, memory, began_ms = archive_of(wiring.store), read_memory(redis), monotonic_ms()
                assert archive is not None  # noqa: S101
                made = await _fill(archive, max(MOST_RUNS, round(copies * scale)))
                figures["archived runs"] = made
                figures["written a second"] = made / (monotonic_ms() - began_ms) * 1000
                figures["memory of each in the index, bytes"] = (read_memory(redis) - memory) / made
                figures["reading one back by id, ms"] = await _read_back(wiring, archive)
    return size, figures


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
    """Measure and print; return 1 where `sayso size` is over 20 % off."""
    print("| calls | bytes of each | decisions | bytes of a run | measured | `sayso size` |")
    print("| --- | --- | --- | --- | --- | --- |")
    figures, wrong = Figures(), 0
    for shape in SHAPES:
        with (
            tempfile.TemporaryDirectory(prefix="sayso-archive-") as folder,
            running_server(Path(folder) / "store") as url,
        ):
            copies = COPIES if shape == SHAPES[0] else 0
            size, added = uvloop.run(_measure(url, Path(folder), shape, scale, copies))
        figures |= added
        for name, measured, estimated in zip(RunSize._fields, size, estimate_run(shape), strict=True):
            print(f"| {' | '.join(map(str, shape))} | {name} | {measured:,.0f} | {estimated:,.0f} |", flush=True)
            wrong += abs(estimated / measured - 1) > _MOST_OFF
    for name, value in figures.items():
        print(f"{name:<36} {value:>12,.1f}")
    month = estimate_size(2_000, 30, 30).memory
    more = 1 + figures["archived runs"] * figures["memory of each in the index, bytes"] / month
    print(f"memory beside 30 days of 2,000 runs an hour: {more:.3f} x. Estimates over 20 % off: {wrong}")
    return int(wrong > 0)
