"""Under a quorum the next reviewer sees, and can approve, what another one edited."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.reading import press_approve, read_to_the_end, settle, unfold
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import REFUND_ARGS, asked, decide, make_ask, place_of

EDITED = {**REFUND_ARGS, "amount": 48.25}
TERMS = {"quorum": {"approve": 2}, "reviewers": ["anna", "ben", "carla"]}


async def edited_by_ben(wiring: Wiring) -> SuspensionRecord:
    record = await asked(wiring, make_ask(terms=TERMS))
    return await decide(wiring, record, "approve", args=EDITED)


def test_next_reviewer_approves_the_edited_version(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(edited_by_ben)
    page = open_as(place_of(record))
    expect(page.get_by_role("link", name="As requested")).to_have_attribute("aria-current", "true")
    expect(page.locator("#differing")).to_contain_text("ben approved amount 48.25; you see 250.")
    expect(page.locator("#differing")).to_contain_text("Your approval sends nothing yet: 1 more must approve.")
    expect(page.get_by_role("button", name="Approve EUR 250.00 as requested (1 of 2)")).to_be_visible()
    page.get_by_role("link", name="ben’s version").click()
    expect(page.locator("#differing")).to_have_text("Your approval sends it.")
    row = page.locator(".what .changes tr", has_text="amount")
    expect(row).to_contain_text("48.25")
    read_to_the_end(page)
    page.get_by_role("button", name="Approve ben’s version: EUR 48.25 (2 of 2)").click()
    expect(page.get_by_role("heading", name="anna approved this with")).to_be_visible()

    async def read(wiring: Wiring) -> object:
        outcome = (await wiring.desk.suspensions.read(record.id)).record.items[0].outcome
        return outcome.args if outcome is not None else None

    assert site.act(read) == EDITED


def test_versions_name_values_by_the_titles_of_the_schema(site: Site, open_as: Callable[..., Page]) -> None:
    refund = ToolDefinition(name="refund", parameters={"properties": {"amount": {"type": "number", "title": "To pay"}}})

    async def story(wiring: Wiring) -> SuspensionRecord:
        await wiring.runs.save_definitions([refund])
        record = await asked(wiring, make_ask(refund, REFUND_ARGS, terms=TERMS))
        return await decide(wiring, record, "approve", args=EDITED)

    page = open_as(place_of(site.act(story)))
    expect(page.locator("#differing")).to_contain_text("ben approved To pay amount 48.25; you see 250.")
    expect(page.locator(".versions p")).to_contain_text("To pay amount 250")
    unfold(page, "Terms")
    expect(page.locator("#facts dd", has_text="48.25")).to_have_text("To pay amount 48.25")


def test_versions_show_amounts_as_the_call_does(site: Site, open_as: Callable[..., Page]) -> None:
    """The line in the head and the table compare amounts with currency and separators, and copy as stored."""
    args = {**REFUND_ARGS, "amount": 1825}

    async def story(wiring: Wiring) -> SuspensionRecord:
        record = await asked(wiring, make_ask(args=args, terms=TERMS))
        return await decide(wiring, record, "approve", args={**args, "amount": 825})

    page = open_as(place_of(site.act(story)))
    amounts = page.locator("#differing .money")
    expect(amounts).to_have_count(2)
    assert [one.get_attribute("data-currency") for one in amounts.all()] == ["EUR", "EUR"]
    expect(page.locator("#differing")).to_contain_text("amount 825; you see 1825")
    expect(page.locator("#facts .money")).to_have_count(1)
    page.get_by_role("link", name="ben’s version").click()
    expect(page.locator(".what .changes tr", has_text="amount").locator(".money")).to_have_count(2)


def test_switch_appears_when_somebody_edits_meanwhile(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(lambda wiring: asked(wiring, make_ask(terms=TERMS)))
    page = open_as(place_of(record))
    expect(page.get_by_role("button", name="Approve EUR 250.00 (1 of 2)", exact=True)).to_be_visible()
    site.act(lambda wiring: decide(wiring, record, "approve", args=EDITED))
    expect(page.get_by_role("link", name="ben’s version")).to_be_visible()
    expect(page.locator("#differing")).to_contain_text("ben approved amount 48.25; you see 250.")
    expect(page.get_by_role("button", name="Approve EUR 250.00 as requested (1 of 2)")).to_be_visible()


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_each_version_is_a_button_that_approves_it(
    site: Site, open_as: Callable[..., Page], size: ViewportSize
) -> None:
    async def edit_twice(wiring: Wiring) -> SuspensionRecord:
        record = await decide(wiring, await asked(wiring, make_ask(terms=TERMS)), "approve", args=EDITED)
        return await decide(wiring, record, "approve", name="carla", args={**REFUND_ARGS, "amount": 100})

    record = site.act(edit_twice)
    page = open_as(place_of(record), viewport=size)
    card = page.locator(".versions > div", has_text="carla’s version")
    expect(card).to_contain_text("amount 250 → 100")
    read_to_the_end(page)
    settle(page)
    card.get_by_role("button", name="Approve carla’s version: EUR 100.00 (2 of 2)").click()
    expect(page.get_by_role("heading", name="anna approved this with")).to_be_visible()

    async def read(wiring: Wiring) -> tuple[object, object]:
        item = (await wiring.desk.suspensions.read(record.id)).record.items[0]
        return item.outcome and item.outcome.args, item.decisions[-1].shown and item.decisions[-1].shown.values_shown

    assert site.act(read) == ({**REFUND_ARGS, "amount": 100}, 7)


def test_unread_or_long_versions_are_not_approved_unopened(site: Site, open_as: Callable[..., Page]) -> None:
    async def edit_both(wiring: Wiring) -> SuspensionRecord:
        record = await asked(wiring, make_ask(args={**REFUND_ARGS, "note": "long " * 2_000}, terms=TERMS))
        record = await decide(wiring, record, "approve", args={**REFUND_ARGS, "note": "long " * 2_000, "amount": 1})
        return await decide(wiring, record, "approve", name="carla", args={**REFUND_ARGS, "note": "other " * 900})

    record = site.act(edit_both)
    page = open_as(place_of(record), viewport=PHONE)
    cards = page.locator(".versions > div")
    expect(cards.filter(has_text="carla’s version").get_by_role("button")).to_have_count(0)
    unread = page.locator(".versions").get_by_role("button", name="Approve ben’s version")
    expect(unread).to_have_attribute("aria-disabled", "true")
    unread.dispatch_event("click")
    expect(page.locator(".ineligible")).to_have_count(0)
    assert site.act(lambda wiring: wiring.desk.suspensions.read(record.id)).record.version == record.version


def test_version_with_a_severe_warning_asks_once_more(site: Site, open_as: Callable[..., Page]) -> None:
    async def edit(wiring: Wiring) -> SuspensionRecord:
        args = {**REFUND_ARGS, "note": "hooks.ex\u0430mple.net"}
        return await decide(wiring, await asked(wiring, make_ask(terms=TERMS)), "approve", args=args)

    page = open_as(place_of(site.act(edit)))
    read_to_the_end(page)
    settle(page)
    page.locator(".versions").get_by_role("button", name="Approve ben’s version").click()
    expect(page.locator(".question")).to_be_visible()
    expect(page.locator(".what .changes")).to_be_visible()
    read_to_the_end(page)
    settle(page)
    press_approve(page)
    expect(page.get_by_role("heading", name="anna approved this with")).to_be_visible()


def test_own_approval_moves_to_another_version_with_one_press(site: Site, open_as: Callable[..., Page]) -> None:
    async def approve(wiring: Wiring) -> SuspensionRecord:
        record = await decide(wiring, await asked(wiring, make_ask(terms=TERMS)), "approve", name="anna")
        return await decide(wiring, record, "approve", args=EDITED)

    page = open_as(place_of(site.act(approve)))
    read_to_the_end(page)
    settle(page)
    expect(page.locator(".ineligible")).to_have_text("You approved. Waiting for 1 more.")
    page.locator(".versions").get_by_role("button", name="Approve ben’s version: EUR 48.25 (2 of 2)").click()
    expect(page.get_by_role("heading", name="anna approved this with")).to_be_visible()


def test_comparison_names_values_by_their_title(site: Site, open_as: Callable[..., Page]) -> None:
    refund = ToolDefinition(
        name="give_back",
        parameters={"type": "object", "properties": {"amount": {"type": "number", "title": "Money to return"}}},
    )

    async def edit(wiring: Wiring) -> SuspensionRecord:
        await wiring.runs.save_definitions([refund])
        record = await asked(wiring, make_ask(refund, {"amount": 5, "note": "cup"}, terms=TERMS))
        return await decide(wiring, record, "approve", args={"amount": 4, "note": "cup"})

    record = site.act(edit)
    page = open_as(place_of(record))
    page.get_by_role("link", name="ben’s version").click()
    expect(page.locator(".what .changes tr.changed th")).to_have_text("Money to return amount")
    read_to_the_end(page)
    settle(page)
    press_approve(page)
    expect(page.locator(".receipt .changes tr.changed th")).to_have_text("Money to return amount")

    async def read(wiring: Wiring) -> object:
        shown = (await wiring.desk.suspensions.read(record.id)).record.items[0].decisions[-1].shown
        return shown and (shown.values, shown.values_shown)

    assert site.act(read) == (2, 2)
