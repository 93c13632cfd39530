"""A trail that was cut, deleted, added to or damaged is noticed wherever it is read: the record says where it ends."""

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from sayso.core.clock import DAY_MS
from service.assembly import assemble
from service.core.settings import Settings
from service.features.operate.diagnostics import diagnose
from tests.builders import approve, finish, make_pending
from tests.service.damages import KEYS
from tests.service.edge.web.sites import settings_for, visit
from tests.service.worlds import World
from workers.retention import forget_old


def cut(store: "Redis", key: str) -> object:
    return store.rpop(key)


def delete(store: "Redis", key: str) -> object:
    return store.delete(key)


def add(store: "Redis", key: str) -> object:
    last: Any = store.lindex(key, -1)
    return store.rpush(key, last)


def swap(store: "Redis", key: str) -> object:
    first: Any = store.lindex(key, 0)
    return store.lset(key, -1, first)


def damage(store: "Redis", key: str) -> object:
    return store.lset(key, -1, "{")


DAMAGES: list[tuple[Callable[["Redis", str], object], str]] = [
    (cut, "3 events, and 2 are there. 1 is missing"),
    (delete, "3 events, and 0 are there. 3 are missing"),
    (add, "names 3, and 4 are there"),
    (swap, "its last event, 3, is not the one"),
    (damage, "its last event, 3, is not the one"),
]


@pytest.mark.parametrize(("harm", "says"), DAMAGES, ids=["cut", "deleted", "added to", "swapped", "damaged"])
async def test_a_trail_that_was_harmed_is_noticed_by_api_and_doctor(
    world: World, clean_store_url: str, harm: Callable[["Redis", str], object], says: str
) -> None:
    record, whole = [await approve(world.wiring, await make_pending(world.wiring)) for _ in range(2)]
    with Redis.from_url(clean_store_url) as store:
        harm(store, KEYS.trail(record.run.id))
    async with world.client("demo") as demo:
        page = (await demo.get(f"/api/v1/runs/{record.run.id}/events")).json()
        assert says in page["fault"]
        assert page["head"]["seq"] == 3
        fine = (await demo.get(f"/api/v1/runs/{whole.run.id}/events?limit=1")).json()
        assert (fine["fault"], fine["head"]["seq"], len(fine["events"])) == (None, 3, 1)
    (found,) = [one async for one in diagnose(world.wiring) if one.part == "trails"]
    assert not found.ok
    assert found.message == f"1 of 2 are damaged. {record.run.id}: {page['fault']}"


async def test_truncated_trail_is_reported_on_its_pages(
    clean_store_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with visit(settings_for(clean_store_url, tmp_path_factory.mktemp("home"))) as anna:
        record = await approve(anna.wiring, await make_pending(anna.wiring))
        places = (f"/runs/{record.run.id}", f"/items/{record.id}/i1")
        for place in places:
            assert "The trail was cut" not in await anna.read(place)
        with Redis.from_url(clean_store_url) as store:
            cut(store, KEYS.trail(record.run.id))
        for place in places:
            assert "The trail was cut" in await anna.read(place)


async def test_a_damaged_event_hides_none_of_the_others(
    clean_store_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with visit(settings_for(clean_store_url, tmp_path_factory.mktemp("home"))) as anna:
        record = await approve(anna.wiring, await make_pending(anna.wiring))
        with Redis.from_url(clean_store_url) as store:
            store.lset(KEYS.trail(record.run.id), 1, "{")
        page = await anna.read(f"/runs/{record.run.id}")
        assert "This event is damaged in the store" in page
        kinds = [one.type for one in await anna.wiring.runs.trail(record.run.id)]
        assert kinds == ["run_paused", "unreadable", "decided"]


async def test_the_trail_of_a_forgotten_run_is_still_compared(
    clean_store_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = settings_for(clean_store_url, tmp_path_factory.mktemp("home"))
    async with assemble(Settings.model_validate({**settings.model_dump(), "keep_runs_days": 2})) as wiring:
        ended = await finish(wiring, await approve(wiring, await make_pending(wiring)))
        await forget_old(wiring, await wiring.schedule.now_ms() + 3 * DAY_MS)
        assert (await wiring.trails.find_end(ended.run.id)).fault == ""
        with Redis.from_url(clean_store_url) as store:
            cut(store, KEYS.trail(ended.run.id))
        assert "The trail was cut" in (await wiring.trails.find_end(ended.run.id)).fault
