"""Mandates through the desk and the real store: approved once, spent together, and never beyond the plan."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.freezes import Revocations
from sayso.core.records.permissions import GrantState, Mandate, Plan
from sayso.core.records.suspensions import ResumeSpec, RunStatus, SuspensionRecord
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.errors import IllegalTransition, InvalidInput, NotFound, SelfApproval, Withdrawn
from sayso.features.permissions.making import name_mandate
from sayso.features.permissions.plans import draft_mandate
from service.assembly import assemble
from service.core.settings import Settings
from service.core.store.suspensions.saving import Saved
from service.core.wiring import Wiring
from service.features.permissions.desk import Granting
from tests.builders import person, run_ref

POLICY = """
version: 1
default: request_approval
rules:
  - id: refunds
    tool: refund
    action: request_approval
    mandates: {longest: 1d}
  - id: large
    priority: 200
    tool: refund
    when: args.amount > 500
    action: request_approval
  - id: reads
    tool: "read_*"
    action: allow
  - id: never
    tool: drop
    action: deny
"""
POLL = ResumeSpec(mode="poll")
TOOLS = {
    name: ToolDefinition(name=name, description=f"The tool {name}.", parameters={"type": "object"})
    for name in ("refund", "read_order", "read_all", "drop", "other")
}
REFUND = {"tool": "refund", "equal": {"args.order": "A"}, "at_most": {"args.amount": 300}, "sum": {"of": "args.amount"}}
READ = {"tool": "read_order", "free": ["args.order"]}


@pytest.fixture
async def wiring(clean_store_url: str, tmp_path: Path) -> AsyncIterator[Wiring]:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    async with assemble(Settings(home=tmp_path, redis_url=clean_store_url, policy=policy)) as wired:
        for name in ("anna", "ben"):
            await wired.reviewers.add(name, f"{name}-long-password", ("reviewer",))
        yield wired


def write_plan(*tools: dict[str, Any], **limits: Any) -> Plan:
    return Plan.model_validate({"for_s": 3600, "count": 10, "tools": tools or (REFUND, READ), **limits})


async def propose(wiring: Wiring, plan: Plan | None = None, thread: str = "t1", key: str | None = None) -> Saved:
    run = run_ref(thread_id=thread)
    item = draft_mandate(wiring.rules.policy(), run, plan or write_plan(), TOOLS)
    return await wiring.desk.propose(run, item, key, {})


async def decide(wiring: Wiring, record: SuspensionRecord, by: str = "anna", action: str = "approve") -> Saved:
    request = DecisionRequest.model_validate({"action": action, "digest": record.items[0].digest})
    return await wiring.desk.decide(record.id, "i1", request, person(by))


async def make(wiring: Wiring, plan: Plan | None = None, thread: str = "t1") -> Mandate:
    record = (await propose(wiring, plan, thread)).record
    await decide(wiring, record)
    use = await wiring.feature(Granting).mandates.find_use(name_mandate(record.id))
    assert use is not None
    return use.grant


async def put(wiring: Wiring, *calls: tuple[str, dict[str, Any]], thread: str = "t1", owner: str = "demo") -> Saved:
    made = [
        ExternalCall(ToolCall(call_id="c", index=index, name=name, args=args), TOOLS[name])
        for index, (name, args) in enumerate(calls)
    ]
    return await wiring.desk.suspend(run_ref(owner, thread_id=thread), made, POLL)


def refund(amount: object = 100, order: str = "A", **more: object) -> tuple[str, dict[str, Any]]:
    return "refund", {"order": order, "amount": amount, **more}


def verdicts(saved: Saved) -> list[str]:
    return [str(item.outcome.verdict) if item.outcome else "asked" for item in saved.record.items]


async def redeem(wiring: Wiring, saved: Saved) -> Saved:
    return await wiring.desk.client_redeem(saved.record.id, "i1", "k", Revocations())


async def test_plan_is_an_ordinary_item_and_silent_until_approved(wiring: Wiring) -> None:
    proposed = await propose(wiring)
    (item,) = proposed.record.items
    assert (item.tool.name, item.allowed, item.terms.rule_id) == ("mandate", ("approve", "deny"), "refunds")
    assert verdicts(await put(wiring, refund(), ("read_order", {}))) == ["asked", "approved"]
    await decide(wiring, proposed.record)
    assert verdicts(await put(wiring, refund(), ("read_order", {"order": "A"}))) == ["approved", "approved"]


async def test_inside_nothing_asks_and_outside_everything_does(wiring: Wiring) -> None:
    made = await make(wiring)
    outside = [refund(301), refund(order="B"), refund(note="x"), ("read_all", {}), ("read_order", {"all": True})]
    for call in outside:
        saved = await put(wiring, call)
        assert verdicts(saved) == ["asked"], call
        assert str(saved.record.items[0].prompt.reason).endswith(f"It is outside mandate {made.id}.")
    assert verdicts(await put(wiring, ("drop", {}))) == ["denied"]
    assert verdicts(await put(wiring, refund(), thread="t2")) == ["asked"], "another conversation"
    assert verdicts(await put(wiring, ("read_all", {}), thread="t2")) == ["approved"], "the rules as they are"
    assert verdicts(await put(wiring, refund(), owner="other")) == ["asked"], "another key"


async def test_calls_spend_the_mandate_together(wiring: Wiring) -> None:
    made = await make(wiring, write_plan(REFUND, READ, count=3, sum=250))
    assert verdicts(await put(wiring, refund(200), refund(51), refund(50))) == ["approved", "asked", "approved"]
    assert verdicts(await put(wiring, ("read_order", {}), ("read_order", {}))) == ["approved", "asked"]
    use = await wiring.feature(Granting).mandates.find_use(made.id)
    assert use is not None
    assert (use.calls, use.total) == (3, 250_000_000)
    assert use.last_ms is not None


async def test_64_at_once_never_overdraw(wiring: Wiring) -> None:
    await make(wiring, write_plan(REFUND | {"count": 40}, count=30, sum=91))
    asked = await asyncio.gather(*(put(wiring, refund(7)) for _ in range(64)), return_exceptions=True)
    allowed = [one for one in asked if isinstance(one, Saved) and verdicts(one) == ["approved"]]
    assert len(allowed) == 13, "13 times 7 are 91"
    assert not [one for one in asked if isinstance(one, BaseException)]


async def test_call_that_does_not_run_gives_its_share_back(wiring: Wiring) -> None:
    await make(wiring, write_plan(REFUND, count=1))
    first = await put(wiring, refund())
    assert verdicts(await put(wiring, refund())) == ["asked"]
    await wiring.desk.cancel(first.record.run.id, person("anna"))
    assert verdicts(await put(wiring, refund())) == ["approved"]


async def test_revoked_mandate_stops_calls_that_have_not_started(wiring: Wiring) -> None:
    made = await make(wiring)
    waiting, started = await put(wiring, refund()), await put(wiring, refund())
    await redeem(wiring, started)
    revoked = await wiring.feature(Granting).mandates.revoke(made.id, person("ben"))
    assert revoked.revoked_by == "ben"
    assert await wiring.feature(Granting).mandates.revoke(made.id, person("anna")) == revoked, (
        "repeated, it changes nothing"
    )
    with pytest.raises(Withdrawn, match=f"Mandate {made.id}, which allowed it, no longer does"):
        await redeem(wiring, waiting)
    assert verdicts(await put(wiring, refund(), ("read_all", {}))) == ["asked", "approved"]
    with pytest.raises(NotFound):
        await wiring.feature(Granting).mandates.revoke("man_x", person("ben"))


async def test_call_allowed_before_asks_once_a_mandate_excludes_it(wiring: Wiring) -> None:
    allowed, approved = await put(wiring, ("read_all", {})), await put(wiring, refund(order="B"))
    await decide(wiring, approved.record)
    made = await make(wiring)
    with pytest.raises(Withdrawn, match=f"It is outside mandate {made.id}"):
        await redeem(wiring, allowed)
    assert await redeem(wiring, approved), "a person approved it"


async def test_mandate_does_not_outlive_its_reviewer(wiring: Wiring) -> None:
    await make(wiring)
    await wiring.reviewers.deactivate("anna")
    assert verdicts(await put(wiring, refund(), ("read_all", {}))) == ["asked", "approved"]


async def test_mandate_does_not_outlive_its_rule_or_definition(wiring: Wiring) -> None:
    made = await make(wiring)
    call = ToolCall(call_id="c", index=0, name="refund", args=refund()[1])
    other = ExternalCall(call, TOOLS["refund"].model_copy(update={"description": "Another tool."}))
    assert verdicts(await wiring.desk.suspend(run_ref(thread_id="t1"), [other], POLL)) == ["asked"]
    change_rules(wiring, POLICY.replace("longest: 1d", "longest: 2d"))
    assert wiring.feature(Granting).mandates.find_void(made)
    assert verdicts(await put(wiring, refund(), ("read_order", {}))) == ["asked", "approved"]


def change_rules(wiring: Wiring, text: str) -> None:
    wiring.settings.policy.write_text(text)


async def test_plan_under_changed_rules_cannot_be_approved(wiring: Wiring) -> None:
    record = (await propose(wiring)).record
    change_rules(wiring, POLICY.replace("longest: 1d", "longest: 2d"))
    with pytest.raises(InvalidInput, match="The rule refunds has changed since the plan was proposed"):
        await decide(wiring, record)
    await decide(wiring, record, action="deny")
    assert await wiring.feature(Granting).mandates.find_use(name_mandate(record.id)) is None


async def test_requester_does_not_approve_their_own_plan(wiring: Wiring) -> None:
    record = (await propose(wiring)).record
    with pytest.raises(SelfApproval):
        await decide(wiring, record, by="demo")


async def test_approved_plan_has_no_call_to_run_and_its_run_ends(wiring: Wiring) -> None:
    saved = await propose(wiring)
    await decide(wiring, saved.record)
    with pytest.raises(IllegalTransition):
        await redeem(wiring, saved)
    ended = await wiring.desk.tick(saved.record.id)
    assert ended is not None
    run = await wiring.runs.read(saved.record.run.id)
    assert (run.status, run.error) == (RunStatus.COMPLETED, None)


async def test_same_key_proposes_once(wiring: Wiring) -> None:
    first, again = await propose(wiring, key="p1"), await propose(wiring, key="p1")
    assert first.record.id == again.record.id


async def test_mandate_of_one_run_covers_it_alone_and_ends_with_it(wiring: Wiring) -> None:
    run = run_ref(thread_id="t1")
    item = draft_mandate(wiring.rules.policy(), run_ref(thread_id="t1"), write_plan(), TOOLS, run.id)
    record = (await wiring.desk.propose(run_ref(thread_id="t1"), item)).record
    await decide(wiring, record)
    assert verdicts(await put(wiring, refund())) == ["asked"]
    call = ExternalCall(ToolCall(call_id="c", index=0, name="refund", args=refund()[1]), TOOLS["refund"])
    saved = await wiring.desk.suspend(run, [call], POLL)
    assert verdicts(saved) == ["approved"]
    await wiring.desk.cancel(run.id, person("anna"))
    (use,) = await wiring.feature(Granting).mandates.list_uses()
    assert use.grant.find_state(await wiring.feature(Granting).mandates.now_ms()) is GrantState.ENDED
