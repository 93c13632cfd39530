"""A reviewer requests changes on the item's page, and sees the new version beside the last one."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from sayso.core.records.suspensions import SuspensionRecord
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.reading import read_to_the_end
from tests.service.edge.web.sites import Site, visit
from tests.service.edge.web.stories import REFUND_ARGS, ask_value, asked, decide, make_ask, pause, place_of

Open = Callable[..., Page]

AGAIN = {**REFUND_ARGS, "amount": 120.0}


async def ask_again(wiring: Wiring, first: SuspensionRecord) -> SuspensionRecord:
    """The run goes on with what was decided, and its agent makes a new version of the call."""
    record = (await wiring.desk.suspensions.read(first.id)).record
    return await pause(wiring, record, (make_ask(args=AGAIN),))


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_requested_changes_come_back_as_a_new_version(
    site: Site, open_as: Open, viewport: ViewportSize, scripts: bool
) -> None:
    first = site.act(asked)
    page = open_as(place_of(first), viewport=viewport, java_script_enabled=scripts)
    page.get_by_text("Deny…", exact=True).click()
    page.get_by_text("Request changes instead").click()
    page.get_by_label("amount", exact=True).check()
    page.get_by_role("button", name="Request changes").click()
    expect(page.get_by_text("Write what to change. The agent gets this text.").first).to_be_visible()
    expect(page.get_by_label("amount", exact=True)).to_be_checked()
    page.get_by_label("Reason").fill("120 is enough")
    page.get_by_role("button", name="Request changes").click()
    expect(page.get_by_role("heading", name="anna requested changes")).to_be_visible()
    second = site.act(lambda wiring: ask_again(wiring, first))
    page.goto(site.url + place_of(second))
    banner = page.get_by_label("Changes requested", exact=True)
    expect(banner).to_contain_text("A new version: anna requested changes")
    expect(banner).to_contain_text("(1 of 3): 120 is enough")
    expect(banner.locator("del")).to_contain_text("250")
    expect(banner.locator("ins")).to_contain_text("120")
    if scripts:
        read_to_the_end(page)
    page.get_by_role("button", name="Approve EUR 120.00").click()
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()


async def test_version_without_a_difference_says_so(settings: Settings) -> None:
    async with visit(settings) as anna:
        first = await asked(anna.wiring)
        await decide(anna.wiring, first, "deny", message="Less", changes={})
        record = (await anna.wiring.desk.suspensions.read(first.id)).record
        second = await pause(anna.wiring, record, (make_ask(),))
        assert "Nothing differs from that version." in await anna.read(place_of(second))


async def test_only_calls_with_rounds_left_offer_it(settings: Settings) -> None:
    async with visit(settings) as anna:
        offered = await asked(anna.wiring)
        assert "Request changes</button>" in await anna.read(place_of(offered))
        for ask in (make_ask(terms={"rounds": 0}), ask_value()):
            assert "Request changes</button>" not in await anna.read(place_of(await asked(anna.wiring, ask)))
