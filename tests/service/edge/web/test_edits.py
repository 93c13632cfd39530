"""An edit is reviewed before it is sent: its changes, what the rules say of it, and nothing recorded until then."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from sayso.core.records.suspensions import SuspensionRecord
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.reading import begin_edit
from tests.service.edge.web.sites import Site, Visit, visit
from tests.service.edge.web.stories import REFUND, REFUND_ARGS, asked, decide, make_ask, place_of

NOTE = "Dear customer, we are sorry for the broken cup, and your money is on its way to your account.\nYour team"
STRICT = """\
version: 1
default: request_approval
rules:
  - id: refunds-over-100
    tool: refund_payment
    when: args.amount >= 1 && args.amount <= 500
    action: request_approval
  - id: large-refunds
    tool: refund_payment
    when: args.amount > 500
    action: request_approval
    terms:
      reviewers: [carla]
  - id: free-refunds
    tool: refund_payment
    when: args.amount < 1
    action: allow
"""
SIZES = pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
SCRIPTS = pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])

Open = Callable[..., Page]


async def ask_refund(wiring: Wiring) -> SuspensionRecord:
    """A run that waits for approval of a refund with a long note."""
    return await asked(wiring, make_ask(args={**REFUND_ARGS, "note": NOTE}))


def version_of(site: Site, record: SuspensionRecord) -> int:
    """The version of what is saved, which every recorded change raises."""

    async def read(wiring: Wiring) -> int:
        return (await wiring.desk.suspensions.read(record.id)).record.version

    return site.act(read)


async def review(anna: Visit, record: SuspensionRecord, status: int = 200, **typed: str) -> str:
    fields = {
        "f0": "A-1932",
        "f1": "250",
        "f2": '"EUR"',
        "f3": "true",
        "f4": str(REFUND_ARGS["note"]),
        "f5": '[{"sku": "CUP-7", "count": 2}]',
        "digest": record.items[0].digest,
    }
    return await anna.send(place_of(record), status, answer="edit", step="review", **{**fields, **typed})


async def test_review_names_the_rule_of_the_edited_arguments(settings: Settings) -> None:
    assert settings.policy is not None
    settings.policy.write_text(STRICT)
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        assert "Still asks: rule refunds-over-100." in await review(anna, record, f1="300")
        assert "Allowed: rule free-refunds." in await review(anna, record, f1="0.5")
        renewed = await review(anna, record, f1="600")
        assert "Must be asked again: rule large-refunds applies to the changed arguments." in renewed
        assert "Ask again with 1 change</button>" in renewed


async def test_review_refuses_what_a_decision_would_refuse(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        assert 'id="f1-problem">9999 is greater than' in await review(anna, record, 422, f1="9999")
        assert "The request has changed" in await review(anna, record, 409, f1="7", digest="0" * 64)
        mine = await asked(anna.wiring, make_ask(terms={"reviewers": ["ben"]}))
        assert "Only ben can decide this." in await review(anna, mine, 403, f1="7")
        await decide(anna.wiring, record, "deny")
        assert "Already decided" in await review(anna, record, 409, f1="7")


async def test_review_needs_no_number_and_counts_no_guess(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, make_ask(REFUND, terms={"match_number": True}))
        for _ in range(5):
            page = await review(anna, record, f1="7")
            assert 'name="number" form="edited-form" required' in page
            assert '<form method="post" class="edited" id="edited-form">' in page
            assert "Approve with 1 change</button>" in page


@SCRIPTS
@SIZES
def test_edit_is_reviewed_changed_again_and_approved(
    site: Site, open_as: Open, viewport: ViewportSize, scripts: bool
) -> None:
    """Type 120, review, go back, type 130 and another word, review, and approve exactly that."""
    record = site.act(ask_refund)
    page = open_as(place_of(record), viewport=viewport, java_script_enabled=scripts)
    begin_edit(page)
    before = version_of(site, record)
    page.get_by_label("amount").fill("120")
    page.get_by_role("button", name="Review").click()
    changes = page.locator(".what .changes").first
    expect(changes.get_by_role("row", name="amount")).to_contain_text("250120")
    expect(page.locator(".opinion")).to_have_text("The rules say: Still asks: the default.")
    expect(page.get_by_role("button", name="Approve with 1 change")).to_be_visible()
    expect(page.get_by_role("button", name="Approve EUR 250.00", exact=True)).to_have_count(0)
    assert version_of(site, record) == before

    page.get_by_role("button", name="Back").click()
    expect(page.get_by_label("amount")).to_have_value("120")
    page.get_by_label("amount").fill("130")
    page.get_by_label("note").fill(NOTE.replace("broken", "cracked"))
    page.get_by_role("button", name="Review changes").click()
    expect(changes.locator("del")).to_have_text("broken")
    expect(changes.locator("ins")).to_have_text("cracked")
    assert version_of(site, record) == before
    page.locator(".what").evaluate("node => node.scrollIntoView({ block: 'end' })")
    page.get_by_role("button", name="Approve with 2 changes").click()
    expect(page.get_by_role("heading", name="anna approved this with")).to_be_visible()
    assert version_of(site, record) > before


@SIZES
def test_edit_stands_in_place_of_the_arguments(site: Site, open_as: Open, viewport: ViewportSize) -> None:
    """The fields take the width of the column and stay above the bar, which holds the buttons."""
    page = open_as(place_of(site.act(ask_refund)), viewport=viewport)
    begin_edit(page)
    expect(page.locator(".what .pairs")).to_have_count(0)
    field, panel = page.get_by_label("amount").bounding_box(), page.locator(".what").bounding_box()
    assert field is not None
    assert panel is not None
    assert field["width"] > panel["width"] - 60
    expect(page.locator(".decide").get_by_label("amount")).to_have_count(0)


def test_edit_without_a_change_has_no_button(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(ask_refund)))
    begin_edit(page)
    expect(page.get_by_text("Change something, or stop editing.")).to_be_visible()
    expect(page.get_by_role("button", name="Review")).to_have_count(0)
    page.get_by_label("amount").fill("129")
    page.get_by_label("currency").select_option("CHF")
    expect(page.get_by_role("button", name="Review 2 changes")).to_be_visible()
    expect(page.get_by_text("Change something, or stop editing.")).to_be_hidden()
    page.get_by_label("currency").select_option("EUR")
    page.get_by_label("amount").fill("250")
    expect(page.get_by_role("button", name="Review")).to_have_count(0)


def test_edit_without_a_change_and_scripts_is_refused(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(ask_refund)), java_script_enabled=False)
    begin_edit(page)
    page.get_by_role("button", name="Review changes").click()
    expect(page.get_by_role("alert")).to_contain_text("Change something, or stop editing.")
    expect(page.get_by_label("amount")).to_have_value("250")


@SCRIPTS
def test_edit_that_the_rules_deny_cannot_be_sent(site: Site, open_as: Open, scripts: bool) -> None:
    record = site.act(ask_refund)
    page = open_as(place_of(record), java_script_enabled=scripts)
    begin_edit(page)
    before = version_of(site, record)
    page.get_by_label("amount").fill("2000")
    page.get_by_role("button", name="Review").click()
    expect(page.locator(".opinion")).to_contain_text("Would be denied: The rule never-over-1000 denies refund_payment")
    expect(page.locator(".opinion")).to_contain_text("Nobody refunds more than 1000 here")
    expect(page.locator(".decide").get_by_role("button")).to_have_text(["Back"])
    page.get_by_role("button", name="Back").click()
    expect(page.get_by_label("amount")).to_have_value("2000")
    assert version_of(site, record) == before


def test_reviewed_edit_closes_after_another_decision(site: Site, open_as: Open) -> None:
    record = site.act(ask_refund)
    page = open_as(place_of(record))
    begin_edit(page)
    page.get_by_label("amount").fill("129")
    page.get_by_role("button", name="Review 1 change").click()
    expect(page.get_by_role("button", name="Approve with 1 change")).to_be_visible()
    site.act(lambda wiring: decide(wiring, record, "deny"))
    expect(page.locator("#notice")).to_contain_text("ben denied this")
    expect(page.locator(".decide form")).to_have_count(0)
    expect(page.locator(".what .changes").first).to_contain_text("129")


def test_open_edit_closes_after_another_decision(site: Site, open_as: Open) -> None:
    record = site.act(ask_refund)
    page = open_as(place_of(record))
    begin_edit(page)
    page.get_by_label("amount").fill("129")
    site.act(lambda wiring: decide(wiring, record, "deny"))
    expect(page.get_by_label("Your input")).to_have_value("129")
    expect(page.get_by_role("button", name="Review")).to_have_count(0)
    expect(page.locator("#call")).to_contain_text("250")


def test_reason_typed_before_an_edit_is_kept(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(ask_refund)))
    page.get_by_text("Deny…", exact=True).click()
    page.get_by_label("Reason").fill("Half a reason")
    page.get_by_role("link", name="Back").click()
    begin_edit(page)
    page.get_by_text("Deny…", exact=True).click()
    expect(page.get_by_label("Reason")).to_have_value("Half a reason")
