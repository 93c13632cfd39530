"""A process that dies anywhere on the way into the archive loses no run, and the next pass completes its work."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from sayso.core.clock import DAY_MS
from service.core.operations.runs import erase_run
from service.core.settings import CHECKOUT, Settings
from service.core.wiring import Wiring
from service.features.archive.keeping import keep_archive
from service.features.archive.places import Folder
from tests.builders import make_pending, person
from tests.service.features.archive.runs import KEYS, archive, end_a_run, keep, list_files
from tests.waits import until

_PASS = """
import asyncio, sys
from pathlib import Path
from service.assembly import assemble
from service.core.settings import Settings
from service.features.archive.keeping import keep_archive

async def main():
    async with assemble(Settings.model_validate_json(Path(sys.argv[1]).read_text())) as wiring:
        await keep_archive(wiring, int(sys.argv[2]))

asyncio.run(main())
"""


class Death(BaseException):
    """The end of a process."""


class DyingFolder(Folder):
    """A folder whose process dies before or after one of its steps."""

    steps = 0
    dies_at = 0.0

    async def put(self, path: str, body: bytes) -> None:
        self._step(0.0)
        await super().put(path, body)
        self._step(0.5)

    async def get(self, path: str) -> bytes | None:
        self._step(0.0)
        return await super().get(path)

    async def delete(self, path: str) -> None:
        self._step(0.0)
        await super().delete(path)
        self._step(0.5)

    def _step(self, part: float) -> None:
        self.steps += part == 0
        if self.steps + part == self.dies_at:
            raise Death


@pytest.fixture
def key_file() -> None:
    """No key file: nothing here depends on one."""


async def expect_each_once(wiring: Wiring, run_ids: list[str], tmp_path: Path) -> None:
    """Every run lies in one segment, none in the store, and no file is left over."""
    segments = await archive(wiring).list_live()
    held = [run.id for name in segments for run in (await archive(wiring).open(name)).summaries]
    assert sorted(held) == sorted(run_ids)
    assert len(list_files(tmp_path)) == len(segments)
    assert await wiring.store.redis.zcard(KEYS.uncut) == 0
    assert [await wiring.store.redis.exists(KEYS.run(run_id)) for run_id in run_ids] == [0] * len(run_ids)


@pytest.mark.parametrize("dies_at", [1, 1.5, 2])
async def test_pass_that_dies_loses_no_run(wiring: Wiring, tmp_path: Path, dies_at: float) -> None:
    run_ids = [(await end_a_run(wiring)).run.id for _ in range(3)]
    whole, dying = archive(wiring).place, DyingFolder(tmp_path / "archive")
    archive(wiring).place, dying.dies_at = dying, dies_at
    with pytest.raises(Death):
        await keep(wiring)
    archive(wiring).place = whole
    for run_id in run_ids:
        assert (await wiring.runs.read(run_id)).id == run_id
    await keep(wiring)
    await expect_each_once(wiring, run_ids, tmp_path)


@pytest.mark.parametrize("dies_at", [2, 2.5, 3, 4, 4.5])
async def test_erasure_that_dies_is_completed(wiring: Wiring, tmp_path: Path, dies_at: float) -> None:
    ended, other = await end_a_run(wiring, secret="swordfish"), await end_a_run(wiring)
    await keep(wiring)
    await wiring.runs.read(ended.run.id)
    archive(wiring).forget_opened()
    whole, dying = archive(wiring).place, DyingFolder(tmp_path / "archive")
    archive(wiring).place, dying.dies_at = dying, dies_at
    with pytest.raises(Death):
        await erase_run(wiring, ended.run.id, person("root"), "A request")
    archive(wiring).place = whole
    assert (await wiring.runs.read(ended.run.id)).erasure is not None, "what the store holds counts"
    assert (await wiring.runs.read(other.run.id)).erasure is None
    await keep(wiring)
    await keep(wiring)
    await expect_each_once(wiring, [ended.run.id, other.run.id], tmp_path)
    run = await archive(wiring).find(ended.run.id)
    assert run is not None
    assert "swordfish" not in run.model_dump_json()


async def test_killed_process_loses_no_run(wiring: Wiring, settings: Settings, tmp_path: Path) -> None:
    runs = [await make_pending(wiring) for _ in range(250)]
    for record in runs:
        await wiring.desk.cancel(record.run.id, person("ada"))
    await wiring.store.redis.delete(KEYS.unchecked)
    (tmp_path / "settings.json").write_text(settings.model_dump_json(exclude_unset=True))
    now_ms = await wiring.schedule.now_ms() + 33 * DAY_MS
    args = [sys.executable, "-c", _PASS, str(tmp_path / "settings.json"), str(now_ms)]
    process = await asyncio.create_subprocess_exec(*args, cwd=CHECKOUT)

    async def is_halfway() -> bool:
        return process.returncode is not None or 0 < await wiring.store.redis.zcard(KEYS.uncut) < len(runs)

    await until(is_halfway)
    os.kill(process.pid, signal.SIGKILL)
    await process.wait()
    halfway = await wiring.store.redis.zcard(KEYS.uncut)
    assert 0 < halfway < len(runs)
    for record in runs:
        assert (await wiring.runs.read(record.run.id)).id == record.run.id
    await keep(wiring)
    await expect_each_once(wiring, [record.run.id for record in runs], tmp_path)


async def test_pass_and_erasure_at_once_lose_nothing(wiring: Wiring, tmp_path: Path) -> None:
    runs = [await end_a_run(wiring, secret="swordfish") for _ in range(12)]
    await wiring.store.redis.delete(KEYS.unchecked)
    now_ms = await wiring.schedule.now_ms() + 33 * DAY_MS
    erasing = [erase_run(wiring, record.run.id, person("root"), "A request") for record in runs[::3]]
    await asyncio.gather(*[keep_archive(wiring, now_ms) for _ in range(3)], *erasing)
    for record in runs:
        assert (await wiring.runs.read(record.run.id)).id == record.run.id
    await keep(wiring)
    await keep(wiring)
    await expect_each_once(wiring, [record.run.id for record in runs], tmp_path)
    archived = [await archive(wiring).find(record.run.id) for record in runs]
    assert [run is not None and "swordfish" not in run.model_dump_json() for run in archived] == [
        place % 3 == 0 for place in range(12)
    ]
