"""A store of the queue that is away: decisions are taken, and everything that shows the state says so."""

import socket

import pytest

from service.core.operations.queue_store import QueueStore
from service.core.operations.runs import is_demo_served
from service.core.settings import Settings
from service.core.wiring import Wiring
from service.features.operate.diagnostics import Finding, diagnose
from service.features.operate.metrics import Readings
from tests.builders import approve, make_pending
from tests.service.worlds import World


@pytest.fixture
def settings(clean_store_url: str, closed_store_url: str) -> Settings:
    return Settings(redis_url=clean_store_url, queue_url=closed_store_url)


async def find_workers(wiring: Wiring) -> Finding:
    return next(finding for finding in [finding async for finding in diagnose(wiring)] if finding.part == "workers")


async def test_a_missing_store_of_the_queue_is_named(world: World) -> None:
    await approve(world.wiring, await make_pending(world.wiring))
    finding = await find_workers(world.wiring)
    assert not finding.ok
    assert finding.message.startswith("They get no jobs. The store at unix://")
    assert finding.message.endswith("there is no such socket. Start it, or correct SAYSO_QUEUE_URL.")
    async with world.client() as client:
        answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["queue"]) == (200, "away"), "people can decide meanwhile"
    assert (await Readings(world.wiring, ()).find()).workers == 0
    assert not await is_demo_served(world.wiring), "the first page opens all the same"


async def test_a_store_of_the_queue_that_hangs_is_named_in_time(world: World, clean_store_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://:secret@127.0.0.1:{silent.getsockname()[1]}/0"
        world.wiring.settings = world.wiring.settings.model_copy(update={"queue_url": url})
        fault = await QueueStore(world.wiring).find_fault()
    assert (
        fault
        == f"The store at {url.replace(':secret@', '')} takes longer than 1 s. Start it, or correct SAYSO_QUEUE_URL."
    )
    world.wiring.settings = world.wiring.settings.model_copy(update={"queue_url": clean_store_url})
    assert await QueueStore(world.wiring).find_fault() == ""
