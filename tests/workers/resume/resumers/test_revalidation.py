"""An approved call is revalidated before it runs, and goes back to reviewers with the reason if that fails."""

from pathlib import Path

import pytest

from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.suspensions import RunStatus, SuspensionRecord
from sayso.core.transitions.execution import WaitingWorker
from sayso.runner.agents import Agent
from sayso.runner.models import ModelTurn, ScriptedModel
from sayso.runner.tools import CallContext, tool
from service.core.wiring import Wiring
from tests.builders import make_key, make_person
from tests.sayso.samples import person
from tests.workers.resume.resumers.test_calls import CALLS, bring
from tests.workers.runs import (
    POLICY,
    draining,
    drop,
    look_up,
    ran,
    refund,
    start,
    trail,
    turn,
    until,
)
from workers.resume import driving as resume

TURNS = [turn(("look_up", '{"order": "A"}'), ("refund", '{"order": "A", "amount": 5.0}')), ModelTurn(text="all done")]


async def current(wiring: Wiring) -> SuspensionRecord:
    run = await wiring.runs.read("run_x")
    found = await wiring.desk.suspensions.read(run.suspension_id)
    assert found.record is not None
    return found.record


async def pause(wiring: Wiring, how: str) -> None:
    """Bring the run to where it waits for the refund, by our own runner or from outside, perhaps beside a worker."""
    if how.startswith("outside"):
        await bring(wiring, *CALLS[:2])
    else:
        async with draining(wiring):
            await start(wiring)
            await until(wiring, RunStatus.SUSPENDED)
    if how.endswith("handed"):
        await wiring.desk.suspensions.waiting.announce(WaitingWorker("w1", 1000).name)


def write_rules(wiring: Wiring, rules: str) -> None:
    path = Path(wiring.settings.policy)
    path.write_text(rules)


@pytest.fixture(params=["runner", "outside", "runner, handed", "outside, handed"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, wiring: Wiring) -> str:
    agent = Agent(name="a", instructions="x", tools=(look_up, refund, drop), model=ScriptedModel(TURNS))
    monkeypatch.setitem(resume.agents, "a", agent)
    return str(request.param)


async def approve(wiring: Wiring, by: str = "ada") -> str:
    run = await wiring.runs.read("run_x")
    (item,) = (one for one in (await current(wiring)).items if one.open)
    yes = DecisionRequest(action="approve", digest=item.digest)
    await wiring.desk.decide(run.suspension_id, item.item_id, yes, person(by))
    return run.suspension_id


async def asked_again(wiring: Wiring, before: str, reason: str) -> SuspensionRecord:
    """The next pause of the run, in which the refund alone is open, with the reason shown."""
    while (await current(wiring)).id == before:
        await until(wiring, RunStatus.SUSPENDED, RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.DEGRADED)
    record = await current(wiring)
    assert ran == []
    (item,) = (one for one in record.items if one.open)
    assert item.tool.name == "refund"
    assert reason in (item.prompt.reason or "")
    assert "asked_again" in await trail(wiring)
    return record


async def test_deactivated_reviewer_has_the_call_asked_again(wiring: Wiring, how: str) -> None:
    await make_person(wiring, "ada")
    await pause(wiring, how)
    before = await approve(wiring, "ada")
    await wiring.reviewers.deactivate("ada")
    await wiring.revocation_cache.find(fresh=True)
    async with draining(wiring):
        await asked_again(wiring, before, "ada, who approved it, is no longer a reviewer.")
        await approve(wiring, "bob")
        await until(wiring, RunStatus.COMPLETED)
    assert [amount for _, amount, _ in ran] == [5.0]


async def test_approved_call_of_a_revoked_key_never_runs(wiring: Wiring, how: str) -> None:
    key_id = await make_key(wiring, "bot")
    await pause(wiring, how)
    await approve(wiring)
    await wiring.api_keys.revoke(key_id)
    await wiring.revocation_cache.find(fresh=True)
    await wiring.api_keys.create("bot")  # a namesake gives nothing back
    async with draining(wiring):
        await until(wiring, RunStatus.CANCELLED)
    assert ran == []
    assert "was revoked" in ((await wiring.runs.read("run_x")).error or "")


async def test_approved_call_of_an_expired_rotated_key_runs(wiring: Wiring, how: str) -> None:
    key_id = await make_key(wiring, "bot")
    await pause(wiring, how)
    await approve(wiring)
    await wiring.api_keys.rotate(key_id, 0)
    async with draining(wiring):
        await until(wiring, RunStatus.COMPLETED)
    assert len(ran) == 1


async def test_withdrawn_rule_has_its_call_asked_again(wiring: Wiring, how: str) -> None:
    await pause(wiring, how)
    before = await approve(wiring)
    write_rules(wiring, "version: 1\ndefault: allow\nrules: []\n")
    async with draining(wiring):
        again = await asked_again(wiring, before, "The rule ask-refund of this item was withdrawn.")
        assert next(one for one in again.items if one.open).terms.rule_id is None
        await approve(wiring)
        await until(wiring, RunStatus.COMPLETED)
    assert len(ran) == 1


async def test_call_denied_by_the_rules_in_force_does_not_run(wiring: Wiring, how: str) -> None:
    await pause(wiring, how)
    await approve(wiring)
    write_rules(wiring, POLICY.replace("request_approval, reason: money leaves, terms: {timeout_s: 60}", "deny"))
    async with draining(wiring):
        await until(wiring, RunStatus.COMPLETED)
    assert ran == []
    failed = [one.data for one in await wiring.runs.trail("run_x") if one.type == "tool_completed"]
    assert [one["tool_name"] for one in failed if not one["success"]] == ["refund"]


async def test_changed_tool_has_its_call_asked_again(
    wiring: Wiring,
    how: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await pause(wiring, how)
    before = await approve(wiring)

    @tool(name="refund")
    async def refund_now(order: str, amount: float, call: CallContext) -> str:
        """Refund an order, at once and for good."""
        ran.append((order, amount, call.idempotency_key))
        return "done"

    agent = Agent(name="a", instructions="x", tools=(look_up, refund_now, drop), model=ScriptedModel(TURNS))
    monkeypatch.setitem(resume.agents, "a", agent)
    async with draining(wiring):
        await asked_again(wiring, before, "The tool refund was changed since.")
        await approve(wiring)
        await until(wiring, RunStatus.COMPLETED)
    assert len(ran) == 1
