"""Reports: what a fallback decided without notifying anybody, and how people decide."""

from typing import Any

from sayso.core.records.terms import Fallback, FallbackAction, RuleTerms
from tests.builders import approve, ask, make_pending
from tests.service.worlds import World
from workers.outbox import Counting

HEADLESS = RuleTerms(timeout_s=0, fallback=Fallback(action=FallbackAction.DENY))


async def report(world: World, **query: Any) -> dict[str, Any]:
    async with world.client("anna") as anna:
        response = await anna.get("/api/v1/reports/headless", params=query)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def test_report_lists_only_items_without_a_chance_to_decide(world: World) -> None:
    record = await make_pending(world.wiring, ask(terms=HEADLESS))
    await make_pending(world.wiring, late_ms=600_000)
    await approve(world.wiring, await make_pending(world.wiring))
    found = await report(world)
    (item,) = found["items"]
    assert (item["suspension_id"], item["tool"], item["verdict"], item["rule_id"]) == (
        record.id,
        "refund",
        "denied",
        "refunds",
    )
    assert found["next_skip"] is None
    assert (await report(world, to="2020-01-01T00:00:00Z"))["items"] == []
    assert (await report(world, **{"from": "2020-01-01T00:00:00Z"}))["items"] == [item]


async def test_report_has_pages(world: World) -> None:
    records = [await make_pending(world.wiring, ask(terms=HEADLESS)) for _ in range(3)]
    first = await report(world, limit=2)
    rest = await report(world, limit=2, skip=first["next_skip"])
    listed = [one["suspension_id"] for one in (*first["items"], *rest["items"])]
    assert sorted(listed) == sorted(one.id for one in records)
    assert rest["next_skip"] is None


async def test_report_is_for_people(world: World) -> None:
    async with world.client("demo") as demo:
        assert (await demo.get("/api/v1/reports/headless")).status_code == 403


async def insights(world: World, who: str, **query: str) -> dict[str, Any]:
    async with world.client(who) as client:
        response = await client.get("/api/v1/reports/insights", params=query)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def test_insights_count_what_was_decided(world: World) -> None:
    for by in ("anna", "anna", "ben"):
        await approve(world.wiring, await make_pending(world.wiring, late_ms=4_000), by)
    await make_pending(world.wiring, ask(terms=HEADLESS))
    await Counting(world.wiring).count_waiting()
    found = await insights(world, "anna", range="24h")
    (tool,) = found["tools"]
    assert (tool["tool"], tool["asked"], tool["decided"], tool["fallback"], tool["approve_rate"]) == (
        "refund",
        4,
        3,
        1,
        1,
    )
    assert 3_600 <= tool["p50_ms"] <= 6_000
    assert [one["name"] for one in found["people"]] == ["anna"]
    assert [one["name"] for one in (await insights(world, "root"))["people"]] == ["anna", "ben"]
    assert len(found["points"]) == 24
    (rule,) = found["rules"]
    assert (rule["asked"], rule["fallback"], rule["decisions"], rule["measured"]) == (4, 1, 3, 0)
    assert rule["sentence"].endswith(": 4 asks, time unknown, 0 denials")


async def test_insights_need_a_known_range_and_a_person(world: World) -> None:
    async with world.client("anna") as anna:
        assert (await anna.get("/api/v1/reports/insights", params={"range": "1y"})).status_code in (400, 422)
    async with world.client("demo") as demo:
        assert (await demo.get("/api/v1/reports/insights")).status_code == 403
