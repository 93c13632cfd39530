"""The proposals on the page of grants: what they would have allowed, put in force, dismissed, suspended."""

from pathlib import Path

import pytest

from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.suspensions import ResumeSpec, SuspensionRecord
from sayso.core.records.tools import ToolCall
from service.core.settings import Settings
from service.core.wiring import Wiring
from service.features.permissions.desk import propose_learned
from tests.builders import REFUND, person, run_ref
from tests.service.edge.web.sites import settings_for, visit
from workers.outbox import Counting

POLICY = """
version: 1
default: request_approval
rules:
  - id: refunds-under-50
    tool: refund
    when: args.amount < 50
    action: request_approval
    grants: {longest: 7d, count: 50, sum: {of: args.amount, max: 500}, learn: {after: 3, probation: 2}}
"""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    found = settings_for(clean_store_url, tmp_path)
    assert found.policy is not None
    found.policy.write_text(POLICY)
    return found


async def put(wiring: Wiring, amount: object) -> SuspensionRecord:
    call = ToolCall(call_id="c", index=0, name="refund", args={"order": "A", "amount": amount})
    return (await wiring.desk.suspend(run_ref(), [ExternalCall(call, REFUND)], ResumeSpec(mode="poll"))).record


async def decide(wiring: Wiring, amount: object, action: str = "approve") -> None:
    record = await put(wiring, amount)
    request = DecisionRequest.model_validate({"action": action, "digest": record.items[0].digest})
    await wiring.desk.decide(record.id, "i1", request, person("ben"))


async def propose(wiring: Wiring) -> str:
    await wiring.reviewers.add("ben", "a-long-password-1", ("reviewer",))
    for amount in (10, 20, 30):
        await decide(wiring, amount)
    (made,) = await propose_learned(wiring)
    return f"/grants/{made.id}"


async def test_proposal_is_tried_and_put_in_force(settings: Settings) -> None:
    async with visit(settings) as anna:
        place = await propose(anna.wiring)
        page = await anna.read("/grants")
        for words in (
            "on probation",
            "amount at most 30",
            "No like call has come since.",
            "It needs 2 more approvals.",
        ):
            assert words in page
        assert "Put in force" not in page
        await decide(anna.wiring, 25)
        assert "on probation: people have approved 1 of the 2" in await anna.send(place, 409, act="confirm")
        assert 'id="grants-h"' not in await anna.read("/")
        await decide(anna.wiring, 5)
        await put(anna.wiring, 5)
        assert f'href="{place.replace("grants/", "grants#")}"' in (await anna.read("/")).split('id="grants-h"')[1]
        page = await anna.read("/grants")
        assert "It would have allowed 3 calls: people approved 2, edited 0 and denied 0; 1 unanswered." in page
        assert "It may be put in force." in page
        await Counting(anna.wiring).count_waiting()
        assert "0 denials: a grant proposal is ready." in await anna.read("/rules/refunds-under-50")
        assert "a grant proposal is ready" in await anna.read("/insights")
        assert await anna.send(place, act="confirm") == "/grants"
        assert 'id="grants-h"' not in await anna.read("/")
        page = await anna.read("/grants")
        assert "Granted by anna" in page
        assert "proposed by Sayso" in page
        assert (await put(anna.wiring, 30)).items[0].outcome is not None
        assert "a grant proposal is ready" not in await anna.read("/rules/refunds-under-50")


async def test_dismissed_and_suspended_proposals_are_listed_as_over(settings: Settings) -> None:
    async with visit(settings) as anna:
        place = await propose(anna.wiring)
        assert await anna.send(place, act="revoke") == "/grants"
        page = await anna.read("/grants")
        assert "revoked by anna" in page
        assert "on probation" not in page
        for amount in (10, 20, 30):
            await decide(anna.wiring, amount)
        await propose_learned(anna.wiring)
        await decide(anna.wiring, 15, "deny")
        page = await anna.read("/grants")
        assert "suspended by a denial" in page
        assert "a call that it covers" in page


async def test_suspended_grant_is_reinstated_on_its_page(settings: Settings) -> None:
    async with visit(settings) as anna:
        place = await propose(anna.wiring)
        assert "Reinstate" not in await anna.read("/grants")
        assert "reinstated: it is on probation" in await anna.send(place, 409, act="reinstate")
        await decide(anna.wiring, 15, "deny")
        page = await anna.read("/grants")
        assert "Read that call before you reinstate one" in page
        assert "ben denied" in page
        assert await anna.send(place, act="reinstate") == "/grants"
        page = await anna.read("/grants")
        assert "on probation" in page
        assert "anna reinstated it" in page
        assert "Read that call" not in page
