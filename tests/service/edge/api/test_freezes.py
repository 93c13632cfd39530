"""Freezing and unfreezing over HTTP, including deadlines that the clock jumped over."""

from urllib.parse import quote

from httpx import AsyncClient

from sayso.core.canonical_json import JsonObject
from tests.builders import person
from tests.service.worlds import World


async def test_freeze_is_created_listed_and_unfrozen(world: World) -> None:
    async with world.client("root") as root:
        freeze = (
            await root.post("/api/v1/freezes", json={"scope": "tool:refund", "reason": "odd", "confirm": True})
        ).json()
        assert (freeze["scope"], freeze["by"], freeze["jumped_to"]) == ("tool:refund", "root", None)
        assert (await root.get("/api/v1/freezes")).json() == {"freezes": [freeze]}
        refused = await root.post(f"/api/v1/freezes/{freeze['id']}/unfreeze", json={"deadlines": "pass"})
        assert (refused.status_code, refused.json()["type"]) == (409, "/problems/conflict")
        unfrozen = await root.post(f"/api/v1/freezes/{freeze['id']}/unfreeze")
        assert unfrozen.json()["unfrozen_by"] == "root"
        assert (await root.get("/api/v1/freezes")).json() == {"freezes": []}


async def test_unfreeze_takes_the_scope_that_was_frozen(world: World) -> None:
    async with world.client("root") as root:
        for scope in ("all", "agent:demo", "tool:a/b c"):
            made = await root.post("/api/v1/freezes", json={"scope": scope, "confirm": True})
            assert made.status_code == 201
            path = f"/api/v1/freezes/{quote(scope, safe='')}/unfreeze"
            unfrozen = await root.post(path)
            assert (unfrozen.status_code, unfrozen.json()["id"]) == (200, made.json()["id"])
            again = await root.post(path)
            assert (again.status_code, again.json()["type"]) == (404, "/problems/not-found")
            assert "Nothing is frozen." in again.json()["detail"]
        await root.post("/api/v1/freezes", json={"scope": "agent:demo"})
        missed = await root.post("/api/v1/freezes/agent:dmeo/unfreeze")
        assert (missed.status_code, "Frozen at the moment: agent:demo." in missed.json()["detail"]) == (404, True)
        assert len((await root.get("/api/v1/freezes")).json()["freezes"]) == 1


async def test_freeze_pattern_is_refused(world: World) -> None:
    async with world.client("root") as root:
        refused = await root.post("/api/v1/freezes", json={"scope": "tool:bank_*"})
        assert (refused.status_code, "not a pattern" in refused.json()["detail"]) == (422, True)
        assert (await root.get("/api/v1/freezes")).json() == {"freezes": []}


async def test_time_is_frozen_by_clocks_and_unfrozen_by_admins(world: World) -> None:
    async with world.client("root") as root:
        assert (await root.post("/api/v1/freezes", json={"scope": "time"})).status_code == 422
        now_ms = await world.wiring.schedule.now_ms()
        await world.wiring.freezes.doubt_time(now_ms - 3_600_000, now_ms)
        (found,) = (await root.get("/api/v1/freezes")).json()["freezes"]
        assert (found["scope"], found["by"]) == ("time", "clock")
        assert found["at"] < found["jumped_to"]
        unfrozen = await root.post(f"/api/v1/freezes/{found['id']}/unfreeze", json={"deadlines": "pass"})
        assert unfrozen.status_code == 200
    (kept,) = await world.wiring.freezes.known(fresh=True)
    assert (kept.deadlines, kept.unfrozen_by) == ("pass", person("root").id)


async def test_unknown_name_is_refused_with_similar_names(world: World) -> None:
    """A freeze of the misspelt "payot" once succeeded while payout kept running."""
    call = {"tool": "payout", "args": {}, "definition": {}}
    async with world.client("demo") as demo, world.client("root") as root:
        assert (await demo.post("/api/v1/suspensions", json={"mode": "poll", "calls": [call]})).status_code == 201
        refused = await root.post("/api/v1/freezes", json={"scope": "tool:payot"})
        found = refused.json()
        assert (refused.status_code, found["type"], found["near"]) == (422, "/problems/unknown-name", ["payout", "pay"])
        assert "No tool 'payot' was seen here" in found["detail"]
        assert (await root.get("/api/v1/freezes")).json() == {"freezes": []}
        confirmed = await root.post("/api/v1/freezes", json={"scope": "tool:payot", "confirm": True})
        assert (confirmed.status_code, confirmed.json()["scope"]) == (201, "tool:payot")
        assert (await root.post("/api/v1/freezes", json={"scope": "tool:payout"})).status_code == 201
        assert (await root.post("/api/v1/freezes", json={"scope": "tool:payot", "confirm": "yes"})).status_code == 422


async def test_agents_with_a_key_are_known_names(world: World) -> None:
    async with world.client("root") as root:
        refused = await root.post("/api/v1/freezes", json={"scope": "agent:dmeo"})
        assert (refused.status_code, refused.json()["near"]) == (422, ["demo"])
        assert (await root.post("/api/v1/freezes", json={"scope": "agent:demo"})).status_code == 201
        assert (await root.post("/api/v1/freezes", json={"scope": "all"})).status_code == 201


async def test_items_and_doctor_show_the_freeze_that_holds_them(world: World) -> None:
    calls: list[JsonObject] = [{"tool": tool, "args": {}, "definition": {}} for tool in ("payout", "refund")]
    async with world.client("demo") as demo, world.client("root") as root:
        made = (await demo.post("/api/v1/suspensions", json={"mode": "poll", "calls": calls})).json()
        assert [one["freeze"] for one in made["items"]] == [None, None]
        frozen = {"scope": "tool:payout", "reason": "Wrong amounts"}
        freeze = (await root.post("/api/v1/freezes", json=frozen)).json()
        held = {**frozen, "id": freeze["id"], "by": "root", "at": freeze["at"]}
        path = f"/api/v1/suspensions/{made['id']}"
        listed = (await root.get("/api/v1/suspensions")).json()["suspensions"]
        later = (await demo.post("/api/v1/suspensions", json={"mode": "poll", "calls": calls})).json()
        for found in ((await demo.get(path)).json(), (await root.get(path)).json(), *listed, later):
            assert [one["freeze"] for one in found["items"]] == [held, None]
        finding = await _find_freezes(root)
        assert (finding["ok"], "sayso unfreeze" in str(finding["todo"])) == (False, True)
        assert all(part in str(finding["message"]) for part in ("tool:payout by root since", "Wrong amounts"))
        await root.post("/api/v1/freezes/tool:payout/unfreeze")
        assert (await root.get(path)).json()["items"][0]["freeze"] is None
        assert (await _find_freezes(root))["ok"] is True


async def _find_freezes(root: AsyncClient) -> JsonObject:
    found = (await root.get("/api/v1/diagnostics")).json()["findings"]
    return next(one for one in found if one["part"] == "freezes")
