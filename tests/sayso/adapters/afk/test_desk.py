"""Tests of AFK agents that wait in their own process."""

import json
import re
from typing import Any

import httpx
import pytest

from sayso.adapters.afk.desk import Desk
from service.core.settings import CHECKOUT
from tests.frameworks.contracts import (
    Agent,
    AgentError,
    ApprovalDecision,
    DeferredDecision,
    FailSafeConfig,
    PolicyDecision,
    Runner,
    RunnerConfig,
    tool,
)
from tests.frameworks.contracts.scripted import MemoryRows, PayArgs, PayTool, Rule, ScriptedModel, pay
from tests.sayso.adapters.afk.desk_setups import DeskSetup, office


async def test_desk_runs_and_reports_an_approved_call_once() -> None:
    setup = DeskSetup(([pay("ann", 7)],), office())
    setup.office.reviewer.approves()
    result = await setup.play()
    assert setup.pay_tool.paid == [("ann", 7)]
    assert "paid 7 to ann" in result.final_text
    assert setup.ended == ["completed"]


async def test_desk_suspends_afk_until_the_decision() -> None:
    setup = DeskSetup(([pay("ann", 7)],), office())
    kinds: list[str] = []

    class Watching(Desk):
        async def await_deferred(self, token: str, *, timeout_s: float) -> Any:
            setup.office.reviewer.approves()
            return await super().await_deferred(token, timeout_s=timeout_s)

        async def notify(self, event: Any) -> None:
            kinds.append(event.type)
            await super().notify(event)

    runner, agent = setup.open(Watching)
    await runner.run(agent, user_message="Pay them.")
    assert kinds.index("policy_decision") < kinds.index("run_paused") < kinds.index("run_resumed")
    assert "tool_completed" in kinds


async def test_desk_runs_edited_arguments() -> None:
    setup = DeskSetup(([pay("ann", 700)],), office())
    setup.office.reviewer.approves(args={"to": "bob", "amount": 6})
    await setup.play()
    assert setup.pay_tool.paid == [("bob", 6)]


async def test_desk_adds_a_value_to_the_call() -> None:
    setup = DeskSetup(([pay("ask", 9)],), office())
    setup.office.reviewer.answers("*", 42)
    await setup.play()
    assert setup.pay_tool.paid == [("ask", 42)]


async def test_desk_does_not_run_a_denied_call() -> None:
    setup = DeskSetup(([pay("ann", 7)],), office())
    setup.office.reviewer.denies(message="Ann has left.")
    result = await setup.play()
    assert setup.pay_tool.paid == []
    assert "Approval denied" in result.final_text


async def test_desk_without_deferral_shows_the_model_the_denial() -> None:
    setup = DeskSetup(([pay("ann", 7), pay("ask", 1, "c1")],), office(), options={"defer": False})
    setup.office.reviewer.denies(message="Ann has left.")
    result = await setup.play()
    assert "Ann has left." in result.final_text
    setup = DeskSetup(([pay("ann", 7)],), office(), options={"defer": False})
    setup.office.reviewer.approves(args={"to": "ann", "amount": 6})
    await setup.play()
    assert setup.pay_tool.paid == [("ann", 6)]


async def test_desk_shows_the_model_why_a_value_was_refused() -> None:
    setup = DeskSetup(([pay("ask", 9)],), office())
    setup.office.reviewer.denies(message="No idea.")
    result = await setup.play()
    assert setup.pay_tool.paid == []
    assert "No idea." in result.final_text


async def test_desk_applies_rules_without_a_reviewer() -> None:
    setup = DeskSetup(([pay("ann", 1), pay("eve", 100, "c1")],), office())
    result = await setup.play()
    assert setup.pay_tool.paid == [("ann", 1)]
    assert "Eve is paid nothing" in result.final_text
    assert setup.office.waiting == []


async def test_desk_decides_each_call_of_a_turn() -> None:
    setup = DeskSetup(([pay("ann", 7), pay("bob", 8, "c1"), pay("cid", 9, "c2")],), office())
    office_desk, actions = setup.office, iter(["approve", "deny", "approve"])
    office_desk.reviewer.review = lambda: (  # type: ignore[method-assign]
        office_desk.reviewer.decide(next(actions)) if office_desk.waiting else None
    )
    await setup.play()
    assert sorted(setup.pay_tool.paid) == [("ann", 7), ("cid", 9)]


async def test_desk_runs_calls_without_ids_once() -> None:
    setup = DeskSetup(([pay("ann", 7, None), pay("ann", 7, None)],), office())
    setup.office.reviewer.approves()
    await setup.play()
    assert setup.pay_tool.paid == [("ann", 7), ("ann", 7)]
    assert setup.ended == ["completed", "completed"]


async def test_desk_reports_a_failed_tool() -> None:
    setup = DeskSetup(([pay("nobody", 7)],), office())
    setup.office.reviewer.approves()
    result = await setup.play()
    assert "no account" in result.final_text
    (record,) = setup.office.records.values()
    permit = record.items[0].permit
    assert permit is not None
    assert permit.report is not None
    assert permit.report.success is False


@pytest.mark.parametrize("fallback", ["deny", "allow"])
async def test_desk_runs_nothing_after_afks_timeout(fallback: str) -> None:
    config = {"approval_timeout_s": 5.0, "approval_fallback": fallback}
    setup = DeskSetup(([pay("ann", 7)],), office(), config=config)
    await setup.play()
    assert setup.pay_tool.paid == []
    assert len(setup.office.waiting) == 1


async def test_desk_denies_if_sayso_is_unavailable() -> None:
    setup = DeskSetup(([pay("ann", 7)],), office())
    setup.office.drop_requests = 10_000
    result = await setup.play()
    assert (setup.pay_tool.paid, result.state) == ([], "completed")
    assert "Sayso is unavailable" in result.final_text


async def test_desk_denies_if_sayso_fails_while_waiting() -> None:
    setup = DeskSetup(([pay("ann", 7)],), office())

    class TemporaryError(Desk):
        async def await_deferred(self, token: str, *, timeout_s: float) -> Any:
            setup.office.drop_requests = 10_000
            return await super().await_deferred(token, timeout_s=timeout_s)

    runner, agent = setup.open(TemporaryError)
    result = await runner.run(agent, user_message="Pay them.")
    assert (setup.pay_tool.paid, result.state) == ([], "completed")


async def test_desk_gives_a_resumed_run_the_same_decision() -> None:
    """Another process resumes the run of a lost one. No new decision is needed."""
    setup = DeskSetup(([pay("ann", 7)],), office())

    class Lost(BaseException):
        pass

    class Dying(Desk):
        async def await_deferred(self, token: str, *, timeout_s: float) -> Any:
            raise Lost

    runner, agent = setup.open(Dying)
    handle = await runner.run_handle(agent, user_message="Pay them.", thread_id="thread")
    with pytest.raises(Lost):
        await handle._task
    setup.office.reviewer.decide("approve", args={"to": "ann", "amount": 6})
    (run_id,) = {key.split(":")[1] for _, key in setup.memory.rows if key.startswith("checkpoint:")}
    runner, agent = setup.open()
    await runner.resume(agent, run_id=run_id, thread_id="thread")
    assert setup.pay_tool.paid == [("ann", 6)]
    assert len(setup.office.records) == 1


async def test_desk_replays_the_result_of_an_earlier_run() -> None:
    setup = DeskSetup(([pay("ann", 7)],), office())
    setup.office.reviewer.approves()
    runner, agent = setup.open()
    first = await runner.run(agent, user_message="Pay them.", thread_id="thread")
    saved = setup.memory.rows["thread", f"checkpoint:{first.run_id}:1:runtime_state"]
    waiting = {
        "text": "Turn 0.",
        "tool_calls": [{"id": "c0", "tool_name": "pay", "arguments": {"to": "ann", "amount": 7}}],
    }
    payload = {**saved["payload"], "messages": saved["payload"]["messages"][:2], "pending_llm_response": waiting}
    setup.memory.rows.clear()
    for key in ("1:runtime_state", "latest"):
        setup.memory.rows["thread", f"checkpoint:{first.run_id}:{key}"] = {**saved, "payload": payload}
    runner, agent = setup.open()
    again = await runner.resume(agent, run_id=first.run_id, thread_id="thread")
    assert setup.pay_tool.paid == [("ann", 7)]
    assert "paid 7 to ann" in again.final_text


async def test_desk_denies_an_ungated_tool() -> None:
    setup = DeskSetup(([pay("ann", 1)],), office())
    runner, agent = setup.open()
    setup.desk.tools.clear()
    result = await runner.run(agent, user_message="Pay them.")
    assert setup.pay_tool.paid == []
    assert "not gated by Sayso" in result.final_text


async def test_desk_denies_calls_without_events() -> None:
    setup = DeskSetup(([pay("ann", 1)],), office())
    _, agent = setup.open()
    result = await Runner(memory_store=setup.memory).run(agent, user_message="Pay them.")
    assert setup.pay_tool.paid == []
    assert "interaction_provider=desk.provider" in result.final_text


async def test_desk_settles_an_afk_rule_about_the_model() -> None:
    rule = Rule("llm_before_execute", PolicyDecision(action="request_approval", reason="Models cost money"))
    setup = DeskSetup((), office(), agent_options={"policy_engine": rule})
    setup.office.reviewer.approves()
    assert (await setup.play()).state == "completed"
    (record,) = setup.office.records.values()
    assert (record.items[0].tool.name, record.items[0].tool.args["reason"]) == ("afk.approval", "Models cost money")
    assert setup.ended == ["completed"]


async def test_desk_decides_a_call_that_an_afk_rule_asks_about() -> None:
    rule = Rule("tool_before_execute", PolicyDecision(action="request_approval"))
    setup = DeskSetup(([pay("ann", 7)],), office(), agent_options={"policy_engine": rule})
    setup.office.reviewer.approves()
    await setup.play()
    assert setup.pay_tool.paid == [("ann", 7)]
    assert [one.items[0].tool.name for one in setup.office.records.values()] == ["pay"]


async def test_desk_denial_fails_the_run_if_afk_requires_it() -> None:
    fail_safe = FailSafeConfig(approval_denial_policy="fail_run")
    setup = DeskSetup(([pay("ann", 7)],), office(), agent_options={"fail_safe": fail_safe})
    setup.office.reviewer.denies()
    with pytest.raises(AgentError, match="requires fail"):
        await setup.play()


async def test_desk_answers_with_afks_classes() -> None:
    setup = DeskSetup((), office())
    setup.open()
    request = type("Request", (), {"run_id": "r", "step": 1, "reason": "why", "payload": {}})()
    deferred = await setup.desk.request_approval(request)
    assert isinstance(deferred, DeferredDecision)
    assert await setup.desk.await_deferred(deferred.token, timeout_s=1) is None
    setup.office.reviewer.decide("deny", message="no")
    assert await setup.desk.await_deferred(deferred.token, timeout_s=1) == ApprovalDecision(kind="deny", reason="no")


async def test_desk_sends_every_event_once() -> None:
    setup = DeskSetup(([pay("ann", 7)],), office())
    setup.office.reviewer.approves()
    requests: list[Any] = []

    def reply(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/events"):
            requests.append((request.url.path, json.loads(request.content)))
            return httpx.Response(200, json={"added": 1, "repeated": 0, "count": 1})
        return setup.office.respond(request)

    client = setup.office.async_client()
    client._http = httpx.AsyncClient(transport=httpx.MockTransport(reply))
    runner, agent = setup.open(client=client)
    result = await runner.run(agent, user_message="Pay them.")
    (record,) = setup.office.records.values()
    assert {path for path, _ in requests} == {f"/api/v1/runs/{record.run.id}/events"}
    assert {(body["source_format"], body["source"]) for _, body in requests} == {("afk", requests[0][1]["source"])}
    numbered = [one for _, body in requests for one in body["events"]]
    assert [one["seq"] for one in numbered] == list(range(1, len(numbered) + 1))
    kinds = [one["event"]["type"] for one in numbered]
    assert (kinds[0], kinds[-1]) == ("run_started", "run_completed")
    assert {one["event"]["run_id"] for one in numbered} == {result.run_id}
    assert "run_paused" not in [one["event"]["type"] for one in requests[0][1]["events"]]


def test_documented_quick_start_uses_the_desk() -> None:
    page = (CHECKOUT / "docs" / "frameworks.md").read_text(encoding="utf-8")
    block = next(one for one in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE) if "Desk(" in one)
    report = tool(args_model=PayArgs, name="write_report", description="Write.")(lambda args: args.to)
    given = {
        "Agent": Agent,
        "Runner": Runner,
        "model": ScriptedModel(),
        "store": MemoryRows(),
        "config": RunnerConfig(),
    }
    names: dict[str, Any] = {**given, "send_money": PayTool().tool, "write_report": report}
    exec(block, names)  # noqa: S102 - the page's own words
    assert set(names["desk"].tools) == {"pay", "write_report"}
    assert names["agent"].policy_roles == [names["desk"].role]
