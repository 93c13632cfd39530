"""Long polls and streams of one key are counted, and refused beyond its limit."""

import asyncio
from pathlib import Path

import pytest

from service.core.settings import Settings
from tests.builders import approve, make_pending
from tests.service.edge.api.aap.clients import find, make_instance, make_provisioner
from tests.service.edge.web.sites import let_in
from tests.service.worlds import POLICY, World
from tests.waits import until


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=policy, waits_per_key=2)


async def wait_until_waiting(world: World, count: int) -> None:
    async def look() -> bool:
        return sum(map(len, world.wiring.watch._waiters.values())) == count

    await until(look)


async def test_wait_over_the_limit_of_a_key_is_429(world: World) -> None:
    record = await make_pending(world.wiring)
    place = f"/api/v1/suspensions/{record.id}"
    async with world.client("demo") as client, world.client("anna") as reviewer:
        poll = asyncio.create_task(client.get(f"{place}?wait=60s"))
        stream = asyncio.create_task(client.get(f"/api/v1/runs/{record.run.id}/events/stream"))
        await wait_until_waiting(world, 2)
        for path in (f"{place}?wait=60s", f"/api/v1/runs/{record.run.id}/events/stream"):
            refused = await client.get(path)
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
            assert refused.json()["type"] == "/problems/too-many-requests"
            assert "SAYSO_WAITS_PER_KEY" in refused.json()["detail"]
        assert (await client.get(place)).status_code == 200, "without waiting it is read as ever"
        other = asyncio.create_task(reviewer.get(f"{place}?wait=60s"))
        await wait_until_waiting(world, 3)
        await approve(world.wiring, record)
        assert [(await one).status_code for one in (poll, other)] == [200, 200]
        again = await client.get(f"{place}?wait=60s")
        assert again.json()["status"] == "decided", "a place is free again"
        stream.cancel()


async def test_wait_over_the_limit_of_an_instance_is_rate_limited(world: World) -> None:
    async with make_instance(world, await make_provisioner(world.wiring)) as made:
        request_id = await made.waiting()
        polls = [asyncio.create_task(made.show(request_id, "30s")) for _ in range(2)]
        await wait_until_waiting(world, 2)
        refused = await made.client.get(f"/requests/{request_id}", params={"wait": "30s"})
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
        assert (refused.json()["error"]["type"], refused.json()["error"]["code"]) == ("rate_limit", "rate_limited")
        await approve(world.wiring, await find(world.wiring, request_id))
        assert {(await poll)["status"] for poll in polls} == {"approved"}


async def test_stream_over_the_limit_of_a_reviewer_is_refused(world: World, settings: Settings) -> None:
    cookie = {"Cookie": f"sayso_session_8321={await let_in(settings, 'bob')}"}
    async with world.client() as client:
        pages = [asyncio.create_task(client.get("/live", headers=cookie)) for _ in range(2)]
        await wait_until_waiting(world, 4)  # each stream waits for two topics
        refused = await client.get("/live", headers=cookie)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
        for page in pages:
            page.cancel()
