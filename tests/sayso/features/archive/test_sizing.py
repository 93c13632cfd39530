"""The table of sizes is near what a small desk needs, in bytes, and grows as its parts do."""

import os
import subprocess
import sys

import pytest
from redis.asyncio import Redis

from sayso.features.archive.sizing import APPENDED, ARCHIVED, HOT, INDEXED, estimate_size
from service.core.wiring import Wiring
from service.features.archive.segments import Filter
from tests.builders import approve, ask, finish, make_pending
from tests.service.features.archive.conftest import settings, wiring  # noqa: F401
from tests.service.features.archive.runs import archive, keep

_NOTE = "The parcel arrived damaged, and the customer asks for a refund. The carrier was told, and the invoice sent. "
RUNS = 150


@pytest.fixture
def key_file() -> None:
    """No key file: sizes are near without one."""


async def read_sizes(url: str) -> tuple[int, int]:
    """Memory of all data and size of the file, in bytes."""
    async with Redis.from_url(url) as redis:
        memory, persistence = await redis.info("memory"), await redis.info("persistence")
    return int(memory["used_memory_dataset"]), int(persistence["aof_current_size"])


async def end_a_run(wiring: Wiring, number: int) -> None:  # noqa: F811
    record = await make_pending(wiring, ask(order=f"A-{number}", note=f"{number} {_NOTE * 3}"[:250]))
    await finish(wiring, await approve(wiring, record), result={"paid": True})


async def test_a_small_desk_needs_what_the_table_says(wiring: Wiring, clean_store_url: str) -> None:  # noqa: F811
    await end_a_run(wiring, -1)
    before = await read_sizes(clean_store_url)
    for number in range(RUNS):
        await end_a_run(wiring, number)
    memory, file = (late - early for late, early in zip(await read_sizes(clean_store_url), before, strict=True))
    assert memory / RUNS == pytest.approx(HOT, rel=0.2)
    assert file / RUNS == pytest.approx(APPENDED, rel=0.2)
    await keep(wiring)
    (entry,) = (await archive(wiring).list_live()).values()
    assert entry.bytes / entry.runs == pytest.approx(ARCHIVED, rel=0.35), "small segments compress less"


def test_an_index_takes_few_bytes_a_run() -> None:
    ids = [f"run_{number:032x}" for number in range(4_000)]
    assert len(Filter.of(ids).bits) * 4 / 3 / 2_000 == pytest.approx(INDEXED, rel=0.4)
    assert all(map(Filter.of(ids).may_hold, ids))
    wrong = sum(Filter.of(ids).may_hold(f"sus_{number:032x}") for number in range(300))
    assert wrong < 10


def test_a_million_archived_runs_take_little_memory_beside_30_days() -> None:
    month = estimate_size(2_000, 30, 30).memory
    archived = estimate_size(2_000, 30, 30 + 1_000_000 // 48_000 + 1)
    assert archived.memory < 1.02 * month
    assert archived.archive > 1_000_000 * 400


def test_command_prints_the_table() -> None:
    words = [sys.executable, "-m", "sayso", "size", "--runs-per-hour", "2000"]
    ended = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "200"})
    assert [line.split()[0] for line in ended.stdout.splitlines() if "GiB" in line] == ["7", "30", "90"]
