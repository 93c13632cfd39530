"""What a grant covers, through the desk and the real store: the arguments that its people saw, and no others."""

from typing import Any

import pytest

from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.items import Item
from sayso.core.records.permissions import Grant
from sayso.core.records.suspensions import ResumeSpec
from sayso.core.records.tools import ToolCall, ToolDefinition
from service.core.settings.limits import TENANT
from service.core.store.keys import TenantKeys
from service.core.wiring import Wiring
from service.features.permissions.desk import Granting
from tests.builders import person, run_ref

POLICY = """
version: 1
default: request_approval
rules:
  - {id: caches, tool: purge_cache, action: request_approval, grants: {longest: 1d}}
  - {id: refunds, tool: refund, action: request_approval, grants: {longest: 1d, sum: {of: args.amount, max: 1000}}}
"""


@pytest.fixture
def rules() -> str:
    return POLICY


@pytest.fixture
async def wiring(wiring: Wiring) -> Wiring:
    await wiring.reviewers.add("anna", "anna-long-password", ("reviewer",))
    return wiring


async def ask(wiring: Wiring, tool: str, args: dict[str, Any]) -> tuple[str, Item]:
    call = ExternalCall(ToolCall(call_id="c", index=0, name=tool, args=args), ToolDefinition(name=tool))
    record = (await wiring.desk.suspend(run_ref(), [call], ResumeSpec(mode="poll"))).record
    return record.id, record.items[0]


async def grant(wiring: Wiring, tool: str, args: dict[str, Any], **given: Any) -> Grant:
    suspension_id, item = await ask(wiring, tool, args)
    asked = {"action": "approve", "digest": item.digest, "grant": {"for_s": 3600, **given}}
    decision = DecisionRequest.model_validate(asked)
    decided = (await wiring.desk.decide(suspension_id, item.item_id, decision, person("anna"))).record.items[0]
    return (await wiring.feature(Granting).find_use(decided.decisions[0].grant_id)).grant


async def runs(wiring: Wiring, tool: str, args: dict[str, Any]) -> bool:
    return not (await ask(wiring, tool, args))[1].open


async def test_grant_of_a_call_without_arguments_covers_none_with_some(wiring: Wiring) -> None:
    await grant(wiring, "purge_cache", {})
    assert await runs(wiring, "purge_cache", {})
    _, item = await ask(wiring, "purge_cache", {"scope": "everything", "force": True})
    assert item.open
    assert "does not cover it: it does not name args.scope and args.force" in (item.prompt.reason or "")


async def test_grant_of_a_refund_covers_none_with_another_receiver(wiring: Wiring) -> None:
    await grant(wiring, "refund", {"customer": "C-1", "amount": 10})
    assert await runs(wiring, "refund", {"customer": "C-1", "amount": 20}), "the summed argument may vary"
    assert not await runs(wiring, "refund", {"customer": "C-1", "amount": 10, "payout_to": "X"})
    assert not await runs(wiring, "refund", {"customer": "C-2", "amount": 10})


async def test_grant_of_any_arguments_is_given_as_such_alone(wiring: Wiring) -> None:
    given = await grant(wiring, "purge_cache", {}, free=["args"])
    assert given.scope == "any"
    assert await runs(wiring, "purge_cache", {"scope": "everything", "force": True})


async def test_grant_stored_in_the_form_of_before_is_read_as_closed(wiring: Wiring) -> None:
    made = await grant(wiring, "refund", {"customer": "C-1", "amount": 10}, same=["args.customer"])
    before = made.model_copy(update={"constraints": made.constraints[1:]})
    raw = before.model_dump_json(exclude={"rest_digest", "free"})
    await wiring.runs._redis.hset(TenantKeys(TENANT).grants, made.id, raw)
    assert await runs(wiring, "refund", {"customer": "C-1", "amount": 10})
    _, item = await ask(wiring, "refund", {"customer": "C-1", "amount": 10, "payout_to": "X"})
    assert item.open
    assert f"Grant {made.id} does not cover it: it does not name args.payout_to" in (item.prompt.reason or "")
    assert (item.prompt.reason or "").endswith("Grant such calls again.")
