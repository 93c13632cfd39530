"""A call runs at once under a veto; a person has it undone, exactly once, by a worker under a lease and a permit."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.items import Item
from sayso.core.records.suspensions import RunStatus, Status, SuspensionRecord
from sayso.core.transitions.execution import Fence
from sayso.errors import AlreadyDecided, Frozen, NotAllowed
from sayso.runner.agents import Agent
from sayso.runner.models import ModelTurn, ScriptedModel
from sayso.runner.tools import tool
from service.assembly import assemble
from service.core.settings import Settings
from service.core.store.suspensions.saving import Saved
from service.core.wiring import Wiring
from tests.sayso.samples import person
from tests.workers.runs import await_event, decide, draining, process_until_due, start, trail, turn, until
from workers.clock import ticks as clock
from workers.resume import driving as resume
from workers.resume.plans import LeasedRun
from workers.resume.resumers import RESUMERS

POLICY = """
version: 1
default: allow
rules:
  - id: small
    tool: refund
    action: allow
    reason: small refunds run at once
    terms: {veto: 10m, reviewers: [ada, ben], secrets: [card]}
  - {id: ask, tool: confirm, action: request_approval}
"""

refunded: list[str] = []
undone: list[tuple[JsonObject, JsonValue]] = []
fails: list[str] = []
hangs = asyncio.Event()


async def take_back(arguments: JsonObject, result: JsonValue) -> str:
    undone.append((arguments, result))
    if fails:
        raise LookupError(fails[0])
    if arguments.get("card") == "hang":
        hangs.set()
        await asyncio.Event().wait()
    return "taken back"


@tool(undo=take_back)
def refund(amount: int, card: str = "4242") -> JsonObject:
    """Refund an amount."""
    refunded.append(card)
    return {"receipt": f"r-{amount}", "note": "x" * (40_000 if amount == 9 else 1)}


@tool
def confirm(text: str) -> str:
    """Ask before the run goes on."""
    return text


def make_agent(args: str = '{"amount": 5}', **options: object) -> Agent:
    turns = [turn(("refund", args)), turn(("confirm", '{"text": "on"}')), ModelTurn(text="done")]
    return Agent(name="payer", instructions="x", tools=(refund, confirm), model=ScriptedModel(turns), **options)  # type: ignore[arg-type]


@pytest.fixture
async def wiring(clean_store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Wiring]:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    for kept in (refunded, undone, fails):
        kept.clear()
    hangs.clear()
    monkeypatch.setitem(resume.agents, "payer", make_agent())
    settings = Settings(home=tmp_path, redis_url=clean_store_url, policy=policy, lease_s=1, drain_window_s=60)
    async with assemble(settings) as wired:
        yield wired


async def find_offer(wiring: Wiring) -> SuspensionRecord:
    """Return the offer to undo the call of the run, as its trail names it."""
    (offered,) = [entry.data for entry in await wiring.runs.trail("run_x") if entry.type == "undo_offered"]
    assert (offered["tool_name"], offered["call_id"], offered["index"]) == ("refund", "c0", 0)
    return (await wiring.desk.suspensions.read(str(offered["suspension_id"]))).record


async def press(wiring: Wiring, offer: SuspensionRecord, name: str = "ada", key: str | None = None) -> Saved:
    item = offer.items[0]
    request = DecisionRequest(action="approve", digest=item.digest)
    return await wiring.desk.decide(offer.id, item.item_id, request, person(name), key)


async def reached(wiring: Wiring, offer: SuspensionRecord, *statuses: RunStatus) -> SuspensionRecord:
    """Wait until the offer's run has one of these statuses."""
    with wiring.watch.on(offer.run.id) as moved:
        listening = asyncio.create_task(wiring.watch.listen())
        while (run := await wiring.runs.read(offer.run.id)).status not in statuses:
            await asyncio.wait_for(moved.wait(), 20)
            moved.clear()
        listening.cancel()
    return (await wiring.desk.suspensions.read(run.suspension_id)).record


async def settled(wiring: Wiring, offer: SuspensionRecord) -> SuspensionRecord:
    return await reached(wiring, offer, RunStatus.COMPLETED, RunStatus.FAILED)


async def offered(wiring: Wiring) -> SuspensionRecord:
    await start(wiring, "payer")
    await until(wiring, RunStatus.SUSPENDED, RunStatus.COMPLETED)
    return await find_offer(wiring)


async def test_call_runs_at_once_and_a_press_undoes_it_once(wiring: Wiring) -> None:
    async with draining(wiring):
        offer = await offered(wiring)
        item: Item = offer.items[0]
        assert (refunded, undone) == (["4242"], [])
        assert (item.tool.name, item.terms.reviewers, item.terms.secrets) == (
            "refund:undo",
            ("ada", "ben"),
            ("arguments.card",),
        )
        assert item.tool.args == {"arguments": {"amount": 5}, "result": {"receipt": "r-5", "note": "x"}}
        assert item.terms.deadline_at_ms - offer.created_at_ms == 600_000
        await press(wiring, offer)
        with pytest.raises(AlreadyDecided):
            await press(wiring, offer, "ben")
        record = await settled(wiring, offer)
        assert record.end is not None
        assert (record.end.status, record.end.result) == (RunStatus.COMPLETED, {"undone": True})
        assert undone == [({"amount": 5}, {"receipt": "r-5", "note": "x"})]

        await await_event(wiring, "call_undone")
        await decide(wiring, await wiring.runs.read("run_x"), action="approve")
        await until(wiring, RunStatus.COMPLETED)
    entries = {entry.type: entry.data for entry in await wiring.runs.trail("run_x")}
    assert (entries["call_undone"]["by"]["id"], entries["call_undone"]["success"]) == ("ada", True)
    assert entries["note_delivered"]["note_id"] == f"undo_{offer.id}"
    assert len(refunded) == 1


@pytest.mark.parametrize("second", ["ben", "ada"])
async def test_two_presses_at_the_same_time_undo_once(wiring: Wiring, second: str) -> None:
    """Of two people one is refused, and the same press sent twice counts once; two services take them."""
    async with assemble(wiring.settings) as other, draining(wiring):
        offer = await offered(wiring)
        answers = await asyncio.gather(
            press(wiring, offer, "ada", "undo"), press(other, offer, second, "undo"), return_exceptions=True
        )
        refused = [type(answer) for answer in answers if not isinstance(answer, Saved)]
        assert refused == ([AlreadyDecided] if second == "ben" else [])
        record = await settled(wiring, offer)
    assert len(record.items[0].decisions) == 1
    assert len(undone) == 1


async def test_only_reviewers_of_the_rule_undo(wiring: Wiring) -> None:
    async with draining(wiring):
        offer = await offered(wiring)
        with pytest.raises(NotAllowed):
            await press(wiring, offer, "eve")
        with pytest.raises(NotAllowed):
            await wiring.desk.cancel(offer.run.id, person("bot"))
    assert undone == []


async def test_large_result_is_shown_in_part_and_undone_exactly(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(resume.agents, "payer", make_agent('{"amount": 9}'))
    async with draining(wiring):
        offer = await offered(wiring)
        shown = offer.items[0].tool.args["result"]
        assert isinstance(shown, str)
        assert len(shown) < 2_100
        await press(wiring, offer)
        await settled(wiring, offer)
    assert undone == [({"amount": 9}, {"receipt": "r-9", "note": "x" * 40_000})]


async def test_undo_that_raises_is_failed_for_good(wiring: Wiring) -> None:
    fails.append("the bank is closed")
    async with draining(wiring):
        offer = await offered(wiring)
        await press(wiring, offer)
        record = await settled(wiring, offer)
        with pytest.raises(AlreadyDecided):
            await press(wiring, offer)
        await await_event(wiring, "call_undone")
    assert record.end is not None
    assert record.end.status is RunStatus.FAILED
    assert record.end.error == "The undo failed. Undo it by hand. LookupError: the bank is closed"
    assert len(undone) == 1


async def test_window_that_is_over_refuses_and_keeps_the_call(wiring: Wiring, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY.replace("10m", "1s"))
    async with draining(wiring):
        offer = await offered(wiring)
        while (await wiring.desk.suspensions.read(offer.id)).record.status is Status.PENDING:
            await process_until_due(wiring)
        with pytest.raises(AlreadyDecided):
            await press(wiring, offer)
        record = await settled(wiring, offer)
    assert record.end is not None
    assert (record.end.result, undone) == ({"undone": False}, [])
    assert "call_undone" not in await trail(wiring)


async def test_worker_that_is_lost_in_an_undo_puts_it_in_doubt(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows whether the undo had its effect, so a person is asked, and it never runs again by itself."""
    monkeypatch.setitem(resume.agents, "payer", make_agent('{"amount": 5, "card": "hang"}'))
    async with draining(wiring):
        offer = await offered(wiring)
    await press(wiring, offer)
    leased = await wiring.desk.lease(offer.id, "w1", 1)
    lost = asyncio.create_task(RESUMERS["undo"](wiring, resume.agents, LeasedRun(leased, Fence("w1", 1, 1))))
    await asyncio.wait_for(hangs.wait(), 20)
    async with draining(wiring, "w2"):
        await process_until_due(wiring)
        asked = await reached(wiring, offer, RunStatus.SUSPENDED)
        item = asked.items[0]
        assert item.doubt is not None
        assert item.reverses is not None
        assert (item.tool.name, item.reverses.by) == ("refund:undo", person("ada"))
        request = DecisionRequest(action="value", digest=item.digest, value={"choice": "skip"})
        await wiring.desk.decide(asked.id, item.item_id, request, person("ben"))
        record = await settled(wiring, offer)
        await await_event(wiring, "call_undone")
    lost.cancel()
    assert record.end is not None
    assert (record.end.status, record.end.result) == (RunStatus.FAILED, {"undone": None})
    (noted,) = [entry.data for entry in await wiring.runs.trail("run_x") if entry.type == "call_undone"]
    assert (noted["success"], noted["by"]["id"], len(undone)) == (None, "ada", 1)


async def test_freeze_of_the_tool_holds_its_undo(wiring: Wiring) -> None:
    async with draining(wiring):
        offer = await offered(wiring)
    freeze = await wiring.freezes.freeze("tool:refund", "stop", person("ada"))
    await press(wiring, offer)
    with pytest.raises(Frozen):
        await wiring.desk.lease(offer.id, "w1", 1_000)
    await wiring.freezes.unfreeze(freeze.id, person("ada"))
    async with draining(wiring, "w2"):
        for _ in range(100_000):
            await clock.wake_unfrozen(wiring)
            await clock.process_due(wiring)
            if (await wiring.runs.read(offer.run.id)).status.ended:
                break
    assert len(undone) == 1
