"""A worker starts what it was handed, without another commit, and never lets go of a permit."""

from dataclasses import replace
from typing import Any

import pytest

from sayso.core.records.suspensions import RunStatus, Status, SuspensionRecord
from sayso.core.transitions.execution import WaitingWorker
from sayso.errors import Unavailable
from service.core.wiring import Wiring
from tests.sayso.samples import person
from tests.workers.resume.resumers.test_calls import CALLS, answer, bring
from tests.workers.runs import await_event, decide, draining, ran, start, trail, until
from workers.clock.ticks import wake_unfrozen
from workers.resume import driving as resume

NAME = WaitingWorker("w1", 1000).name


async def approved(wiring: Wiring, **choice: Any) -> str:
    """Bring a refund, wait for a worker, and decide; return the suspension."""
    asked = await bring(wiring, replace(CALLS[1], call=CALLS[1].call.model_copy(update={"index": 0})))
    await answer(wiring, asked, action="approve", **choice)
    return asked.record.id


@pytest.mark.parametrize("args", [None, {"order": "A", "amount": 2.0}])
async def test_handed_call_starts_without_another_commit(wiring: Wiring, args: dict[str, Any] | None) -> None:
    async with draining(wiring):
        await wiring.desk.suspensions.waiting.announce(NAME)
        suspension_id = await approved(wiring, args=args)
        await until(wiring, RunStatus.COMPLETED)
    record = (await wiring.desk.suspensions.read(suspension_id)).record
    assert ran == [("A", 2.0 if args else 5.0, f"{suspension_id}:i1")]
    assert record.version == 3, "asked, decided and handed over, settled"
    assert "permit_returned" not in await trail(wiring)


async def test_handed_run_of_an_agent_starts_calls_that_were_allowed_too(wiring: Wiring) -> None:
    async with draining(wiring):
        await start(wiring)
        suspended = await until(wiring, RunStatus.SUSPENDED)
        await wiring.desk.suspensions.waiting.announce(NAME)
        saved = await decide(wiring, suspended, action="approve")
        assert saved.record.status is Status.RESUMING
        await until(wiring, RunStatus.COMPLETED)
    assert ran == [("A", 5.0, f"{suspended.suspension_id}:i1")]
    events = await trail(wiring)
    assert (events.count("permit_redeemed"), events.count("tool_completed"), "permit_returned" in events) == (
        1,
        3,
        False,
    )


async def test_run_begins_at_a_waiting_worker(wiring: Wiring) -> None:
    async with draining(wiring):
        await wiring.desk.suspensions.waiting.announce(NAME)
        await start(wiring)
        run = await until(wiring, RunStatus.SUSPENDED)
    (first, _) = await wiring.desk.suspensions.read_chain(run.suspension_id, 2)
    assert isinstance(first, SuspensionRecord)
    assert first.version == 2, "started and handed over, suspended"


async def test_run_frozen_before_it_begins_is_given_back(wiring: Wiring) -> None:
    await wiring.desk.suspensions.waiting.announce(NAME)
    await start(wiring)
    await wiring.freezes.freeze("agent:a", "odd", person("root"))
    async with draining(wiring):
        await await_event(wiring, "run_released")
    assert "llm_completed" not in await trail(wiring)


async def test_denial_is_handed_over_without_a_permit(wiring: Wiring) -> None:
    async with draining(wiring):
        await start(wiring)
        suspended = await until(wiring, RunStatus.SUSPENDED)
        await wiring.desk.suspensions.waiting.announce(NAME)
        await decide(wiring, suspended, action="deny")
        await until(wiring, RunStatus.COMPLETED)
    assert ran == []
    assert "permit_redeemed" not in await trail(wiring)


async def test_frozen_call_gives_its_permit_back_and_starts_after(wiring: Wiring) -> None:
    await wiring.desk.suspensions.waiting.announce(NAME)
    await approved(wiring)
    freeze = await wiring.freezes.freeze("tool:refund", "odd", person("root"))
    async with draining(wiring):
        await await_event(wiring, "run_released")
        assert ran == []
        await wiring.freezes.unfreeze(freeze.id, person("root"))
        await wake_unfrozen(wiring)
        await until(wiring, RunStatus.COMPLETED)
    assert len(ran) == 1
    assert "permit_returned" in await trail(wiring)


async def test_run_of_an_unknown_agent_gives_its_permit_back(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    await wiring.desk.suspensions.waiting.announce(NAME)
    await approved(wiring)
    monkeypatch.delitem(resume.agents, "a")
    async with draining(wiring):
        await await_event(wiring, "run_postponed")
    events = await trail(wiring)
    assert events.index("permit_returned") < events.index("run_postponed")


async def test_ending_worker_begins_what_it_was_handed_last(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its last look at the list and the end of its waiting, a decision may hand it a run."""
    await wiring.desk.suspensions.waiting.announce(NAME)
    await approved(wiring)

    async def take_nothing(*_: object) -> list[object]:
        raise Unavailable

    monkeypatch.setattr(wiring.schedule, "take", take_nothing)
    async with draining(wiring):
        pass
    assert (await wiring.runs.read("run_x")).status is RunStatus.COMPLETED
    assert len(ran) == 1


async def test_worker_without_free_places_announces_nothing(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resume, "_TAKE_AT_ONCE", wiring.settings.drain_concurrency + 1)
    async with draining(wiring):
        await start(wiring)
        await until(wiring, RunStatus.SUSPENDED)
        await wiring.desk.suspensions.waiting.look()
        assert wiring.desk.suspensions.waiting.choose() is None
