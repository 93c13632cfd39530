"""Freezing over HTTP: an admin freezes and lifts, and says what becomes of deadlines that the clock went past."""

from tests.builders import person
from tests.service.worlds import World


async def test_a_freeze_is_made_listed_and_lifted(world: World) -> None:
    async with world.client("root") as root:
        made = (await root.post("/api/v1/freezes", json={"scope": "tool:refund", "reason": "odd"})).json()
        assert (made["scope"], made["by"], made["jumped_to"]) == ("tool:refund", "root", None)
        assert (await root.get("/api/v1/freezes")).json() == {"freezes": [made]}
        refused = await root.post(f"/api/v1/freezes/{made['id']}/lift", json={"deadlines": "pass"})
        assert (refused.status_code, refused.json()["type"]) == (409, "/problems/conflict")
        lifted = await root.post(f"/api/v1/freezes/{made['id']}/lift")
        assert lifted.json()["lifted_by"] == "root"
        assert (await root.get("/api/v1/freezes")).json() == {"freezes": []}


async def test_a_pattern_that_would_stop_nothing_is_refused(world: World) -> None:
    async with world.client("root") as root:
        refused = await root.post("/api/v1/freezes", json={"scope": "tool:bank_*"})
        assert (refused.status_code, "not a pattern" in refused.json()["detail"]) == (422, True)
        assert (await root.get("/api/v1/freezes")).json() == {"freezes": []}


async def test_only_clocks_freeze_time_and_an_admin_lifts_that(world: World) -> None:
    async with world.client("root") as root:
        assert (await root.post("/api/v1/freezes", json={"scope": "time"})).status_code == 422
        now_ms = await world.wiring.agenda.now_ms()
        await world.wiring.freezes.doubt_time("default", now_ms - 3_600_000, now_ms)
        (told,) = (await root.get("/api/v1/freezes")).json()["freezes"]
        assert (told["scope"], told["by"]) == ("time", "clock")
        assert told["at"] < told["jumped_to"]
        lifted = await root.post(f"/api/v1/freezes/{told['id']}/lift", json={"deadlines": "pass"})
        assert lifted.status_code == 200
    (kept,) = await world.wiring.freezes.known("default", fresh=True)
    assert (kept.deadlines, kept.lifted_by) == ("pass", person("root").id)
