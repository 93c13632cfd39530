"""Freezing over HTTP: an admin freezes and lifts, and says what becomes of deadlines that the clock went past."""

from tests.builders import person
from tests.service.worlds import World


async def test_a_freeze_is_made_listed_and_lifted(world: World) -> None:
    async with world.client("root") as root:
        made = (
            await root.post("/api/v1/freezes", json={"scope": "tool:refund", "reason": "odd", "confirm": True})
        ).json()
        assert (made["scope"], made["by"], made["jumped_to"]) == ("tool:refund", "root", None)
        assert (await root.get("/api/v1/freezes")).json() == {"freezes": [made]}
        refused = await root.post(f"/api/v1/freezes/{made['id']}/lift", json={"deadlines": "pass"})
        assert (refused.status_code, refused.json()["type"]) == (409, "/problems/conflict")
        unfrozen = await root.post(f"/api/v1/freezes/{made['id']}/lift")
        assert unfrozen.json()["unfrozen_by"] == "root"
        assert (await root.get("/api/v1/freezes")).json() == {"freezes": []}


async def test_a_pattern_that_would_stop_nothing_is_refused(world: World) -> None:
    async with world.client("root") as root:
        refused = await root.post("/api/v1/freezes", json={"scope": "tool:bank_*"})
        assert (refused.status_code, "not a pattern" in refused.json()["detail"]) == (422, True)
        assert (await root.get("/api/v1/freezes")).json() == {"freezes": []}


async def test_only_clocks_freeze_time_and_an_admin_lifts_that(world: World) -> None:
    async with world.client("root") as root:
        assert (await root.post("/api/v1/freezes", json={"scope": "time"})).status_code == 422
        now_ms = await world.wiring.schedule.now_ms()
        await world.wiring.freezes.doubt_time(now_ms - 3_600_000, now_ms)
        (told,) = (await root.get("/api/v1/freezes")).json()["freezes"]
        assert (told["scope"], told["by"]) == ("time", "clock")
        assert told["at"] < told["jumped_to"]
        unfrozen = await root.post(f"/api/v1/freezes/{told['id']}/lift", json={"deadlines": "pass"})
        assert unfrozen.status_code == 200
    (kept,) = await world.wiring.freezes.known(fresh=True)
    assert (kept.deadlines, kept.unfrozen_by) == ("pass", person("root").id)


async def test_a_name_that_nobody_knows_is_refused_with_the_near_ones(world: World) -> None:
    """Today's slip: "payot" was frozen without a word, while payout ran on."""
    call = {"tool": "payout", "args": {}, "definition": {}}
    async with world.client("demo") as demo, world.client("root") as root:
        assert (await demo.post("/api/v1/suspensions", json={"mode": "poll", "calls": [call]})).status_code == 201
        refused = await root.post("/api/v1/freezes", json={"scope": "tool:payot"})
        told = refused.json()
        assert (refused.status_code, told["type"], told["near"]) == (422, "/problems/unknown-name", ["payout", "pay"])
        assert "No tool 'payot' was seen here" in told["detail"]
        assert (await root.get("/api/v1/freezes")).json() == {"freezes": []}
        confirmed = await root.post("/api/v1/freezes", json={"scope": "tool:payot", "confirm": True})
        assert (confirmed.status_code, confirmed.json()["scope"]) == (201, "tool:payot")
        assert (await root.post("/api/v1/freezes", json={"scope": "tool:payout"})).status_code == 201
        assert (await root.post("/api/v1/freezes", json={"scope": "tool:payot", "confirm": "yes"})).status_code == 422


async def test_agents_that_hold_a_key_are_known_by_name(world: World) -> None:
    async with world.client("root") as root:
        refused = await root.post("/api/v1/freezes", json={"scope": "agent:dmeo"})
        assert (refused.status_code, refused.json()["near"]) == (422, ["demo"])
        assert (await root.post("/api/v1/freezes", json={"scope": "agent:demo"})).status_code == 201
        assert (await root.post("/api/v1/freezes", json={"scope": "all"})).status_code == 201
