"""The acting user sees their call as the agent will make it, and confirms or declines it on its page."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from sayso.core.clock import new_id
from sayso.core.records.suspensions import RunRef, SuspensionRecord, Who
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import REFUND, REFUND_ARGS, STATE, asked, decide, make_ask, pause, place_of

SIZES = pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
BOTH = {"confirm_by": "anna", "reviewers": ["ben"]}


async def ask_for_anna(wiring: Wiring, **terms: Any) -> SuspensionRecord:
    """A refund that an agent makes for anna, proven by a token."""
    await wiring.runs.save_definitions([REFUND])
    who = Who(person="anna", issuer="https://id.example.com")
    run = RunRef(id=new_id("run"), agent="support-bot", owner="demo", thread_id=new_id("thr"), who=who)
    begun = (await wiring.desk.start(run, STATE)).record
    return await pause(wiring, begun, (make_ask(terms={**BOTH, **terms}),), "")


def read_state(record: SuspensionRecord) -> Callable[[Wiring], Any]:
    async def read(wiring: Wiring) -> tuple[str, bool | None]:
        found = (await wiring.desk.suspensions.read(record.id)).record
        given = found.items[0].confirmation
        return found.status, given.confirmed if given is not None else None

    return read


@SIZES
def test_acting_user_confirms_and_sees_what_is_missing(
    site: Site, open_as: Callable[..., Page], size: ViewportSize
) -> None:
    page = open_as("/", viewport=size)
    record = site.act(ask_for_anna)
    page.goto(site.url)
    expect(page.locator("#rows .wanted")).to_have_text("wants: your confirmation")
    page.goto(site.url + place_of(record))
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Confirm: you asked support-bot for Refund payment EUR 250.00")
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    page.get_by_role("button", name="Confirm EUR 250.00").click()
    expect(page.locator(".ineligible")).to_have_text("You confirmed this call.")
    expect(page.locator(".quorum").first).to_have_text("anna confirmed it")
    assert site.act(read_state(record)) == ("pending", True)


@SIZES
def test_acting_user_declines_with_a_reason(site: Site, open_as: Callable[..., Page], size: ViewportSize) -> None:
    page = open_as("/", viewport=size)
    record = site.act(ask_for_anna)
    page.goto(site.url + place_of(record))
    page.get_by_role("link", name="Decline…").click()
    page.get_by_label("Reason").fill("I never asked for this.")
    page.get_by_role("button", name="Decline", exact=True).click()
    expect(page.get_by_role("heading", name="anna denied this")).to_be_visible()
    expect(page.get_by_text("I never asked for this.").first).to_be_visible()
    assert site.act(read_state(record)) == ("decided", False)


def test_acting_user_confirms_the_approved_version(site: Site, open_as: Callable[..., Page]) -> None:
    async def story(wiring: Wiring) -> SuspensionRecord:
        return await decide(wiring, await ask_for_anna(wiring), "approve", args={**REFUND_ARGS, "amount": 48.25})

    page = open_as("/")
    record = site.act(story)
    page.goto(site.url + place_of(record))
    row = page.locator(".what .changes tr", has_text="amount")
    expect(row).to_contain_text("48.25")
    page.get_by_role("button", name="Confirm EUR").click()
    expect(page.get_by_role("heading", name="ben approved this with")).to_be_visible()


def test_reviewer_reads_who_must_confirm(site: Site, open_as: Callable[..., Page]) -> None:
    open_as("/")
    page = open_as(place_of(site.act(ask_for_anna)), name="ben")
    expect(page.locator(".quorum").first).to_have_text("anna, for whom the agent acts, must confirm it")
    expect(page.get_by_text("Your approval sends nothing yet: anna must confirm it.")).to_be_visible()
    expect(page.get_by_role("button", name="Confirm")).to_have_count(0)


def test_form_with_another_version_changes_nothing(site: Site, open_as: Callable[..., Page]) -> None:
    page = open_as("/")
    record = site.act(ask_for_anna)
    page.goto(site.url + place_of(record))
    page.evaluate("document.querySelector('#confirm-form [name=digest]').value = '0'.repeat(64)")
    page.get_by_role("button", name="Confirm EUR 250.00").click()
    expect(page.get_by_text("The item has changed since you read it")).to_be_visible()
    assert site.act(read_state(record)) == ("pending", None)


def test_item_of_nobody_else_has_no_confirmation(site: Site, open_as: Callable[..., Page]) -> None:
    page = open_as(place_of(site.act(asked)))
    expect(page.get_by_role("button", name="Approve EUR 250.00")).to_be_visible()
    expect(page.get_by_text("must confirm")).to_have_count(0)
