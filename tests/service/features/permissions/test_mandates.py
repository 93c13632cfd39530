"""The item of a plan, and mandates on the page of grants."""

from pathlib import Path

import pytest

from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.permissions import Plan
from sayso.core.records.suspensions import SuspensionRecord
from sayso.features.permissions.plans import draft_mandate
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.builders import REFUND, person, run_ref
from tests.service.edge.web.sites import settings_for, visit

POLICY = """
version: 1
default: request_approval
rules:
  - id: refunds
    tool: refund
    action: request_approval
    mandates: {longest: 7d}
"""
HOSTILE = "<b>Bold</b>\u202egpj"
PLAN = Plan.model_validate(
    {
        "title": "Refund the returns",
        "for_s": 7200,
        "count": 4,
        "sum": 500,
        "tools": [
            {
                "tool": "refund",
                "one_of": {"args.order": ["A-1", HOSTILE]},
                "at_most": {"args.amount": 200},
                "free": ["args.note"],
                "sum": {"of": "args.amount"},
            }
        ],
    }
)


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    return settings_for(clean_store_url, tmp_path, POLICY)


async def propose(wiring: Wiring) -> SuspensionRecord:
    run = run_ref(thread_id="returns", title=PLAN.title)
    item = draft_mandate(wiring.rules.policy(), run, PLAN, {"refund": REFUND})
    return (await wiring.desk.propose(run, item)).record


async def test_item_says_what_would_run_without_asking(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await propose(anna.wiring)
        page = await anna.read(f"/items/{record.id}/i1")
        assert "A plan to approve" in page
        assert "What would run without asking" in page
        assert "amount at most 200" in page
        assert "any note" in page
        assert "Together at most 4 calls and 500 amount in sum, for 2 h from the approval." in page
        assert "Every other call of this conversation is asked about" in page
        assert "<b>Bold</b>" not in page
        assert "&lt;b&gt;Bold&lt;/b&gt;" in page
        assert "\u202e" not in page, "hidden characters are shown by signs"
        assert "Grant…" not in page
        assert await anna.send(f"/items/{record.id}/i1", answer="approve", digest=record.items[0].digest)
        assert "What the plan says" in await anna.read(f"/items/{record.id}/i1")


async def test_page_lists_mandates_and_revokes_one(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert "No plan of an agent is in force." in await anna.read("/grants")
        record = await propose(anna.wiring)
        decision = DecisionRequest(action="approve", digest=record.items[0].digest)
        await anna.wiring.desk.decide(record.id, "i1", decision, person("ben"))
        page = await anna.read("/grants")
        assert "Refund the returns" in page
        assert "demo, requested by demo, in thread returns: up to 4 calls and up to 500 in sum of this plan" in page
        assert "0 calls ran · 4 calls left and 500 in sum left" in page
        mandate_id = record.id.replace("sus_", "man_")
        assert "Choose one of the buttons" in await anna.send(f"/grants/{mandate_id}", 422, act="confirm")
        assert await anna.send(f"/grants/{mandate_id}", act="revoke") == "/grants"
        page = await anna.read("/grants")
        assert "No plan of an agent is in force." in page
        assert "revoked by anna" in page
