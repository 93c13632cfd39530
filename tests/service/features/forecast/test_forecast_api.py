"""The forecast of a suspension: people see who decides, agents only when; the page of the run says the same."""

from typing import Any

import pytest

from sayso.core.clock import HOUR_MS
from service.core.settings import Settings
from service.core.wiring import Wiring
from service.features.forecast.waits import ALL_TOOLS, Waits
from service.features.insights.facts import Facts, ItemFact, PersonFact, Step
from service.features.insights.store import Counters
from tests.service.edge.api.test_execution import CALL, ask, decide
from tests.service.edge.web.sites import visit
from tests.service.edge.web.stories import asked, make_ask
from tests.service.worlds import World
from workers.outbox import Counting


async def remember(wiring: Wiring, tool: str, unit_ms: int) -> None:
    """Let twenty calls of a tool have waited one unit, two units and so on for anna."""
    now_ms = await wiring.schedule.now_ms()
    anna = PersonFact("anna", "dec_1", approved=True)
    await wiring.part(Waits).add(
        Facts(f"sus_{units} 2", now_ms, items=(ItemFact(tool, Step.DECIDED, wait_ms=units * unit_ms),), people=(anna,))
        for units in range(1, 21)
    )


async def read(world: World, suspension: str, who: str) -> Any:
    async with world.client(who) as client:
        return (await client.get(f"/api/v1/suspensions/{suspension}/forecast")).json()


@pytest.fixture
async def waiting(world: World) -> str:
    """A suspension that waits after twenty others were decided."""
    await remember(world.wiring, "pay_back", HOUR_MS)
    return str((await ask(world)).json()["id"])


async def test_people_see_when_and_who(world: World, waiting: str) -> None:
    (item,) = (await read(world, waiting, "root"))["items"]
    assert (item["tool"], item["measured"], item["of_tool"], item["overdue"]) == ("pay_back", 20, True, False)
    assert item["half_by"] < item["most_by"]
    assert [(one["name"], one["share"]) for one in item["people"]] == [("anna", 1.0)]


async def test_agents_see_when_and_nobody(world: World, waiting: str) -> None:
    (item,) = (await read(world, waiting, "demo"))["items"]
    assert item["people"] is None
    assert item["half_by"] is not None
    assert "anna" not in str(item)
    assert (await read(world, waiting, "other"))["type"] == "/problems/not-found"


async def test_rare_tool_is_compared_with_all(world: World, waiting: str) -> None:
    rare = (await ask(world, {**CALL, "tool": "rare"})).json()["id"]
    (item,) = (await read(world, rare, "root"))["items"]
    assert (item["measured"], item["of_tool"]) == (20, False)


async def test_few_decisions_tell_nothing_and_decided_items_have_no_forecast(world: World) -> None:
    suspension = (await ask(world)).json()
    (item,) = (await read(world, suspension["id"], "root"))["items"]
    assert (item["measured"], item["half_by"], item["people"]) == (0, None, [])
    await decide(world, suspension)
    assert await read(world, suspension["id"], "root") == {"items": []}


async def test_decision_is_counted_as_one_wait(world: World) -> None:
    """Also where two clocks count the same facts."""
    await decide(world, (await ask(world)).json())
    facts = [entry.facts for entry in await world.wiring.part(Counters).waiting() if entry.facts is not None]
    await world.wiring.part(Waits).add(facts)
    await Counting(world.wiring).count_waiting()
    (wait,) = await world.wiring.part(Waits).read(ALL_TOOLS, 0)
    assert (wait.by, wait.asked_ms <= wait.decided_ms) == ("anna", True)
    assert await world.wiring.part(Waits).read(ALL_TOOLS, wait.decided_ms + 1) == []


async def test_reviewer_without_an_account_is_nobody(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, make_ask(terms={"reviewers": ["nobody", "anna", "group:gone"]}))
        await remember(anna.wiring, record.items[0].tool.name, 10_000)
        assert "anna decided 100% of them." in await anna.read(f"/runs/{record.run.id}")


@pytest.mark.parametrize(
    ("unit_ms", "sentence"),
    [(10_000, "as 20 such calls were."), (HOUR_MS, "of 20 such calls, half were decided later.")],
)
async def test_run_page_says_when_its_request_is_decided(settings: Settings, unit_ms: int, sentence: str) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)  # decided within 5 min, or by the fallback
        await remember(anna.wiring, record.items[0].tool.name, unit_ms)
        page = await anna.read(f"/runs/{record.run.id}")
        assert sentence in page
        assert "anna decided 100% of them." in page
