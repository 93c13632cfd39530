"""A worker previews a call before people are asked, again when they ask, and once more right before it runs."""

from typing import Any

import pytest

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.items import Item
from sayso.core.records.previews import Preview
from sayso.core.records.suspensions import ResumeSpec, RunRef, RunStatus
from sayso.core.records.tools import ToolCall
from sayso.errors import Frozen, StaleDigest
from sayso.runner.agents import Agent
from sayso.runner.models import ModelTurn, ScriptedModel
from sayso.runner.tools import tool
from service.core.store.runs.runs import Run
from service.core.store.suspensions.saving import Saved
from service.core.wiring import Wiring
from tests.sayso.samples import person
from tests.workers.runs import await_event, decide, draining, start, turn, until
from workers.resume import driving as resume
from workers.resume.previews import make_previews

world = {"rows": 3}
wiped: list[str] = []
fails: list[str] = []


def count_rows(args: JsonObject) -> str:
    """What a wipe would do."""
    if fails:
        raise LookupError(fails[0])
    return f"deletes {world['rows']} rows of {args['table']}"


@tool(preview=count_rows)
def refund(table: str) -> str:
    """Wipe a table; named as the rule that asks."""
    wiped.append(table)
    return "wiped"


AGENT = Agent(
    name="wiper",
    instructions="x",
    tools=(refund,),
    model=ScriptedModel([turn(("refund", '{"table": "orders"}')), ModelTurn(text="done")]),
)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(resume.agents, "wiper", AGENT)
    world["rows"] = 3
    wiped.clear()
    fails.clear()


async def read(wiring: Wiring, run: Run) -> Item:
    return (await wiring.desk.suspensions.read(run.suspension_id)).record.items[0]


def contents(item: Item) -> list[Any]:
    return [preview.content for preview in item.previews]


async def ask_outside(wiring: Wiring) -> Saved:
    """Ask about a call that came over the API, and that a worker will run."""
    call = ToolCall(call_id="c", index=0, name="refund", args={"table": "orders"})
    run = RunRef(id="run_x", agent="wiper", owner="bot", thread_id="run_x")
    external = ExternalCall(call=call, definition=refund.definition)
    return await wiring.desk.suspend(run, [external], ResumeSpec(resumer="calls"))


async def await_preview(wiring: Wiring, run: Run, times: int) -> Item:
    await await_event(wiring, "preview_stored", times)
    return await read(wiring, run)


async def test_call_is_previewed_before_it_is_asked_and_runs_while_that_holds(wiring: Wiring) -> None:
    async with draining(wiring):
        await start(wiring, "wiper")
        suspended = await until(wiring, RunStatus.SUSPENDED)
        assert contents(await read(wiring, suspended)) == ["deletes 3 rows of orders"]
        assert wiped == []
        await decide(wiring, suspended, action="approve")
        await until(wiring, RunStatus.COMPLETED)
    assert wiped == ["orders"]


async def test_call_whose_effect_has_changed_is_asked_again(wiring: Wiring) -> None:
    async with draining(wiring):
        await start(wiring, "wiper")
        first = await until(wiring, RunStatus.SUSPENDED)
        world["rows"] = 4000
        await decide(wiring, first, action="approve")
        await await_event(wiring, "run_paused", 2)
        second = await until(wiring, RunStatus.SUSPENDED)
        item = await read(wiring, second)
        assert wiped == []
        assert contents(item) == ["deletes 4000 rows of orders"]
        assert item.previews[0].before == "deletes 3 rows of orders"
        assert (item.prompt.reason or "").startswith("Asked again. What it would do has changed since.")
        await decide(wiring, second, action="approve")
        await until(wiring, RunStatus.COMPLETED)
    assert wiped == ["orders"]


async def test_edit_that_nobody_previewed_is_asked_again_with_its_preview(wiring: Wiring) -> None:
    async with draining(wiring):
        await start(wiring, "wiper")
        first = await until(wiring, RunStatus.SUSPENDED)
        await decide(wiring, first, action="approve", args={"table": "carts"})
        await await_event(wiring, "run_paused", 2)
        second = await until(wiring, RunStatus.SUSPENDED)
        item = await read(wiring, second)
        assert (wiped, contents(item), item.tool.args) == ([], ["deletes 3 rows of carts"], {"table": "carts"})
        await decide(wiring, second, action="approve")
        await until(wiring, RunStatus.COMPLETED)
    assert wiped == ["carts"]


async def test_edit_with_a_preview_runs_at_once(wiring: Wiring) -> None:
    async with draining(wiring):
        await start(wiring, "wiper")
        suspended = await until(wiring, RunStatus.SUSPENDED)
        edit: JsonObject = {"table": "carts"}
        await wiring.desk.request_preview(suspended.suspension_id, "i1", edit, person("ada"))
        item = await await_preview(wiring, suspended, 1)
        assert contents(item) == ["deletes 3 rows of orders", "deletes 3 rows of carts"]
        await decide(wiring, suspended, action="approve", args=edit)
        await until(wiring, RunStatus.COMPLETED)
    assert wiped == ["carts"]


async def test_preview_again_refuses_approvals_of_the_old_one(wiring: Wiring) -> None:
    async with draining(wiring):
        await start(wiring, "wiper")
        suspended = await until(wiring, RunStatus.SUSPENDED)
        old = await read(wiring, suspended)
        world["rows"] = 9
        await wiring.desk.request_preview(suspended.suspension_id, "i1", None, person("ada"), "key")
        await wiring.desk.request_preview(suspended.suspension_id, "i1", None, person("ada"), "key")
        new = await await_preview(wiring, suspended, 1)
        assert contents(new) == ["deletes 9 rows of orders"]
        request = DecisionRequest(action="approve", digest=old.digest)
        with pytest.raises(StaleDigest):
            await wiring.desk.decide(suspended.suspension_id, "i1", request, person("ada"))
        await decide(wiring, suspended, action="approve")
        await until(wiring, RunStatus.COMPLETED)
    requests = [entry for entry in await wiring.runs.trail("run_x") if entry.type == "preview_requested"]
    assert (len(requests), wiped) == (1, ["orders"])


async def test_failed_preview_is_shown_and_blocks_nothing(wiring: Wiring) -> None:
    fails.append("no connection")
    async with draining(wiring):
        await start(wiring, "wiper")
        suspended = await until(wiring, RunStatus.SUSPENDED)
        (preview,) = (await read(wiring, suspended)).previews
        assert (preview.content, preview.error) == (None, "LookupError: no connection")
        await decide(wiring, suspended, action="approve")
        await until(wiring, RunStatus.COMPLETED)
    assert wiped == ["orders"]


async def test_call_whose_preview_fails_at_the_start_is_asked_again(wiring: Wiring) -> None:
    async with draining(wiring):
        await start(wiring, "wiper")
        first = await until(wiring, RunStatus.SUSPENDED)
        fails.append("no connection")
        await decide(wiring, first, action="approve")
        await await_event(wiring, "run_paused", 2)
        second = await until(wiring, RunStatus.SUSPENDED)
        assert (wiped, (await read(wiring, second)).previews[0].error) == ([], "LookupError: no connection")
        await decide(wiring, second, action="approve")
        await until(wiring, RunStatus.COMPLETED)
    assert wiped == ["orders"]


async def test_call_from_outside_gets_its_preview_from_a_worker(wiring: Wiring) -> None:
    async with draining(wiring):
        saved = await ask_outside(wiring)
        suspended = await until(wiring, RunStatus.SUSPENDED)
        item = await await_preview(wiring, suspended, 1)
        assert contents(item) == ["deletes 3 rows of orders"]
        assert item.digest != saved.record.items[0].digest
        world["rows"] = 4
        await decide(wiring, suspended, action="approve")
        await await_event(wiring, "run_paused", 2)
        second = await until(wiring, RunStatus.SUSPENDED)
        assert (wiped, contents(await read(wiring, second))) == ([], ["deletes 4 rows of orders"])
        await decide(wiring, second, action="approve")
        await until(wiring, RunStatus.COMPLETED)
    assert wiped == ["orders"]


async def test_worker_without_the_agent_says_so(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    async with draining(wiring):
        await start(wiring, "wiper")
        suspended = await until(wiring, RunStatus.SUSPENDED)
        monkeypatch.delitem(resume.agents, "wiper")
        await wiring.desk.request_preview(suspended.suspension_id, "i1", None, person("ada"))
        item = await await_preview(wiring, suspended, 1)
        assert (item.previews[0].error or "").startswith("The worker's agent has no preview")


async def test_each_request_reaches_the_workers_once(wiring: Wiring) -> None:
    saved = await ask_outside(wiring)

    async def count() -> int:
        return int(await wiring.store.redis.llen(wiring.store.keys.previews))

    assert await count() == 1
    await wiring.desk.claim(saved.record.id, "i1", person("ada"))
    assert await count() == 1
    await wiring.desk.request_preview(saved.record.id, "i1", {"table": "carts"}, person("ada"))
    assert await count() == 2
    edited: JsonObject = {"table": "carts"}
    preview = Preview(content="x", digest="a" * 64, at_ms=0, args=edited)
    await wiring.desk.store_preview(saved.record.id, "i1", preview)
    assert await count() == 2


async def test_freeze_stops_previews(wiring: Wiring) -> None:
    saved = await ask_outside(wiring)
    freeze = await wiring.freezes.freeze("tool:refund", "odd", person("root"))
    await make_previews(wiring, resume.agents, saved.record.id)
    assert (await read(wiring, await wiring.runs.read("run_x"))).previews == ()
    with pytest.raises(Frozen, match="root has frozen"):
        await wiring.desk.request_preview(saved.record.id, "i1", None, person("ada"))
    await wiring.freezes.unfreeze(freeze.id, person("root"))
    await wiring.desk.request_preview(saved.record.id, "i1", None, person("ada"))
    await make_previews(wiring, resume.agents, saved.record.id)
    assert contents(await read(wiring, await wiring.runs.read("run_x"))) == ["deletes 3 rows of orders"]
