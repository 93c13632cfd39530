"""A small call fits one screen: what follows its arguments folds to a line each. In a real browser."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from sayso.core.records.suspensions import SuspensionRecord
from service.core.wiring import Wiring
from tests.browser import PHONE
from tests.service.edge.web.reading import unfold
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import asked, make_ask, place_of

Open = Callable[..., Page]
LAPTOP: ViewportSize = {"width": 1440, "height": 900}


async def ask_three(wiring: Wiring) -> SuspensionRecord:
    """A run that waits for approval of a call with three arguments."""
    return await asked(wiring, make_ask(args={"order_id": "A-1932", "amount": 250, "currency": "EUR"}))


def bottom_of(page: Page, selector: str) -> float:
    box = page.locator(selector).last.bounding_box()
    assert box is not None
    return box["y"] + box["height"]


@pytest.mark.parametrize(("viewport", "most"), [(PHONE, 260), (LAPTOP, 220)], ids=["phone", "laptop"])
def test_first_value_stands_high_on_the_screen(site: Site, open_as: Open, viewport: ViewportSize, most: int) -> None:
    page = open_as(place_of(site.act(ask_three)), viewport=viewport)
    box = page.locator(".what td").first.bounding_box()
    assert box is not None
    assert box["y"] <= most


def test_call_of_three_arguments_fits_one_screen(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(ask_three)), viewport=LAPTOP)
    bar = page.locator(".decide").bounding_box()
    assert bar is not None
    assert bottom_of(page, ".folded") <= bar["y"]
    expect(page.locator(".folded > summary h2").filter(visible=True)).to_have_text(
        [
            "Why it needs a decision",
            "Terms",
            "The agent says · not checked",
            "Ask or handle",
            "Forward",
            "Comments",
            "Files of reviewers",
            "Timeline",
        ]
    )
    expect(page.locator("#why-line")).to_have_text("Refunds over 100 need a person")
    expect(page.locator(".reason")).to_be_hidden()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_folded_line_opens_by_a_press(site: Site, open_as: Open, scripts: bool) -> None:
    page = open_as(place_of(site.act(ask_three)), java_script_enabled=scripts)
    unfold(page, "Timeline")
    expect(page.locator("#timeline")).to_contain_text("The rules checked 1 call")
    unfold(page, "Comments")
    page.locator("#comment").fill("It is fine.")
    page.get_by_role("button", name="Comment").click()
    expect(page.locator("#comments-line")).to_have_text("anna: It is fine.")


def test_key_opens_the_folded_comment(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(ask_three)))
    page.keyboard.press("m")
    expect(page.locator("#comment")).to_be_focused()


def test_link_of_the_bar_opens_the_folded_question(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(ask_three)), viewport=PHONE)
    page.locator(".others").click()
    page.get_by_role("link", name="Ask or handle").click()
    expect(page.locator("#inquiry")).to_be_visible()
