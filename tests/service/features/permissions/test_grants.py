"""Granting like calls on an item's page, offering another call, and the page of grants."""

import re
from pathlib import Path
from typing import Any

import pytest

from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.suspensions import ResumeSpec, SuspensionRecord
from sayso.core.records.tools import ToolCall
from service.core.settings import Settings
from service.core.wiring import Wiring
from service.features.permissions.desk import Granting
from tests.builders import REFUND, person, run_ref
from tests.service.edge.web.sites import settings_for, visit

POLICY = """
version: 1
default: request_approval
rules:
  - id: refunds
    tool: refund
    action: request_approval
    grants: {longest: 7d, count: 50, sum: {of: args.amount, max: 5000}, by: args.order}
"""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    return settings_for(clean_store_url, tmp_path, POLICY)


async def put(wiring: Wiring, amount: object, order: str = "A") -> SuspensionRecord:
    call = ToolCall(call_id="c", index=0, name="refund", args={"order": order, "amount": amount})
    return (await wiring.desk.suspend(run_ref(), [ExternalCall(call, REFUND)], ResumeSpec(mode="poll"))).record


def find_seen(page: str) -> str:
    found = re.search(r'name="seen" value="([0-9a-f]{64})"', page)
    assert found is not None, page
    return found[1]


async def test_sentence_is_shown_before_a_grant_is_sent(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await put(anna.wiring, 100)
        place = f"/items/{record.id}/i1"
        assert "let like calls run without asking" in await anna.read(place)
        given: dict[str, Any] = {"answer": "approve", "digest": record.items[0].digest, "span": "3600", "count": "10"}
        given |= {"sum": "500", "most.args.amount": "200"}
        shown = await anna.send(place, 200, step="grant", **given)
        assert "Runs without asking:" in shown
        assert "amount at most 200" in shown
        assert "up to 10 times and up to 500 amount in sum" in shown
        changed = await anna.send(place, 422, **{**given, "with": "grant", "seen": find_seen(shown), "count": "11"})
        assert "The sentence has changed. Show it again before you send it." in changed
        assert await anna.send(place, **{**given, "with": "grant", "seen": find_seen(shown)}) == place
        assert (await put(anna.wiring, 150)).items[0].outcome is not None
        assert (await put(anna.wiring, 150, order="B")).items[0].outcome is None
        listed = await anna.read("/grants")
        for words in ("in force", "1 call ran", "9 calls left and 350 amount left", "Granted by anna"):
            assert words in listed
        (use,) = await anna.wiring.feature(Granting).list_uses()
        refused = await anna.send(f"/grants/{use.grant.id}", 422, act="none")
        assert "Choose one of the buttons on this page" in refused
        assert await anna.send(f"/grants/{use.grant.id}", act="revoke") == "/grants"
        assert "revoked by anna" in await anna.read("/grants")
        assert (await put(anna.wiring, 150)).items[0].outcome is None


@pytest.mark.parametrize(
    ("ticked", "words"),
    [
        ({"same.args.order": "yes"}, "order &#34;A&#34; and no other arguments"),
        ({}, "any amount, order &#34;A&#34; and no other arguments"),
    ],
)
async def test_sentence_says_that_no_other_arguments_run(
    settings: Settings, ticked: dict[str, str], words: str
) -> None:
    async with visit(settings) as anna:
        record = await put(anna.wiring, 100)
        given = {"answer": "approve", "digest": record.items[0].digest, "span": "3600", "count": "10"}
        assert words in await anna.send(f"/items/{record.id}/i1", 200, step="grant", **given, **ticked)


async def test_argument_whose_box_is_cleared_is_named_as_free(settings: Settings) -> None:
    assert settings.policy is not None
    settings.policy.write_text(POLICY.replace("by: args.order", "people: 1"))
    async with visit(settings) as anna:
        record = await put(anna.wiring, 100)
        given = {"answer": "approve", "digest": record.items[0].digest, "span": "3600", "same.args.amount": "yes"}
        shown = await anna.send(f"/items/{record.id}/i1", 200, step="grant", **given)
        assert "amount 100, any or no order and no other arguments" in shown


async def test_offer_is_sent_with_a_denial(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await put(anna.wiring, 900)
        place = f"/items/{record.id}/i1"
        given: dict[str, Any] = {"answer": "deny", "digest": record.items[0].digest, "most.args.amount": "200"}
        shown = await anna.send(place, 200, step="offer", **given)
        assert "Runs once without asking:" in shown
        assert "amount at most 200 and otherwise the same arguments, once" in shown
        assert await anna.send(place, **{**given, "with": "offer", "seen": find_seen(shown)}) == place
        assert "runs once without asking" in await anna.read(place)
        assert (await put(anna.wiring, 200)).items[0].outcome is not None


async def test_grant_beyond_the_rule_says_so_and_keeps_the_input(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await put(anna.wiring, 100)
        given = {"answer": "approve", "digest": record.items[0].digest, "span": "3600", "count": "51"}
        refused = await anna.send(f"/items/{record.id}/i1", 422, step="grant", **given)
        assert "at most 50 calls, not 51" in refused
        assert 'value="51"' in refused


async def test_nothing_is_offered_where_the_rule_grants_nothing(settings: Settings) -> None:
    assert settings.policy is not None
    settings.policy.write_text("version: 1\ndefault: request_approval\nrules: []\n")
    async with visit(settings) as anna:
        record = await put(anna.wiring, 100)
        page = await anna.read(f"/items/{record.id}/i1")
        assert "let like calls run" not in page
        assert "offer another one" not in page


async def test_second_person_grants_on_the_page(settings: Settings) -> None:
    assert settings.policy is not None
    settings.policy.write_text(POLICY.replace("by: args.order", "people: 2"))
    async with visit(settings) as anna:
        record = await put(anna.wiring, 100)
        asked = {"action": "approve", "digest": record.items[0].digest, "grant": {"for_s": 3600}}
        await anna.wiring.reviewers.add("ben", "a-long-password-1", ("reviewer",))

        await anna.wiring.desk.decide(record.id, "i1", DecisionRequest.model_validate(asked), person("ben"))
        assert "Grant it too" in await anna.read("/grants")
        (use,) = await anna.wiring.feature(Granting).list_uses()
        await anna.send(f"/grants/{use.grant.id}", act="confirm")
        assert "Granted by ben and anna" in await anna.read("/grants")
        assert (await put(anna.wiring, 100)).items[0].outcome is not None
