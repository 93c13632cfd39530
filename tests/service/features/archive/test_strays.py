"""Segments that the index lost are deleted where nothing is lost with them, and named where something could be."""

from pathlib import Path

import pytest

from service.core.wiring import Wiring
from service.features.archive.keeping import describe_archive
from tests.service.features.archive.runs import KEYS, archive, end_a_run, keep, list_files

STORED = (KEYS.run, KEYS.trail, KEYS.comments, KEYS.comments_seen, KEYS.files, KEYS.file_contents, KEYS.state)


async def copy_keys(wiring: Wiring, names: list[str]) -> dict[str, bytes]:
    """What the store holds under these keys, as it dumps them."""
    dumps = {name: await wiring.store.redis.dump(name) for name in names}
    return {name: dump for name, dump in dumps.items() if dump}


async def restore(wiring: Wiring, kept: dict[str, bytes]) -> None:
    for name, dump in kept.items():
        await wiring.store.redis.restore(name, 0, dump, replace=True)


async def forget_index(wiring: Wiring) -> None:
    """Let the store go back to a time before the segments."""
    await wiring.store.redis.delete(KEYS.archive, KEYS.archive_version, KEYS.uncut)


@pytest.mark.parametrize("lost", ["nothing", "comment"])
async def test_segment_goes_once_the_store_has_its_runs_again(wiring: Wiring, tmp_path: Path, lost: str) -> None:
    ended = await end_a_run(wiring)
    kept = await copy_keys(wiring, [*(key(ended.run.id) for key in STORED), KEYS.suspension(ended.id)])
    await keep(wiring)
    (stray,) = list_files(tmp_path)
    await forget_index(wiring)
    if lost == "comment":
        del kept[KEYS.comments(ended.run.id)]
    await restore(wiring, kept)
    await wiring.store.redis.zadd(KEYS.runs(ended.run_status), {ended.run.id: ended.run.started_at_ms})
    is_whole, text, _ = await describe_archive(wiring.store)
    assert (is_whole, stray.stem in text) == (False, True)
    await keep(wiring)
    await keep(wiring)
    assert (stray in list_files(tmp_path)) == (lost == "comment")
    assert (await describe_archive(wiring.store))[0] == (lost == "nothing")
    assert (await wiring.runs.read(ended.run.id)).id == ended.run.id


async def test_segment_with_the_only_copy_of_a_run_is_named_and_stays(wiring: Wiring, tmp_path: Path) -> None:
    ended = await end_a_run(wiring)
    await keep(wiring)
    (stray,) = list_files(tmp_path)
    await forget_index(wiring)
    stray.with_name("seg_of_nobody.sayso").write_bytes(b"not a segment")
    await keep(wiring)
    assert len(list_files(tmp_path)) == 2
    is_whole, text, todo = await describe_archive(wiring.store)
    assert (is_whole, "2 more are not in the index" in text, bool(todo)) == (False, True, True)
    assert await archive(wiring).find(ended.run.id) is None


async def test_half_written_file_goes_with_its_entry(wiring: Wiring, tmp_path: Path) -> None:
    await end_a_run(wiring)
    await keep(wiring)
    (file,) = list_files(tmp_path)
    file.with_suffix(".partial").write_bytes(b"half of a segment")
    await keep(wiring, days=367)
    assert list_files(tmp_path) == []
