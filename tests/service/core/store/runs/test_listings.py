"""Runs are found by status and by who asked for them, however many others there are."""

from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path

import pytest
from redis.asyncio import Redis

from service.assembly import assemble
from service.core.settings import Settings
from service.core.store.runs.runs import Run
from service.core.store.suspensions.reading import UnreadableRecord
from service.core.wiring import Wiring
from tests.builders import approve, finish, make_pending, make_running, person

OWNERS = ("demo", "other")
STATUSES = ("running", "suspended", "completed", "cancelled", "failed")


@pytest.fixture
async def wiring(clean_store_url: str, tmp_path: Path) -> AsyncIterator[Wiring]:
    async with assemble(Settings(home=tmp_path, redis_url=clean_store_url)) as wiring:
        yield wiring


async def fill(wiring: Wiring, owner: str) -> None:
    """Let one owner's runs stand wherever a run may stand."""
    await make_running(wiring, owner)
    for _ in range(3):
        await make_pending(wiring, owner=owner)
    await approve(wiring, await make_pending(wiring, owner=owner))
    taken_up = await approve(wiring, await make_pending(wiring, owner=owner))
    await wiring.desk.lease(taken_up.id, "w1", 30_000)
    await finish(wiring, await approve(wiring, await make_pending(wiring, owner=owner)))
    cancelled = await make_pending(wiring, owner=owner)
    await wiring.desk.cancel(cancelled.run.id, person("root"))


async def test_a_status_and_an_owner_name_just_the_runs_that_have_both(wiring: Wiring) -> None:
    for one in (*OWNERS, *OWNERS):
        await fill(wiring, one)
    every = readable(await wiring.runs.list_runs())
    assert [run.created_at_ms for run in every] == sorted((run.created_at_ms for run in every), reverse=True)
    assert len(every) == 32
    for status, owner in product((None, *STATUSES), (None, *OWNERS)):
        wanted = [run for run in every if status in (None, run.status) and owner in (None, run.owner)]
        found = readable(await wiring.runs.list_runs(status=status, owner=owner))
        assert by_id(found) == by_id(wanted)
        paged = [
            run
            for skip in range(0, len(wanted) + 3, 3)
            for run in await wiring.runs.list_runs(status=status, owner=owner, skip=skip, limit=3)
        ]
        assert paged == found


async def test_what_waits_comes_by_its_deadline_and_before_what_is_decided(wiring: Wiring) -> None:
    decided = await approve(wiring, await make_pending(wiring))
    later, sooner = await make_pending(wiring), await make_pending(wiring, late_ms=5_000)
    found = readable(await wiring.runs.list_runs(status="suspended"))
    assert [run.id for run in found] == [one.run.id for one in (sooner, later, decided)]


@pytest.mark.parametrize("status", ["suspended", "running"])
async def test_to_find_one_owners_runs_no_record_of_others_is_read(
    wiring: Wiring, clean_store_url: str, status: str
) -> None:
    for _ in range(20):
        await make_pending(wiring, owner="other")
    await make_pending(wiring)
    async with Redis.from_url(clean_store_url) as redis:
        await redis.config_resetstat()
        await wiring.runs.list_runs(status=status, owner="demo")
        read = (await redis.info("stats"))["keyspace_hits"]
    assert read <= 8, "the indexes, and what one run stands at"


async def test_what_waits_for_one_owner_is_found_and_nothing_else(wiring: Wiring) -> None:
    for owner in OWNERS:
        await fill(wiring, owner)
    waiting = await wiring.runs.waiting_of("demo")
    suspended = await wiring.runs.list_runs(status="suspended", owner="demo")
    assert len(waiting) == 3
    assert set(waiting) < {run.suspension_id for run in suspended}


def readable(found: list[Run | UnreadableRecord]) -> list[Run]:
    """The runs found, of which each can be read."""
    runs = [one for one in found if isinstance(one, Run)]
    assert len(runs) == len(found)
    return runs


def by_id(runs: list[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: run.id)
