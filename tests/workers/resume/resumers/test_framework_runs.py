"""Runs of another framework, driven by a worker."""

import asyncio

import pytest

from sayso.core.records.suspensions import RunStatus
from sayso.core.transitions.execution import Fence
from sayso.errors import IllegalTransition, ModelError
from sayso.runner.protocol import Done
from service.core.store.runs.external_events import ExternalEvents
from service.core.wiring import Wiring
from tests.workers.resume.resumers.scripted_framework import (
    ONE_TURN,
    ORIGIN,
    ScriptedFramework,
    begin,
    results_of,
    retry_after_postponement,
)
from tests.workers.runs import await_event, decide, draining, process_until_due, trail, until
from workers.resume import driving as resume
from workers.resume.plans import LeasedRun
from workers.resume.resumers import RESUMERS


async def test_approved_calls_run_through_the_executor(
    wiring: Wiring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = ScriptedFramework(ONE_TURN)
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        suspended = await until(wiring, RunStatus.SUSPENDED)
        assert framework.ran == [], "an allowed call ran before its batch was decided"
        await decide(wiring, suspended, action="approve", args={"amount": 3})
        ended = await until(wiring, RunStatus.COMPLETED)
    assert framework.ran == [{"amount": 3}, {"amount": 1}]
    edited, found, dropped = results_of(ended)
    assert "A reviewer changed the arguments" in edited
    assert found == "ran 1"
    assert dropped["error"] == "Denied by policy: never"
    events = await trail(wiring)
    assert (events.count("tool_completed"), events[-1]) == (3, "run_completed")


async def test_model_error_after_the_calls_reruns_nothing(
    wiring: Wiring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = ScriptedFramework(ONE_TURN, fails_after_tools=1)
    events = await retry_after_postponement(wiring, framework, monkeypatch)
    ended = await wiring.runs.read("run_x")
    assert (ended.status, framework.ran) == (RunStatus.COMPLETED, [{"amount": 5}, {"amount": 1}])
    assert events.count("tool_completed") == 3


async def test_calls_that_never_run_are_reported_once(
    wiring: Wiring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = ScriptedFramework(
        [
            [("refund", '{"amount": 5}')],
            [("drop", '{"amount": 2}'), ("refund", "{}"), ("nothing", "{}")],
        ]
    )
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        await decide(wiring, await until(wiring, RunStatus.SUSPENDED), action="deny", message="no")
        ended = await until(wiring, RunStatus.COMPLETED)
    assert framework.ran == []
    assert [one["error"] for one in results_of(ended)] == [
        "no",
        "Denied by policy: never",
        'The arguments do not fit refund: arguments: "amount" is a required property',
        "There is no tool named 'nothing'. There are: refund, look_up, drop.",
    ]
    assert (await trail(wiring)).count("tool_completed") == 4


async def test_unreadable_call_is_refused_and_others_are_asked(
    wiring: Wiring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = ScriptedFramework([[("refund", '{"amount":'), ("refund", '{"amount": 5}')]])
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        suspended = await until(wiring, RunStatus.SUSPENDED)
        found = (await wiring.desk.suspensions.read(suspended.suspension_id)).record
        assert found is not None
        assert [one.tool.args for one in found.items] == [{"amount": 5}]
        await decide(wiring, suspended, action="approve")
        ended = await until(wiring, RunStatus.COMPLETED)
    unread, ran = results_of(ended)
    assert "cannot be read" in unread["error"]
    assert (ran, framework.ran) == ("ran 5", [{"amount": 5}])


async def test_denial_ends_the_run_by_policy_of_the_agent(
    wiring: Wiring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = ScriptedFramework(ONE_TURN)
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch, approval_denial_policy="fail")
        ended = await until(wiring, RunStatus.FAILED)
    assert framework.ran == []
    assert "drop was denied" in str(ended.error)


async def test_state_of_another_adapter_is_refused(
    wiring: Wiring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = ScriptedFramework(ONE_TURN, origin=ORIGIN.model_copy(update={"state_schema": "plain/2"}))
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        await await_event(wiring, "run_postponed")
    entries = await wiring.runs.trail("run_x")
    assert "resumes only plain / pydantic_ai / plain/2" in str(entries[-1].data["error"])
    assert framework.ran == []


async def test_run_that_cannot_resume_redeems_no_permit(
    wiring: Wiring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = ScriptedFramework(ONE_TURN, resume_fault="The thread is elsewhere.")
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        await decide(wiring, await until(wiring, RunStatus.SUSPENDED), action="approve")
        await await_event(wiring, "run_postponed")
    assert framework.ran == []
    assert "permit_redeemed" not in await trail(wiring)


async def test_final_error_of_the_adapter_fails_the_run(
    wiring: Wiring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = ScriptedFramework(ONE_TURN, faults={0: IllegalTransition("The graph has no such node.")})
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        await decide(wiring, await until(wiring, RunStatus.SUSPENDED), action="approve")
        ended = await until(wiring, RunStatus.FAILED)
    assert (ended.error, framework.ran) == ("The graph has no such node.", [])
    assert (await trail(wiring))[-2:] == ["permit_returned", "run_failed"]


async def test_fault_that_every_attempt_would_meet_fails_the_run_at_once(
    wiring: Wiring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = ScriptedFramework(ONE_TURN, faults={0: RecursionError("The limit of 25 steps is reached.")})
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        await decide(wiring, await until(wiring, RunStatus.SUSPENDED), action="approve")
        ended = await until(wiring, RunStatus.FAILED)
    assert ended.error == "RecursionError: The limit of 25 steps is reached."
    assert framework.ran == []
    events = await trail(wiring)
    assert "run_postponed" not in events
    assert events[-2:] == ["permit_returned", "run_failed"]


async def test_permit_is_returned_when_the_adapter_starts_no_call(
    wiring: Wiring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = ScriptedFramework(ONE_TURN, faults={0: ModelError("The model is away.")})
    events = await retry_after_postponement(wiring, framework, monkeypatch)
    ended = await wiring.runs.read("run_x")
    assert (ended.status, framework.ran) == (RunStatus.COMPLETED, [{"amount": 5}, {"amount": 1}])
    assert [events.count(one) for one in ("run_paused", "permit_redeemed", "permit_returned")] == [1, 2, 1]


async def test_call_that_ran_before_the_adapter_raised_is_not_in_doubt(
    wiring: Wiring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framework = ScriptedFramework(ONE_TURN, faults={1: ModelError("The model is away.")})
    events = await retry_after_postponement(wiring, framework, monkeypatch)
    assert framework.ran == [{"amount": 5}, {"amount": 1}]
    assert [events.count(one) for one in ("run_paused", "tool_completed")] == [1, 3]


@pytest.mark.parametrize("status", [RunStatus.DEGRADED, RunStatus.FAILED, RunStatus.CANCELLED])
async def test_run_ends_with_the_status_of_its_framework(
    wiring: Wiring,
    monkeypatch: pytest.MonkeyPatch,
    status: RunStatus,
) -> None:
    framework = ScriptedFramework([], end=Done({"outcome": "handoff"}, status, "It is locked."))
    async with draining(wiring):
        await begin(wiring, framework, monkeypatch)
        ended = await until(wiring, status)
    assert (ended.result, ended.error) == ({"outcome": "handoff"}, "It is locked.")
    assert (await trail(wiring))[-1] == f"run_{status}"


async def test_external_events_of_a_framework_are_saved_once(
    wiring: Wiring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    origin = ORIGIN.model_copy(update={"framework": "autogen"})
    framework = ScriptedFramework(ONE_TURN, origin=origin, fails_after_tools=1)
    await retry_after_postponement(wiring, framework, monkeypatch, origin)
    external = await wiring.part(ExternalEvents).read_all("run_x")
    assert [(one.source, one.source_format, one.event["n"]) for one in external] == [
        ("autogen", "autogen", n) for n in (0, 1)
    ]
    assert external[0].seq < external[1].seq


async def test_repeated_call_without_an_item_keeps_its_key(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    """An allowed call has the step in its key. The second attempt journals the step of the saved state."""
    framework = ScriptedFramework([[("look_up", '{"amount": 1}')]], hanging_calls=1)
    await begin(wiring, framework, monkeypatch)
    run = await wiring.runs.read("run_x")
    first = LeasedRun(await wiring.desk.lease(run.suspension_id, "w1", 1), Fence("w1", 1, 1))
    lost = asyncio.create_task(RESUMERS[ORIGIN.framework](wiring, resume.agents, first))
    await asyncio.wait_for(framework.started.wait(), 20)
    lost.cancel()
    async with draining(wiring, "w2"):
        await process_until_due(wiring)
        await until(wiring, RunStatus.COMPLETED)
    assert framework.keys == [f"{run.suspension_id}:1.0"] * 2
