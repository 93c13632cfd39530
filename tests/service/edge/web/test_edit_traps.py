"""Nobody approves the arguments as asked while they edit them: the exact steps, in a real browser."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Dialog, Page, expect

from sayso.core.records.suspensions import SuspensionRecord
from service.core.wiring import Wiring
from tests.browser import PHONE
from tests.service.edge.web.reading import approve_edit, begin_edit
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import REFUND_ARGS, ask_value, asked, make_ask, place_of

ARGS = {**REFUND_ARGS, "amount": 4890}

Open = Callable[..., Page]


async def ask_refund(wiring: Wiring) -> SuspensionRecord:
    """A run that waits for approval of a refund of 4,890."""
    return await asked(wiring, make_ask(args=ARGS))


def is_open(site: Site, record: SuspensionRecord) -> bool:
    """Whether nobody has sent anything."""

    async def read(wiring: Wiring) -> bool:
        found = await wiring.desk.suspensions.read(record.id)
        assert found.record is not None
        return found.record.items[0].open and not found.record.items[0].decisions

    return site.act(read)


def as_asked(page: Page) -> None:
    """The one green button approves the original arguments."""
    expect(page.locator(".approval .wide")).to_be_visible()
    expect(page.get_by_role("textbox", name="amount")).to_have_count(0)


def stop_editing(page: Page) -> None:
    """Leave the edit; the bar ignores presses right after it appears."""
    expect(page.locator(".decide")).not_to_have_attribute("aria-disabled", "true")
    page.get_by_role("link", name="Stop editing").click()


def being_edited(page: Page) -> None:
    """No button of the page approves the original arguments, hidden ones included."""
    expect(page.locator(".approval")).to_have_count(0)
    expect(page.get_by_label("amount")).to_be_visible()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_plain_approve_is_absent_during_an_edit(site: Site, open_as: Open, scripts: bool) -> None:
    """Type 129 over 4,890 and open the denial: the page never offers to approve 4,890."""
    record = site.act(ask_refund)
    page = open_as(place_of(record), java_script_enabled=scripts, viewport=PHONE)
    as_asked(page)
    begin_edit(page)
    being_edited(page)
    page.get_by_label("amount").fill("129")
    expect(page.locator(".begin")).to_have_count(0)
    page.get_by_text("Deny…", exact=True).click()
    being_edited(page)
    expect(page.get_by_label("amount")).to_have_value("129")
    page.get_by_role("link", name="Back").click()
    approve_edit(page)
    expect(page.get_by_role("heading", name="anna approved this with")).to_be_visible()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_enter_in_one_of_several_fields_sends_nothing(site: Site, open_as: Open, scripts: bool) -> None:
    record = site.act(ask_refund)
    page = open_as(place_of(record), java_script_enabled=scripts)
    begin_edit(page)
    page.get_by_label("amount").fill("129")
    page.get_by_label("amount").press("Enter")
    page.get_by_label("order_id").press("Enter")
    expect(page.get_by_label("amount")).to_have_value("129")
    assert is_open(site, record)


def test_enter_without_scripts_sends_nothing(site: Site, open_as: Open) -> None:
    record = site.act(lambda wiring: asked(wiring, ask_value()))
    page = open_as(place_of(record), java_script_enabled=False)
    page.get_by_label("loyalty_code").fill("HH-7731")
    page.get_by_label("loyalty_code").press("Enter")
    expect(page.get_by_label("loyalty_code")).to_have_value("HH-7731")
    assert is_open(site, record)
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("heading", name="anna gave a value")).to_be_visible()


def test_stop_editing_confirms_before_discarding_changes(site: Site, open_as: Open) -> None:
    page = open_as(place_of(site.act(ask_refund)))
    asked_once: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        asked_once.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    begin_edit(page)
    page.get_by_label("amount").fill("129")
    stop_editing(page)
    being_edited(page)
    expect(page.get_by_label("amount")).to_have_value("129")
    assert asked_once == ["Discard 1 change?"]


def test_stop_editing_restores_plain_approve(site: Site, open_as: Open) -> None:
    record = site.act(ask_refund)
    page = open_as(place_of(record))
    page.on("dialog", lambda dialog: dialog.accept())
    begin_edit(page)
    page.get_by_label("amount").fill("129")
    stop_editing(page)
    as_asked(page)
    begin_edit(page)
    expect(page.get_by_label("amount")).to_have_value("4890")
    stop_editing(page)
    page.locator(".approval .wide").click()
    expect(page.get_by_role("heading", name="anna approved this", exact=True)).to_be_visible()


def test_rejected_edit_keeps_plain_approve_absent(site: Site, open_as: Open) -> None:
    record = site.act(ask_refund)
    page = open_as(place_of(record))
    begin_edit(page)
    page.get_by_label("amount").fill("a lot")
    page.get_by_role("button", name="Review 1 change").click()
    expect(page.get_by_role("alert")).to_be_visible()
    being_edited(page)
    page.on("dialog", lambda dialog: dialog.accept())
    stop_editing(page)
    as_asked(page)
    assert is_open(site, record)
