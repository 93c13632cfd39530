"""Erasing the contents of a run over HTTP, and reading what is left."""

from service.core.store.runs.external_events import ExternalEvent, ExternalEvents
from tests.builders import approve, finish, make_pending
from tests.service.worlds import World

REASON = {"reason": "Request of the customer"}


async def test_erased_run_shows_who_erased_it_and_what_was_decided(world: World) -> None:
    ended = await finish(
        world.wiring, await approve(world.wiring, await make_pending(world.wiring)), result={"id": "r"}
    )
    path = f"/api/v1/runs/{ended.run.id}"
    async with world.client("root") as root, world.client("demo") as demo:
        assert (await demo.get(path)).json()["erasure"] is None
        erasure = (await root.post(f"{path}/erase", json=REASON)).json()
        assert (erasure["by"]["id"], erasure["reason"], erasure["seq"]) == ("root", REASON["reason"], 7)
        assert (await root.post(f"{path}/erase", json={"reason": "again"})).json() == erasure
        run = (await demo.get(path)).json()
        assert (run["erasure"], run["result"], run["claimed_title"]) == (erasure, None, "")
        found = (await demo.get(f"/api/v1/suspensions/{ended.id}")).json()
        (item,) = found["items"]
        assert (found["erasure"], item["tool"]["args"], item["outcome"]["verdict"]) == (erasure, {}, "approved")
        page = (await demo.get(f"{path}/events")).json()
    assert page["fault"] is None
    assert [one["seq"] for one in page["events"] if one["erased_by"] == 7]
    assert not any("args" in one["data"] for one in page["events"])


async def test_erasure_needs_a_reason_and_an_ended_run(world: World) -> None:
    waiting = await make_pending(world.wiring)
    path = f"/api/v1/runs/{waiting.run.id}/erase"
    async with world.client("root") as root:
        assert (await root.post(path, json=REASON)).status_code == 409
        for body in ({}, {"reason": ""}, {"reason": "  "}, {"reason": "x" * 2001}):
            assert (await root.post(path, json=body)).status_code == 422, body
        assert (await root.post("/api/v1/runs/run_none/erase", json=REASON)).status_code == 404


async def test_events_reported_again_after_an_erasure_stay_erased(world: World) -> None:
    wiring = world.wiring
    pending = await make_pending(wiring)
    event = ExternalEvent(1, None, {"type": "note"})
    await wiring.part(ExternalEvents).add(pending.run.id, "agent", "sayso", [event])
    ended = await finish(wiring, await approve(wiring, pending))
    async with world.client("root") as root:
        assert (await root.post(f"/api/v1/runs/{ended.run.id}/erase", json=REASON)).status_code == 200
    await wiring.part(ExternalEvents).add(pending.run.id, "agent", "sayso", [event])
    assert await wiring.part(ExternalEvents).read_all(pending.run.id) == []
