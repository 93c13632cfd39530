"""Plans that deny every other call, through the desk and the real store."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import Actor, ActorKind, DecisionRequest, Verdict
from sayso.core.records.freezes import Revocations
from sayso.core.records.items import Item
from sayso.core.records.permissions import Plan
from sayso.core.records.suspensions import ResumeSpec
from sayso.core.records.tools import ToolCall, ToolDefinition
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
  - {id: payments, tool: pay, action: request_approval, mandates: {longest: 1h}}
  - {id: reads, tool: "read_*", action: allow}
"""
TOOLS = {name: ToolDefinition(name=name) for name in ("pay", "read_mail", "read_bill")}
PLAN = [{"tool": "read_bill", "free": ["args"]}, {"tool": "pay", "equal": {"args.to": "anna"}, "ask": True}]
NOW = {"for_s": 3600, "count": 10, "outside": "deny"}


@pytest.fixture
async def confined(clean_store_url: str, tmp_path: Path) -> AsyncIterator[tuple[Wiring, Saved]]:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    async with assemble(Settings(home=tmp_path, redis_url=clean_store_url, policy=policy)) as wiring:
        await wiring.reviewers.add("anna", "anna-long-password", ("reviewer",))
        run, plan = run_ref(thread_id="t1"), Plan.model_validate({**NOW, "tools": PLAN})
        yield wiring, await wiring.desk.propose(run, draft_mandate(wiring.rules.policy(), run, plan, TOOLS))


async def put(wiring: Wiring, tool: str, **args: Any) -> tuple[Saved, Item]:
    call = ExternalCall(ToolCall(call_id="c", index=0, name=tool, args=args), TOOLS[tool])
    saved = await wiring.desk.suspend(run_ref(thread_id="t1"), [call], ResumeSpec(mode="poll"))
    return saved, saved.record.items[0]


async def test_confining_plan_is_in_force_without_a_person(confined: tuple[Wiring, Saved]) -> None:
    wiring, proposed = confined
    assert not proposed.record.items[0].open
    use = await wiring.feature(Granting).mandates.find_use(name_mandate(proposed.record.id))
    assert use is not None
    assert use.grant.granters == ()


async def test_confining_plan_denies_what_it_does_not_name(confined: tuple[Wiring, Saved]) -> None:
    wiring, _ = confined
    (_, bill), (_, mail), (_, theft) = [
        await put(wiring, tool, **args)
        for tool, args in (("read_bill", {"n": 1}), ("read_mail", {}), ("pay", {"to": "x"}))
    ]
    assert [one.outcome and one.outcome.verdict for one in (bill, mail, theft)] == [
        Verdict.APPROVED,
        Verdict.DENIED,
        Verdict.DENIED,
    ]
    assert theft.outcome is not None
    assert "outside mandate man_" in (theft.outcome.message or "")


async def test_planned_call_runs_once_a_person_approved_it(confined: tuple[Wiring, Saved]) -> None:
    wiring, _ = confined
    saved, item = await put(wiring, "pay", to="anna")
    assert item.open
    request = DecisionRequest.model_validate({"action": "approve", "digest": item.digest})
    await wiring.desk.decide(saved.record.id, "i1", request, person("anna"))
    redeemed = await wiring.desk.client_redeem(saved.record.id, "i1", "k", Revocations())
    assert redeemed.record.items[0].permit is not None


async def test_calls_are_asked_about_again_after_the_plan_ended(confined: tuple[Wiring, Saved]) -> None:
    wiring, proposed = confined
    await wiring.feature(Granting).mandates.revoke(
        name_mandate(proposed.record.id), Actor(id="demo", kind=ActorKind.AGENT)
    )
    (_, theft), (_, mail) = await put(wiring, "pay", to="x"), await put(wiring, "read_mail")
    assert theft.open
    assert not mail.open
