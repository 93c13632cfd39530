"""Ended runs move into signed segments, and come back whole for their readers."""

from pathlib import Path

import pytest
from redis.asyncio import Redis

from sayso.core.clock import DAY_MS, new_id, now_ms
from sayso.errors import NotFound, Unreadable
from service.core.operations.runs import erase_run
from service.core.store.inspection import find_chain_fault
from service.core.wiring import Wiring
from service.features.archive.desk import read_day
from service.features.archive.places import Folder
from service.features.discussions.discussing import add_comment
from service.features.discussions.store import Attachments, Comments
from service.features.evidence.exporting import make_file
from tests.builders import make_pending, person
from tests.service.features.archive.runs import (
    FILE,
    KEYS,
    archive,
    count_keys,
    end_a_run,
    keep,
    list_files,
    read_run_keys,
)
from workers.retention import forget_old


async def test_ended_runs_leave_the_store_and_are_read_back_whole(
    wiring: Wiring, clean_store_url: str, tmp_path: Path
) -> None:
    ended = [await end_a_run(wiring) for _ in range(3)]
    waiting = await make_pending(wiring)
    run_id = ended[0].run.id
    before = await read_run_keys(clean_store_url, run_id, ended[0].id)
    evidence = await make_file(wiring, [run_id], "anna")
    await keep(wiring, days=29)
    assert not list_files(tmp_path), "they are not old enough"
    await keep(wiring)
    assert len(list_files(tmp_path)) == 1
    for record in ended:
        assert await read_run_keys(clean_store_url, record.run.id, record.id) == {}
    async with Redis.from_url(clean_store_url) as redis:
        assert await redis.get(KEYS.file_bytes) == b"0"
        assert await redis.zcard(KEYS.uncut) == 0
    assert (await wiring.runs.read(waiting.run.id)).id == waiting.run.id

    assert (await wiring.runs.read(run_id)).suspension_id == ended[0].id
    assert await read_run_keys(clean_store_url, run_id, ended[0].id) == before or wiring.settings.key_file
    assert (await wiring.desk.suspensions.read(ended[1].id)).record == ended[1], "by the suspension, too"
    assert [comment.text for comment in await wiring.part(Comments).list_all(run_id)] == ["Checked, and fine."]
    (file,) = await wiring.part(Attachments).list_all(run_id, ended[0].id, "i1")
    assert await wiring.part(Attachments).read(run_id, file) == FILE
    assert find_chain_fault(await wiring.runs.trail(run_id)) == ""
    again = await make_file(wiring, [run_id], "anna")
    assert again.splitlines()[1:-1] == evidence.splitlines()[1:-1]
    with pytest.raises(NotFound):
        await wiring.runs.read("run_0123456789ab")


async def test_read_back_run_leaves_again_without_a_new_segment(
    wiring: Wiring, clean_store_url: str, tmp_path: Path
) -> None:
    ended = await end_a_run(wiring)
    await keep(wiring)
    files, keys = list_files(tmp_path), await count_keys(clean_store_url)
    await wiring.runs.read(ended.run.id)
    assert await count_keys(clean_store_url) > keys
    await keep(wiring)
    assert (list_files(tmp_path), await count_keys(clean_store_url)) == (files, keys)
    assert (await wiring.runs.read(ended.run.id)).id == ended.run.id


async def test_changed_run_is_archived_anew(wiring: Wiring, tmp_path: Path) -> None:
    ended, other = await end_a_run(wiring), await end_a_run(wiring)
    await keep(wiring)
    await wiring.runs.read(ended.run.id)
    await add_comment(wiring, ended.id, "i1", "Seen a month later.", "anna", None)
    await keep(wiring)
    await keep(wiring)
    assert await wiring.store.redis.exists(KEYS.run(ended.run.id)) == 0
    await wiring.runs.read(ended.run.id)
    comments = await wiring.part(Comments).list_all(ended.run.id)
    assert [comment.text for comment in comments] == ["Checked, and fine.", "Seen a month later."]
    assert (await wiring.runs.read(other.run.id)).id == other.run.id
    assert len(list_files(tmp_path)) == 2


async def test_erasure_of_an_archived_run_rewrites_its_segment(wiring: Wiring, tmp_path: Path) -> None:
    ended, other = await end_a_run(wiring, secret="swordfish"), await end_a_run(wiring, secret="halibut")
    await keep(wiring)
    (before,) = list_files(tmp_path)
    await erase_run(wiring, ended.run.id, person("root"), "A request")
    assert before not in list_files(tmp_path)
    assert await archive(wiring).find(ended.run.id) is None
    await keep(wiring)
    assert await wiring.store.redis.exists(KEYS.run(ended.run.id)) == 0
    run = await archive(wiring).find(ended.run.id)
    assert run is not None
    assert "swordfish" not in run.model_dump_json()
    kept = await archive(wiring).find(other.run.id)
    assert kept is not None
    assert "halibut" in kept.model_dump_json()
    assert (await wiring.runs.read(ended.run.id)).erasure is not None
    assert find_chain_fault(await wiring.runs.trail(ended.run.id)) == ""


async def test_old_contents_are_erased_in_the_archive(wiring: Wiring) -> None:
    ended = await end_a_run(wiring, secret="swordfish")
    await keep(wiring)
    object.__setattr__(wiring.settings, "keep_calls_days", 40)
    await keep(wiring, days=39)
    assert not (await wiring.runs.read(ended.run.id)).erasure
    await keep(wiring, days=41)
    await keep(wiring, days=41)
    run = await archive(wiring).find(ended.run.id)
    assert run is not None
    assert run.summary.erased_ms is not None
    assert "swordfish" not in run.model_dump_json()


async def test_segments_are_deleted_after_the_retention_of_trails(
    wiring: Wiring, clean_store_url: str, tmp_path: Path
) -> None:
    ended = await end_a_run(wiring)
    await forget_old(wiring, now_ms() + 32 * DAY_MS)
    assert (await wiring.runs.read(ended.run.id)).id == ended.run.id, "an archive takes what was deleted before"
    await keep(wiring)
    await keep(wiring, days=364)
    assert len(list_files(tmp_path)) == 1
    await keep(wiring, days=367)
    assert list_files(tmp_path) == []
    with pytest.raises(NotFound):
        await wiring.runs.read(ended.run.id)
    assert await wiring.store.redis.hlen(KEYS.archive) == 0


@pytest.mark.parametrize("harm", ["altered", "cut", "missing", "swapped"])
async def test_damaged_segment_is_named_and_its_runs_are_not_absent(wiring: Wiring, tmp_path: Path, harm: str) -> None:
    other = await end_a_run(wiring)
    await keep(wiring)
    (swapped,) = list_files(tmp_path)
    ended = await end_a_run(wiring)
    await keep(wiring)
    (file,) = (path for path in list_files(tmp_path) if path != swapped)
    raw = file.read_bytes()
    harmed = {"altered": raw[:-9] + bytes([raw[-9] ^ 1]) + raw[-8:], "cut": raw[:-40], "swapped": swapped.read_bytes()}
    file.unlink()
    if harm in harmed:
        file.write_bytes(harmed[harm])
    archive(wiring).forget_opened()
    with pytest.raises(Unreadable, match="cannot be read"):
        await wiring.runs.read(ended.run.id)
    (fault,) = await archive(wiring).find_damage()
    assert file.stem in fault
    assert (await wiring.runs.read(other.run.id)).id == other.run.id
    file.write_bytes(raw)
    assert (await wiring.runs.read(ended.run.id)).id == ended.run.id


class CountingFolder(Folder):
    """A folder that counts the segments that are read."""

    reads = 0

    async def get(self, path: str) -> bytes | None:
        self.reads += 1
        return await super().get(path)


async def test_pages_that_refresh_do_not_read_whole_segments_again(wiring: Wiring, tmp_path: Path) -> None:
    ended = await end_a_run(wiring)
    await keep(wiring)
    archive(wiring).place = folder = CountingFolder(tmp_path / "archive")
    for fresh, reads in ((False, 1), (False, 1), (True, 2), (False, 2)):
        assert (await archive(wiring).find_damage(fresh=fresh), folder.reads) == ([], reads)
    (file,) = list_files(tmp_path)
    file.write_bytes(b"")
    with pytest.raises(Unreadable, match="cannot be read"):
        await wiring.runs.read(ended.run.id)
    for reads in (4, 5):
        assert len(await archive(wiring).find_damage(fresh=False)) == 1
        assert folder.reads == reads, "a damaged one is read until it is restored"


async def test_days_list_what_began_on_them(wiring: Wiring) -> None:
    ended = [await end_a_run(wiring) for _ in range(3)]
    assert await archive(wiring).find_last_day() == ""
    await keep(wiring)
    first_ms = ended[0].run.started_at_ms
    assert await archive(wiring).find_last_day() == read_day(ended[-1].run.started_at_ms).isoformat()
    listed = await archive(wiring).list_summaries(first_ms, first_ms + 60_000)
    assert [run.id for run in listed] == [record.run.id for record in ended]
    assert [run.id for run in await archive(wiring).list_summaries(first_ms, first_ms + 60_000, 1, 1)] == [
        ended[1].run.id
    ]
    assert await archive(wiring).list_summaries(first_ms + 60_000, first_ms + 120_000) == []


async def test_pages_of_a_day_are_in_order_over_segments_that_overlap(wiring: Wiring) -> None:
    ended = await end_a_run(wiring)
    await keep(wiring)
    run = await archive(wiring).find(ended.run.id)
    assert run is not None
    for starts in ((1, 5, 6), (2, 3, 4)):
        summaries = [run.summary.model_copy(update={"id": new_id("run"), "started_ms": at_ms}) for at_ms in starts]
        await archive(wiring).write([run.model_copy(update={"summary": summary}) for summary in summaries])
    pages = [await archive(wiring).list_summaries(0, 10, skip, 2) for skip in (0, 2, 4)]
    assert [[summary.started_ms for summary in page] for page in pages] == [[1, 2], [3, 4], [5, 6]]
