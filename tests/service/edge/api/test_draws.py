"""What agents see of draws and drills over the API: nothing."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from service.core.settings import Settings
from service.features.control.drills import plant_drill
from tests.builders import make_pending
from tests.service.worlds import World

POLICY = """
version: 1
default: request_approval
rules:
  - {id: payouts, tool: payout, action: request_approval, terms: {sample: {before: 1}}}
"""
DRILLS = """
drills:
  - {id: fake, agent: demo, requested_by: demo, tool: refund, args: {amount: 480}, timeout_s: 60,
     signs: [Nobody knows it.]}
"""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy, drills = tmp_path / "policy.yaml", tmp_path / "drills.yaml"
    policy.write_text(POLICY)
    drills.write_text(DRILLS)
    return Settings(redis_url=clean_store_url, policy=policy, drills=drills)


async def test_agent_sees_neither_quorum_nor_draw(world: World) -> None:
    async with world.client("demo") as demo, world.client("root") as root:
        call = {"tool": "payout", "args": {"customer": "D-1"}, "definition": {}}
        asked = (await demo.post("/api/v1/suspensions", json={"mode": "poll", "calls": [call]})).json()
        place = f"/api/v1/suspensions/{asked['id']}"
        body = {"action": "approve", "digest": asked["items"][0]["digest"]}
        assert (await root.post(f"{place}/items/i1/decision", json=body)).status_code == 200
        listed = (await demo.get("/api/v1/suspensions")).json()["suspensions"][0]
        for found in (asked, (await demo.get(place)).json(), listed):
            (item,) = found["items"]
            assert (item["terms"]["quorum"], item["drawn"], item["decisions"], item["outcome"]) == (None, "", [], None)
        seen = (await root.get(place)).json()["items"][0]
        assert seen["terms"]["quorum"]["approve"] == 2
        assert len(seen["drawn"]) == 64
        events = f"/api/v1/runs/{asked['run']['id']}/events"
        mine, all_ = (await demo.get(events)).json(), (await root.get(events)).json()
        assert seen["drawn"] not in repr(mine)
        assert "decision_recorded" not in [one["type"] for one in mine["events"]]
        assert "decision_recorded" in [one["type"] for one in all_["events"]]


async def test_drill_hides_no_suspension_of_its_requester_in_a_long_inbox(world: World) -> None:
    """The drill is due first, so it stands on the first page of the agent."""
    await plant_drill(world.wiring, "fake", "root", "root")
    wanted = [(await make_pending(world.wiring)).id for _ in range(2)]
    await asyncio.gather(*(make_pending(world.wiring, owner="other") for _ in range(500)))
    found: list[str] = []
    skip: int | None = 0
    async with world.client("demo") as demo:
        while skip is not None:
            page = (await demo.get(f"/api/v1/suspensions?limit=1&skip={skip}")).json()
            found += [one["id"] for one in page["suspensions"]]
            skip = page["next_skip"]
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize("method", ["list", "show", "run", "runs", "events", "stream", "cancel", "redeem"])
async def test_agent_key_of_the_named_requester_never_reaches_a_drill(world: World, method: str) -> None:
    record = await plant_drill(world.wiring, "fake", "root", "root")
    async with world.client("demo") as demo, world.client("root") as root:
        run, place = f"/api/v1/runs/{record.run.id}", f"/api/v1/suspensions/{record.id}"
        assert (await root.get(place)).status_code == 200
        if method in ("list", "runs"):
            path = "/api/v1/suspensions" if method == "list" else "/api/v1/runs"
            found: dict[str, Any] = (await demo.get(path)).json()
            assert found["suspensions" if method == "list" else "runs"] == []
            return
        attempts = {
            "show": demo.get(place),
            "run": demo.get(run),
            "events": demo.get(f"{run}/events"),
            "stream": demo.get(f"{run}/events/stream"),
            "cancel": demo.post(f"{run}/cancel", json={}),
            "redeem": demo.post(f"{place}/items/i1/redeem", json={}, headers={"Idempotency-Key": "k"}),
        }
        for name, attempt in attempts.items():
            if name == method:
                assert (await attempt).status_code == 404
            else:
                attempt.close()
        assert (await root.get(place)).json()["status"] == "pending"
