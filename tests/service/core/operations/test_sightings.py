"""A fallback approves only an item that a permitted reviewer opened, in a page or over the API."""

from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import Fallback, FallbackAction, RuleTerms
from service.core.settings import Settings
from tests.builders import ask, make_pending
from tests.service.edge.web.sites import Visit, settings_for, visit
from tests.service.worlds import World

UNATTENDED = RuleTerms(unattended_approval=True, fallback=Fallback(action=FallbackAction.APPROVE))


async def seen_by(world: World | Visit, record: SuspensionRecord) -> str | None:
    found = (await world.wiring.desk.suspensions.read(record.id)).record
    assert found is not None
    by = found.items[0].seen_by
    return by.id if by is not None else None


async def open_item(client: AsyncClient, record: SuspensionRecord, **headers: str) -> dict[str, Any]:
    answer = await client.get(f"/api/v1/suspensions/{record.id}", headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_detail_fetched_by_a_reviewer_is_seen_once(world: World) -> None:
    record = await make_pending(world.wiring, ask(terms=UNATTENDED))
    async with world.client("anna") as anna, world.client("root") as root:
        first = await open_item(anna, record)
        again = await open_item(root, record)
    assert await seen_by(world, record) == "anna"
    assert first["items"][0]["seen_by"] == {"id": "anna", "kind": "human", "channel": "api"}
    assert again["version"] == first["version"] == record.version + 1
    trail = await world.wiring.runs.trail(record.run.id)
    assert [entry.type for entry in trail].count("item_seen") == 1


async def test_the_agents_own_look_is_no_sighting(world: World) -> None:
    record = await make_pending(world.wiring, ask(terms=UNATTENDED))
    async with world.client("demo") as demo:
        await open_item(demo, record)
    assert await seen_by(world, record) is None


async def test_a_list_is_no_sighting_and_other_items_are_not_written(world: World) -> None:
    record = await make_pending(world.wiring, ask(terms=UNATTENDED))
    plain = await make_pending(world.wiring, ask())
    async with world.client("anna") as anna:
        await anna.get("/api/v1/suspensions")
        assert (await open_item(anna, plain))["version"] == plain.version
    assert await seen_by(world, record) is None


@pytest.fixture
def pages(clean_store_url: str, tmp_path: Path) -> Settings:
    """Settings of a site of its own."""
    return settings_for(clean_store_url, tmp_path)


async def test_an_opened_page_is_seen_and_a_guess_of_the_browser_is_not(pages: Settings) -> None:
    async with visit(pages) as anna:
        record = await make_pending(anna.wiring, ask(terms=UNATTENDED))
        place = f"/items/{record.id}/i1"
        await anna.client.head(place)
        await anna.client.get(place, headers={"Sec-Purpose": "prefetch"})
        await anna.client.get(place, headers={"X-Sayso-Live": "1"})
        await anna.read("/")
        assert await seen_by(anna, record) is None
        page = await anna.read(place)
        assert await seen_by(anna, record) == "anna"
        assert "Runs by itself at <time" in page


async def test_who_may_not_decide_does_not_make_it_seen(pages: Settings) -> None:
    async with visit(pages) as anna:
        mine = await make_pending(anna.wiring, ask(terms=UNATTENDED), owner="anna")
        bens = UNATTENDED.model_copy(update={"reviewers": ("ben",)})
        theirs = await make_pending(anna.wiring, ask(terms=bens))
        for record in (mine, theirs):
            page = await anna.read(f"/items/{record.id}/i1")
            assert await seen_by(anna, record) is None
            assert "unless a reviewer has opened it or received its card" in page
