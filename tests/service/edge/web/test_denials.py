"""The sheet that denies an item: who reads the reason, presets for it, and what happens then."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from service.core.settings import Settings
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.sites import Site, visit
from tests.service.edge.web.stories import asked, make_ask, place_of

Open = Callable[..., Page]


@pytest.mark.parametrize(
    ("on_deny", "name"),
    [("continue", "Deny and go on"), ("degrade", "Deny and end the run"), ("fail", "Deny and end the run")],
)
async def test_denial_is_named_by_its_effect(settings: Settings, on_deny: str, name: str) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, on_deny=on_deny)
        assert f"{name}</button>" in await anna.read(place_of(record))


async def test_denial_that_needs_others_promises_no_effect(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, make_ask(terms={"quorum": {"deny": 2}}))
        page = await anna.read(place_of(record))
        assert '<button class="danger solid wide" form="deny-form">Deny</button>' in page
        assert '<form method="post" class="deny" id="deny-form"' in page


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_preset_fills_the_reason_and_can_be_edited(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    record = site.act(asked)
    page = open_as(place_of(record), viewport=viewport)
    page.get_by_text("Deny…", exact=True).click()
    expect(page.get_by_label("Reason")).to_be_focused()
    expect(page.get_by_text("The agent gets this text (optional).")).to_be_visible()
    page.get_by_role("button", name="Not now").click()
    page.get_by_role("button", name="Wrong amount").click()
    expect(page.get_by_label("Reason")).to_have_value("Wrong amount")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.get_by_label("Reason").press_sequentially(": 120 is enough")
    page.get_by_role("button", name="Ask me first").click()
    expect(page.get_by_label("Reason")).to_have_value("Wrong amount: 120 is enough\nAsk me first")
    page.get_by_role("button", name="Deny and go on").click()
    expect(page.get_by_role("heading", name="anna denied this")).to_be_visible()
    expect(page.locator("#standing")).to_contain_text("Wrong amount: 120 is enough")


def test_denial_without_scripts_has_no_presets(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(asked)), java_script_enabled=False, viewport=PHONE)
    page.get_by_text("Deny…", exact=True).click()
    expect(page.get_by_role("button", name="Wrong amount")).to_have_count(0)
    page.get_by_label("Reason").fill("Not now")
    page.get_by_role("button", name="Deny and go on").click()
    expect(page.get_by_role("heading", name="anna denied this")).to_be_visible()
