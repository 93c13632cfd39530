"""What ended long ago is deleted: first the run, in the end its trail; what waits is never touched."""

import asyncio
from collections.abc import AsyncIterator
from copy import copy
from pathlib import Path
from typing import cast

import pytest
from pydantic import ValidationError
from redis.asyncio import Redis

from sayso.core.clock import DAY_MS
from sayso.core.records.suspensions import RunStatus
from sayso.errors import Conflict, NotFound
from service.assembly import assemble
from service.core.jobs import DRAIN, RETAIN, DrainQueue
from service.core.settings import Settings
from service.core.store.connection.connecting import text
from service.core.store.keys import TenantKeys
from service.core.store.runs.external_events import ExternalEvent, ExternalEvents
from service.core.wiring import Wiring
from service.features.discussions.discussing import add_comment, attach
from service.features.discussions.store import Attachments, Comments
from service.features.operate.diagnostics import Finding, diagnose
from tests.builders import approve, finish, give_up, make_pending, make_running, person
from tests.proofs.indexes import expect_indexes, read_indexes
from workers.outbox import Counting
from workers.retention import EVERY_S, erase_old, forget_old, repair_buckets


@pytest.fixture
async def wiring(clean_store_url: str, tmp_path: Path) -> AsyncIterator[Wiring]:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\ndefault: request_approval\nrules: []\n")
    settings = Settings(home=tmp_path, redis_url=clean_store_url, policy=policy, keep_runs_days=2, keep_trail_days=5)
    async with assemble(settings) as wired:
        yield wired


async def keys_of(url: str, *parts: str) -> list[str]:
    async with Redis.from_url(url) as redis:
        names = [name.decode() async for name in redis.scan_iter()]
        members = [
            f"{name} {member.decode()}"
            for name in names
            if await redis.type(name) == b"zset"
            for member in cast("list[bytes]", await redis.zrange(name, 0, -1))
        ]
    return [name for name in (*names, *members) if any(part in name for part in parts)]


async def test_ended_run_is_deleted_before_its_trail(wiring: Wiring, clean_store_url: str) -> None:
    pending = await make_pending(wiring)
    file = await attach(wiring, pending.id, "i1", "log.txt", b"a log", person("anna"))
    ended = await finish(wiring, await approve(wiring, pending))
    rule_id = ended.items[0].terms.rule_id or ""
    assert await wiring.rules.list_asked(rule_id) == [(ended.id, "i1")]
    await wiring.part(ExternalEvents).add(ended.run.id, "agent", "sayso", [ExternalEvent(1, None, {"type": "note"})])
    comment = await add_comment(wiring, ended.id, "i1", "Checked.", "anna", None)
    await Counting(wiring).count_waiting()
    now_ms = await wiring.schedule.now_ms()
    assert await forget_old(wiring, now_ms + DAY_MS) == (0, 0)
    assert await forget_old(wiring, now_ms + 3 * DAY_MS) == (1, 0)
    with pytest.raises(NotFound):
        await wiring.runs.read(ended.run.id)
    assert await wiring.part(ExternalEvents).read_all(ended.run.id) == [], "events of others are erased with the run"
    assert await wiring.rules.list_asked(rule_id) == []
    with pytest.raises(NotFound):
        await wiring.part(ExternalEvents).add(
            ended.run.id, "agent", "sayso", [ExternalEvent(2, None, {"type": "note"})]
        )
    assert await wiring.part(Attachments).list_all(ended.run.id, ended.id, "i1") == []
    with pytest.raises(NotFound):
        await wiring.part(Attachments).read(ended.run.id, file)
    async with Redis.from_url(clean_store_url) as redis:
        assert await redis.get(TenantKeys("default").file_bytes) == b"0"
    assert [one.id for one in await wiring.part(Comments).list_all(ended.run.id)] == [comment.id], "with the trail"
    assert [one.seq for one in await wiring.runs.trail(ended.run.id)][:2] == [1, 2]
    assert await forget_old(wiring, now_ms + 6 * DAY_MS) == (0, 1)
    assert await keys_of(clean_store_url, ended.run.id, ended.id) == [], "all keys of a run go in the end"


async def test_active_run_is_kept_at_any_age(wiring: Wiring, clean_store_url: str) -> None:
    kept = [await make_pending(wiring), await approve(wiring, await make_pending(wiring)), await make_running(wiring)]
    cancelled, failed = await make_pending(wiring), await approve(wiring, await make_pending(wiring))
    await wiring.desk.cancel(cancelled.run.id, person("ada"))
    await give_up(wiring, failed)
    now_ms = await wiring.schedule.now_ms()
    assert await forget_old(wiring, now_ms + 400 * DAY_MS) == (2, 2)
    async with Redis.from_url(clean_store_url) as redis:
        held, records = await read_indexes(redis, "default")
    assert {record.id for record in records} == {record.id for record in kept}
    assert held == expect_indexes(records)


async def test_run_revived_during_retention_is_kept(wiring: Wiring) -> None:
    failed = await give_up(wiring, await approve(wiring, await make_pending(wiring)))
    later_ms = await wiring.schedule.now_ms() + 3 * DAY_MS
    revive = wiring.desk.revive(failed.id, person("ada"))
    deleted, revived = await asyncio.gather(forget_old(wiring, later_ms), revive, return_exceptions=True)
    assert isinstance(deleted, tuple)
    runs, _ = deleted
    if runs:
        assert isinstance(revived, NotFound | Conflict)
    else:
        assert (await wiring.runs.read(failed.run.id)).status is RunStatus.SUSPENDED


async def test_many_runs_are_deleted_in_batches(wiring: Wiring) -> None:
    for _ in range(7):
        await finish(wiring, await make_running(wiring))
    now_ms = await wiring.schedule.now_ms()
    assert await wiring.retention.forget_runs(now_ms + 1000, 3) == 3
    assert await wiring.retention.forget_runs(now_ms - 60_000, 100) == 0
    assert await wiring.retention.forget_runs(now_ms + 1000, 100) == 4


async def test_doctor_names_open_items_that_were_missed(wiring: Wiring, clean_store_url: str) -> None:
    async def diagnose_inbox() -> Finding:
        (found,) = [one async for one in diagnose(wiring) if one.part == "inbox"]
        return found

    pending = await make_pending(wiring)
    assert (await diagnose_inbox()).ok
    async with Redis.from_url(clean_store_url) as redis:
        keys = TenantKeys(pending.tenant)
        await redis.delete(*(keys.bucket(text(name)) for name in await redis.hkeys(keys.buckets)))
    await repair_buckets(wiring)
    found = await diagnose_inbox()
    assert (found.ok, found.message[:37]) == (False, "Filters and counts missed 1 open item")
    await repair_buckets(wiring)
    assert (await diagnose_inbox()).ok


async def test_one_clock_claims_retention_once_an_hour(wiring: Wiring, clean_store_url: str) -> None:
    assert [await wiring.retention.claim(EVERY_S) for _ in range(3)] == [True, False, False]
    jobs = DrainQueue(clean_store_url, 30)
    jobs.put(RETAIN)
    assert [job.func_name for job in jobs._queue.jobs] == [RETAIN]
    assert jobs._queue.name == "sayso-resume"
    jobs.put_back()
    jobs.put_back()
    names = [job.func_name for job in jobs._queue.jobs]
    assert names == [RETAIN, DRAIN], "a job that forgets what is old drives nothing, so it does not count as one"
    jobs.close()


async def test_contents_are_erased_before_the_run_is_deleted(wiring: Wiring, clean_store_url: str) -> None:
    kept = await make_pending(wiring)
    ended = [await finish(wiring, await approve(wiring, await make_pending(wiring))) for _ in range(3)]
    now_ms = await wiring.schedule.now_ms()
    assert await erase_old(wiring, now_ms + 400 * DAY_MS) == 0, "by default contents are kept as long as the trail"
    settings = wiring.settings.model_copy(update={"keep_calls_days": 1})
    wiring = copy(wiring)
    wiring.settings = settings
    assert await erase_old(wiring, now_ms) == 0
    assert await erase_old(wiring, now_ms + 2 * DAY_MS) == 3
    assert await erase_old(wiring, now_ms + 2 * DAY_MS) == 0
    for one in ended:
        erasure = (await wiring.runs.read(one.run.id)).erasure
        assert erasure is not None
        assert (erasure.by.kind, erasure.reason) == ("worker", "SAYSO_KEEP_CALLS_DAYS is 1")
    assert (await wiring.desk.suspensions.read(kept.id)).record == kept
    await wiring.desk.cancel(kept.run.id, person("ada"))
    assert await forget_old(wiring, now_ms + 3 * DAY_MS) == (4, 0)
    assert await erase_old(wiring, now_ms + 3 * DAY_MS) == 1, "the trail of the run that was deleted unerased"
    assert await forget_old(wiring, now_ms + 6 * DAY_MS) == (0, 4)
    assert await keys_of(clean_store_url, *(one.run.id for one in (*ended, kept))) == []


async def test_contents_that_cannot_be_erased_keep_no_other_run_waiting(wiring: Wiring, clean_store_url: str) -> None:
    settings = wiring.settings.model_copy(update={"keep_calls_days": 1})
    wiring = copy(wiring)
    wiring.settings = settings
    altered, whole = [await finish(wiring, await approve(wiring, await make_pending(wiring))) for _ in range(2)]
    async with Redis.from_url(clean_store_url) as redis:
        await redis.rpop(TenantKeys("default").trail(altered.run.id))
    assert await erase_old(wiring, await wiring.schedule.now_ms() + 2 * DAY_MS) == 1
    assert (await wiring.runs.read(altered.run.id)).erasure is None
    assert (await wiring.runs.read(whole.run.id)).erasure is not None


def test_calls_are_not_kept_as_long_as_the_trail() -> None:
    with pytest.raises(ValidationError, match="SAYSO_KEEP_CALLS_DAYS is not below SAYSO_KEEP_TRAIL_DAYS"):
        Settings(keep_calls_days=365)
