"""The table of sizes is near what a small desk needs, in bytes, and grows as its parts do."""

import os
import subprocess
import sys

import pytest
from redis import Redis

from sayso.features.archive.sizing import INDEXED, Shape, estimate_run, estimate_size
from service.core.wiring import Wiring
from service.features.archive.segments import Filter
from tests.service.features.archive.conftest import settings, wiring  # noqa: F401
from tests.service.features.archive.shapes import SHAPES, measure_runs

RUNS = 100


@pytest.fixture
def key_file() -> None:
    """No key file: sizes are near without one."""


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_small_desk_needs_what_the_table_says(wiring: Wiring, clean_store_url: str, shape: Shape) -> None:  # noqa: F811
    with Redis.from_url(clean_store_url) as redis:
        measured, estimated = await measure_runs(wiring, redis, RUNS, shape), estimate_run(shape)
    assert measured[:2] == pytest.approx(estimated[:2], rel=0.2)
    assert measured.archived == pytest.approx(estimated.archived, rel=0.35), "small segments compress less"


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
