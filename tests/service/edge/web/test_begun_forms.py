"""A form that was begun takes Approve away, and covers nothing of the call, in a real browser."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from sayso.core.records.suspensions import SuspensionRecord
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.reading import read_to_the_end, settle, unfold
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import REFUND_ARGS, asked, decide, make_ask, place_of

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
NARROW: ViewportSize = {"width": 320, "height": 640}


def is_open(site: Site, place: str) -> bool:
    _, _, suspension_id, item_id = place.split("/")

    async def read(wiring: Wiring) -> bool:
        items = (await wiring.desk.suspensions.read(suspension_id)).record.items
        return next(one for one in items if one.item_id == item_id).open

    return site.act(read)


def expect_no_approval(page: Page) -> None:
    """Approve is neither on the page nor in the reach of the keys."""
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    page.locator("h1").click()
    page.keyboard.press("a")
    page.keyboard.press("Enter")


def test_a_typed_denial_cannot_approve(site: Site, open_as: Open) -> None:
    place = place_of(site.act(asked))
    page = open_as(place)
    page.get_by_text("Deny…", exact=True).click()
    page.get_by_label("Reason").fill("Never")
    settle(page)
    expect_no_approval(page)
    assert is_open(site, place)
    page.get_by_role("link", name="Back").click()
    expect(page.get_by_role("button", name="Approve EUR 250.00")).to_be_visible()
    page.get_by_text("Deny…", exact=True).click()
    expect(page.get_by_label("Reason")).to_have_value("Never")
    settle(page)
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("heading", name="anna denied this")).to_be_visible()


def test_a_begun_question_takes_approve_away(site: Site, open_as: Open) -> None:
    place = place_of(site.act(asked))
    page = open_as(place)
    unfold(page, "Ask or handle")
    question = page.locator("#inquiry")
    question.fill("Which cup?")
    expect_no_approval(page)
    expect(page.locator(".begun")).to_contain_text("You have begun a question.")
    assert is_open(site, place)
    question.fill("")
    expect(page.get_by_role("button", name="Approve EUR 250.00")).to_be_visible()


@pytest.mark.parametrize("key", ["d", "Escape"])
def test_keys_open_and_leave_a_denial(site: Site, open_as: Open, key: str) -> None:
    page = open_as(place_of(site.act(asked)))
    settle(page)
    page.keyboard.press("d")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("Too old")
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    if key == "Escape":
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Approve EUR 250.00")).to_be_visible()
    else:
        settle(page)
        page.keyboard.press("Control+Enter")
        expect(page.get_by_role("heading", name="anna denied this")).to_be_visible()


def test_a_double_click_on_the_opener_denies_nothing(site: Site, open_as: Open) -> None:
    place = place_of(site.act(asked))
    page = open_as(place)
    settle(page)
    page.get_by_text("Deny…", exact=True).dblclick()
    expect(page.get_by_label("Reason")).to_be_focused()
    assert is_open(site, place)


@pytest.mark.parametrize("size", [DESKTOP, PHONE, NARROW], ids=["desktop", "phone", "narrow"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_open_form_leaves_the_call_in_view(site: Site, open_as: Open, size: ViewportSize, scheme: str) -> None:
    page = open_as(place_of(site.act(asked)), viewport=size, color_scheme=scheme)
    settle(page)
    page.get_by_text("Deny…", exact=True).click()
    expect(page.get_by_label("Reason")).to_be_visible()
    bar = page.locator(".decide").bounding_box()
    assert bar is not None
    assert bar["height"] < 0.3 * size["height"]
    assert page.locator(".decide :is(input:not([type=hidden], .unseen), textarea, select):visible").count() == 0
    form, call = page.locator("#deny").bounding_box(), page.locator("#call").bounding_box()
    assert form is not None
    assert call is not None
    assert form["y"] + form["height"] <= call["y"]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_denial_without_scripts_has_no_approve(browser: Browser, site: Site) -> None:
    place = place_of(site.act(asked))
    with browser.new_context(base_url=site.url, viewport=PHONE, java_script_enabled=False) as context:
        context.add_cookies([{"name": "sayso_session_8321", "value": site.token_of("anna"), "url": site.url}])
        page = context.new_page()
        page.goto(place)
        page.get_by_text("Deny…", exact=True).click()
        page.get_by_label("Reason").fill("Never")
        expect(page.get_by_role("button", name="Approve")).to_have_count(0)
        page.get_by_role("link", name="Back").click()
        expect(page.get_by_role("button", name="Approve EUR 250.00")).to_be_visible()
        page.get_by_text("Deny…", exact=True).click()
        expect(page.get_by_label("Reason")).to_have_value("Never")
        page.get_by_role("button", name="Deny").click()
        expect(page.get_by_role("heading", name="anna denied this")).to_be_visible()


def test_the_digits_stand_in_the_page(site: Site, open_as: Open) -> None:
    place = place_of(site.act(lambda wiring: asked(wiring, make_ask(terms={"match_number": True}))))
    page = open_as(place)
    expect(page.locator("#forms").get_by_label("Number")).to_be_visible()
    read_to_the_end(page)
    page.get_by_role("button", name="Approve EUR 250.00").click()
    expect(page.locator("#number-approve")).to_be_focused()
    assert is_open(site, place)


def test_a_quorum_and_what_others_approved_stand_in_the_head(site: Site, open_as: Open) -> None:
    async def prepare(wiring: Wiring) -> str:
        record = await asked(wiring, make_ask(terms={"quorum": {"approve": 2}}))
        await decide(wiring, record, "approve", args={**REFUND_ARGS, "amount": 120})
        return place_of(record)

    page = open_as(site.act(prepare), viewport=PHONE)
    said = ["ben approved amount 120; you see 250.", "Your approval sends nothing yet: 1 more must approve."]
    expect(page.locator(".head .quorum")).to_have_text(said)
    expect(page.locator("#facts")).to_contain_text("1 of 2 have approved; 1 denial is enough")
    expect(page.locator("#differing")).to_be_in_viewport()
    expect(page.locator(".versions a").first).to_have_text("ben’s version")


def test_a_filter_is_kept_on_the_way_back_on_a_phone(site: Site, open_as: Open) -> None:
    site.act(asked)
    page = open_as("/?q=tool:refund_payment", viewport=PHONE)
    page.locator("#rows h3 a").click()
    page.locator(".crumb a").click()
    expect(page).to_have_url(re.compile(r"\?q=tool"))
    expect(page.locator("#q")).to_have_value("tool:refund_payment")


def test_next_item_follows_the_filter_of_the_inbox(site: Site, open_as: Open) -> None:
    async def story(wiring: Wiring) -> list[SuspensionRecord]:
        agents = ("shop", "travel", "shop")
        return [
            await asked(wiring, make_ask(args={**REFUND_ARGS, "amount": 100 + place}), agent=agent)
            for place, agent in enumerate(agents)
        ]

    first, other, last = site.act(story)
    page = open_as("/?q=agent:shop", viewport=PHONE)
    page.goto(place_of(first))
    page.keyboard.press("n")
    expect(page).to_have_url(site.url + place_of(last))
    site.act(lambda wiring: decide(wiring, last, "deny"))
    page.get_by_role("link", name="Next item").click()
    expect(page).to_have_url(site.url + place_of(first))
    site.act(lambda wiring: decide(wiring, first, "deny"))
    page.get_by_role("link", name="Next item").click()
    expect(page).to_have_url(f"{site.url}/?q=agent%3Ashop")
    page.goto("/")
    page.goto(place_of(first))
    page.get_by_role("link", name="Next item").click()
    expect(page).to_have_url(site.url + place_of(other))


def test_cancel_lies_on_nothing(site: Site, open_as: Open) -> None:
    record = site.act(asked)
    page = open_as(f"/runs/{record.run.id}")
    link, heading = page.get_by_role("link", name="Cancel this run"), page.get_by_role("heading", name="Timeline")
    above, below = link.bounding_box(), heading.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] + above["height"] <= below["y"]


def test_pages_name_the_zone_of_their_times(site: Site, open_as: Open) -> None:
    record = site.act(asked)
    page = open_as("/", timezone_id="Asia/Kathmandu", viewport=PHONE)
    expect(page.locator("#inbox .zone")).to_have_text(re.compile("^Times are in Asia/Kat"))
    page.goto(place_of(record))
    expect(page.locator(".now")).to_have_text(
        re.compile(r"\d\d:\d\d GMT\+5:45 if nobody answers")
    )  # perhaps tomorrow there
    expect(page.locator("#timeline [data-hour]").first).to_have_text(re.compile(r"^\d\d:\d\d:\d\d GMT\+5:45$"))


def test_a_text_with_a_line_break_at_its_end_is_shown_as_text(site: Site, open_as: Open) -> None:
    args = {**REFUND_ARGS, "note": "Hello Ann,\n\nthe cup is on its way.\n"}
    page = open_as(place_of(site.act(lambda wiring: asked(wiring, make_ask(args=args)))))
    expect(page.locator("#call")).to_contain_text("the cup is on its way.↵")
    expect(page.locator("#call tr", has_text="the cup")).not_to_contain_text('"')
