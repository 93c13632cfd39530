"""The operate page shows the doctor's findings, green while they are fresh; freezing asks once."""

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from service.core.settings import Settings
from service.core.wiring import Wiring
from service.features.operate.pages import Checks
from tests.service.edge.web.sites import PASSWORD, Site, visit
from tests.service.edge.web.stories import asked, decide
from tests.service.edge.web.test_freezes import make_admin


async def test_operate_page_has_a_line_for_each_finding(settings: Settings) -> None:
    async with visit(settings) as anna:
        page = await anna.read("/operate")
        for words in ("Store", "Clock", "Workers", "Queue", "Deliveries", "Webhooks and dead letters", "Rules"):
            assert f"<strong>{words}</strong>" in page, words
        parts = re.findall(r"<strong>([^<]*)</strong>", page)
        assert [part for part in parts if not part[:1].isupper()] == [], "each part has a name for people"
        assert '<li class="ok">' in page
        assert "No worker runs, so approved calls do not start." in page
        assert "No run waits for a worker." in page


async def test_findings_are_kept_for_some_seconds(settings: Settings) -> None:
    async with visit(settings) as anna:
        checks = Checks()
        first = await checks.find(anna.wiring, {})
        assert await checks.find(anna.wiring, {}) is first
        assert await checks.find(anna.wiring, {}, fresh=True) is not first


async def test_runs_without_a_worker_are_counted(settings: Settings) -> None:
    async with visit(settings) as anna:
        await decide(anna.wiring, await asked(anna.wiring), "approve")
        checked = await Checks().find(anna.wiring, {})
        (queue,) = [one for one in checked.findings if one.part == "queue"]
        assert "for a worker, the first for" in queue.message


async def test_freeze_is_recorded_once_it_is_confirmed(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        await asked(anna.wiring)
        form: dict[str, Any] = {"kind": "tool", "named": "refund_payment", "reason": "Wrong amounts"}
        assert "It stops 1 waiting" in await anna.send("/operate", 200, **form)
        assert (await anna.wiring.activity.read_page(0, 10)).entries == []
        await anna.send("/operate", **form, confirm="tool:refund_payment")
        (entry,) = (await anna.wiring.activity.read_page(0, 10)).entries
        facts = {**form, "changed": "frozen: +tool:refund_payment"}
        assert (entry.act, entry.by, entry.data) == ("frozen", "anna", facts)


def test_admin_freezes_a_tool_from_the_list(site: Site, open_as: Callable[..., Page]) -> None:
    async def begin(wiring: Wiring) -> None:
        await wiring.reviewers.add("root", PASSWORD, ("reviewer", "admin"))
        await asked(wiring)

    site.act(begin)
    page = open_as("/operate", name="root")
    page.get_by_label("What to freeze").select_option("tool:refund_payment")
    page.get_by_label("Reason").fill("Wrong amounts since noon")
    page.get_by_role("button", name="Freeze…").click()
    expect(page.get_by_text("It stops 1 waiting and 0 about to start.")).to_be_visible()
    expect(page.locator("#frost")).not_to_contain_text("refund_payment")
    page.get_by_role("button", name="Freeze the tool refund_payment").click()
    expect(page.locator("#now")).to_contain_text("the tool refund_payment, by root")
    expect(page.locator("#now")).to_contain_text("Wrong amounts since noon")
    page.get_by_role("button", name="Unfreeze").click()
    expect(page.get_by_text("Nothing is frozen.")).to_be_visible()
