"""A draft of rules: its faults by line, and what it would have done."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from sayso.core.clock import new_id
from sayso.core.policy.external import ExternalCall
from sayso.core.records.suspensions import ResumeSpec, RunRef, SuspensionRecord
from sayso.core.records.tools import ToolCall
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.builders import make_person
from tests.service.edge.web.sites import Site, settings_for, visit
from tests.service.edge.web.stories import REFUND, decide
from tests.service.edge.web.test_freezes import make_admin
from tests.service.edge.web.test_gallery import check_page
from tests.service.features.rulebook.test_rules import RULES

DRAFT = "/rules/-/draft"
LOOSE = "version: 1\ndefault: allow\nrules:\n  - {id: no-sync, tool: sync, action: deny}\n"


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    """Settings with rules of every kind."""
    return settings_for(clean_store_url, tmp_path, RULES)


async def ask_for(wiring: Wiring, tool: str, **args: object) -> SuspensionRecord:
    """Ask the desk about a call, as an agent outside does."""
    definition = REFUND.model_copy(update={"name": tool, "parameters": {"type": "object"}})
    run = RunRef(id=new_id("run"), agent="shop", owner="demo", thread_id=new_id("thr"))
    call = ToolCall(call_id="c", index=0, name=tool, args=args)
    return (await wiring.desk.suspend(run, [ExternalCall(call, definition)], ResumeSpec(mode="poll"))).record


async def record_calls(wiring: Wiring) -> SuspensionRecord:
    """Record a denied refund, a read that was allowed, and a sync that waits; return the refund."""
    refund = await ask_for(wiring, "refund_payment", amount=250, note="<b>")
    await decide(wiring, refund, "deny")
    await ask_for(wiring, "read_file", path="x")
    await ask_for(wiring, "sync")
    return refund


async def test_draft_begins_with_the_rules_in_force(settings: Settings) -> None:
    async with visit(settings) as anna:
        await anna.read(DRAFT, 403)
        await anna.send(DRAFT, 403, text=LOOSE)
    async with visit(settings) as anna:
        await make_admin(anna)
        assert "# Reads are harmless." in await anna.read(DRAFT)
        assert 'href="/rules/-/draft"' in await anna.read("/rules")


async def test_draft_with_faults_lists_them_by_line(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        page = await anna.send(DRAFT, 200, text=LOOSE.replace("tool:", "tol:").replace("\n", "\r\n"))
        assert "draft:4:19: rule no-sync: there is no key `tol` here" in page
        assert "recorded calls would change" not in page
        assert "Paste the rules to try." in await anna.send(DRAFT, 422, text=" ")


async def test_draft_shows_what_it_would_have_done(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        assert "No calls are recorded yet" in await anna.send(DRAFT, 200, text=LOOSE)
        refund = await record_calls(anna.wiring)
        page = await anna.send(DRAFT, 200, text=LOOSE)
        for words in (
            "2 of 3 recorded calls would change",
            "1 call stays as it was.",
            "1 asked → allowed; people denied 1 of them",
            "1 asked → denied",
            f'href="/items/{refund.id}/i1"',
            "then by refunds-over-100",
            "now by no-sync",
        ):
            assert words in page
        assert "<b>" not in page
        assert "No recorded call would change" in await anna.send(DRAFT, 200, text=RULES)
        assert (await anna.wiring.rules.list_holders())[0] == anna.wiring.rules.policy().version


async def test_draft_names_calls_that_cannot_be_judged_again(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        refund = await record_calls(anna.wiring)
        keys = anna.wiring.runs._keys
        await anna.wiring.runs._redis.delete(keys.suspension(refund.id))
        page = await anna.send(DRAFT, 200, text=LOOSE)
        assert "1 of 2 recorded calls would change" in page


def test_draft_is_opened_and_read_in_a_browser(site: Site, open_as: Callable[..., Page]) -> None:
    site.act(record_calls)
    site.act(lambda wiring: make_person(wiring, "root", "reviewer", "admin"))
    page = open_as("/rules", name="root")
    page.get_by_role("link", name="Try a draft").click()
    check_page(page, "draft")
    page.get_by_label("Rules").fill(LOOSE)
    page.get_by_role("button", name="Try the draft").click()
    page.get_by_text("1 asked → allowed; people denied 1 of them").click()
    expect(page.get_by_role("link", name="refund_payment")).to_be_visible()
    check_page(page, "replay")
