"""The history over the API: the page's search, its pages and its files."""

import csv
import io
from typing import Any

from service.core.wiring import Wiring
from tests.builders import approve, ask, make_pending
from tests.service.worlds import World


async def read(world: World, who: str = "anna", **query: Any) -> dict[str, Any]:
    async with world.client(who) as client:
        response = await client.get("/api/v1/history", params=query)
    assert response.status_code == 200, response.text
    page: dict[str, Any] = response.json()
    return page


async def make_decided(wiring: Wiring, count: int) -> list[str]:
    """Return the ids of decided suspensions, the latest first."""
    return [(await approve(wiring, await make_pending(wiring))).id for _ in range(count)][::-1]


async def test_history_lists_what_was_decided_by_whom(world: World) -> None:
    await make_pending(world.wiring)
    record = await approve(world.wiring, await make_pending(world.wiring), "ben")
    page = await read(world)
    (item,) = page["items"]
    assert (item["suspension_id"], item["decided_by"], item["verdict"]) == (record.id, "ben", "approved")
    assert (item["tool"], item["fallback"], item["edited"]) == ("refund", False, False)
    assert page["next_cursor"] is None


async def test_pages_hold_each_item_once(world: World) -> None:
    """Decisions made meanwhile move no item to another page."""
    ids = await make_decided(world.wiring, 5)
    first = await read(world, limit=2)
    await make_decided(world.wiring, 2)
    second = await read(world, limit=2, cursor=first["next_cursor"])
    third = await read(world, limit=2, cursor=second["next_cursor"])
    pages = [[item["suspension_id"] for item in page["items"]] for page in (first, second, third)]
    assert (pages, third["next_cursor"]) == ([ids[:2], ids[2:4], ids[4:]], None)


async def test_history_is_searched_like_the_page(world: World) -> None:
    await make_decided(world.wiring, 1)
    for query, count in (
        ({"q": "tool:refund"}, 1),
        ({"q": "tool:payout"}, 0),
        ({"verdict": "approved"}, 1),
        ({"verdict": "denied"}, 0),
        ({"by": "ANNA"}, 1),
        ({"edited": "on"}, 0),
    ):
        assert len((await read(world, **query))["items"]) == count, query


async def test_unknown_verdict_and_filter_are_refused(world: World) -> None:
    async with world.client("anna") as anna:
        verdict = await anna.get("/api/v1/history", params={"verdict": "perhaps"})
        search = await anna.get("/api/v1/history/export", params={"q": "is:odd"})
    assert (verdict.status_code, search.status_code) == (422, 422)
    assert "Give one of approved, answered, denied" in verdict.json()["detail"]
    assert "is:odd" in search.json()["detail"]


async def test_export_is_a_safe_csv_with_the_fields_of_json(world: World) -> None:
    record = await make_pending(world.wiring, ask(order="=1+1", note="a\u202e;=2"))
    await approve(world.wiring, record)
    async with world.client("anna") as anna:
        text = (await anna.get("/api/v1/history/export", params={"format": "csv"})).text
        exact = (await anna.get("/api/v1/history/export")).json()
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    (item,) = exact["items"]
    assert [*row] == [*item]
    assert item["args"]["order"] == "=1+1"
    assert "\u202e" not in row["args"]
    assert ";=2" not in row["args"]


async def test_history_is_for_people(world: World) -> None:
    async with world.client("demo") as demo:
        statuses = [(await demo.get(path)).status_code for path in ("/api/v1/history", "/api/v1/history/export")]
    assert statuses == [403, 403]
