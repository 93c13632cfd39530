"""Nothing lets a call run before the end of every value and of every long text was in view: in a real browser."""

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect
from pydantic import JsonValue

from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.reading import begin_edit, press_approve, read_to_the_end
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import ask_value, asked, make_ask, place_of

SHELL = ToolDefinition(name="shell")
LONG = "\n".join(f"echo {place}" for place in range(400)) + "\nrm -rf / #the-end"

Open = Callable[..., Page]


async def ask_shell(wiring: Wiring, **args: JsonValue) -> SuspensionRecord:
    """A run that waits for approval of a long script."""
    return await asked(wiring, make_ask(SHELL, {"command": LONG, **args}))


def approve(page: Page) -> Locator:
    return page.locator(".approval .wide")


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_approve_is_disabled_until_the_end_was_in_view(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    page = open_as(place_of(site.act(ask_shell)), viewport=viewport)
    expect(approve(page)).to_be_disabled()
    expect(page.locator(".begin, .others").filter(visible=True).first).to_be_visible()
    expect(approve(page)).to_have_text("Approve · 1 text not yet shown")
    page.locator(".what .read td").evaluate("node => scrollTo(0, node.getBoundingClientRect().bottom + scrollY - 100)")
    expect(approve(page)).to_be_enabled()
    expect(approve(page)).to_have_text("Approve")
    press_approve(page)
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()


def test_keyboard_reaches_the_end_and_approves(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(ask_shell)))
    approve(page).focus()
    page.keyboard.press("Enter")
    expect(page.locator(".what .read td")).to_be_focused()
    for _ in range(200):
        if approve(page).is_enabled():
            break
        page.keyboard.press("PageDown")
        page.evaluate("() => new Promise(requestAnimationFrame)")  # a key during a scroll may not scroll further
    expect(approve(page)).to_be_enabled()
    approve(page).press("Enter")
    expect(page.locator(".armed")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()


def test_show_next_visits_every_text(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(lambda wiring: ask_shell(wiring, second=LONG, third="short"))))
    expect(approve(page)).to_have_text("Approve · 3 texts not yet shown")
    read_to_the_end(page)
    expect(approve(page)).to_be_enabled()


def test_review_and_value_wait_for_the_end_and_denial_does_not(site: Site, open_as: Open) -> None:
    valued = site.act(lambda wiring: asked(wiring, ask_value(SHELL, {"command": LONG}, target_arg="code")))
    page = open_as(place_of(valued))
    expect(page.get_by_role("button", name="Send")).to_have_attribute("aria-disabled", "true")
    page.goto(place_of(site.act(ask_shell)))
    begin_edit(page)
    page.locator("#f0").fill(json.dumps({"command": LONG + "!"}))
    page.get_by_role("button", name="Review 1 change").click()
    expect(page.locator(".edited .wide")).to_have_text("Approve with 1 change · 1 text not yet shown")
    page.get_by_role("button", name="Back").click()
    page.get_by_text("Deny…", exact=True).click()
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("heading", name="anna denied this")).to_be_visible()


def test_long_prompt_must_be_read_to_its_end(site: Site, open_as: Open) -> None:
    ask = make_ask(SHELL, {"command": "ls"}, prompt={"body": LONG})
    page = open_as(place_of(site.act(lambda wiring: asked(wiring, ask))))
    expect(approve(page)).to_be_disabled()
    page.locator(".prompt .body .end").scroll_into_view_if_needed()
    expect(approve(page)).to_be_enabled()


def test_form_sent_around_the_button_is_blocked(site: Site, open_as: Open) -> None:
    record = site.act(ask_shell)
    page = open_as(place_of(record))
    page.locator(".approval .wide").evaluate("button => { button.removeAttribute('aria-disabled'); button.click() }")
    page.reload()
    expect(approve(page)).to_be_disabled()


def test_read_texts_stay_read_after_a_reload(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(ask_shell)), viewport=PHONE)
    read_to_the_end(page)
    page.reload()
    expect(approve(page)).to_be_enabled()


def test_refreshed_page_still_waits_for_the_end(site: Site, open_as: Open) -> None:
    record = site.act(lambda wiring: asked(wiring, *(make_ask(SHELL, {"command": LONG}, index=i) for i in range(2))))
    page = open_as(place_of(record))
    other = open_as(place_of(record, "i2"), name="ben")
    other.get_by_text("Deny…", exact=True).click()
    other.get_by_role("button", name="Deny").click()
    expect(page.locator("#siblings")).to_contain_text("denied")
    expect(approve(page)).to_be_disabled()


def test_page_without_scripts_can_be_approved(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(ask_shell)), java_script_enabled=False)
    expect(page.locator(".what .read td")).to_contain_text("#the-end")
    expect(approve(page)).to_have_text("Approve")
    press_approve(page)
    expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()


def test_long_runs_of_blanks_are_collapsed_and_counted(site: Site, open_as: Open) -> None:
    text = "ls" + "\n" * 900 + "rm -rf /" + " " * 3000 + "tmp"
    page = open_as(place_of(site.act(lambda wiring: asked(wiring, make_ask(SHELL, {"command": text})))))
    cell = page.locator(".what .read td")
    expect(cell).to_contain_text("⟨899 blank lines⟩")
    expect(cell).to_contain_text("rm -rf /⟨3000 spaces⟩tmp")
    expect(approve(page)).to_be_enabled()
