"""Asked by a notification and decided on the page that it opens, through a push service and real processes."""

import json

from playwright.sync_api import expect

from launch.stops import wait_until
from tests.browser import PHONE
from tests.fakes.push import Browser
from tests.journeys.channels.desks import BANK, signed_in
from tests.journeys.channels.offices import Office, check_dashboard, wanted, write_calls
from tests.journeys.stacks import PATIENCE_S
from tests.service.edge.web.reading import approve_edit, begin_edit
from tests.service.features.phone.browsers import register, turn_on


def test_edit_behind_a_notification_is_executed(office: Office) -> None:
    desk = office.over("phone")
    with signed_in(desk.stack.url, viewport=PHONE, permissions=["notifications"]) as page:
        browser = turn_on(desk.stack.url, page, office.push)
        asked = desk.ask(BANK)
        (item,) = desk.await_delivery(asked)
        assert len(browser.received) == 1

        phone = register(desk.stack.url, page)
        phone.push(newest(browser))
        ((title, text, tag, path),) = phone.shown()
        assert (title, path) == ("Decide before it runs", f"/items/{asked.id}/{item.item_id}")
        assert text.startswith("bank_account.transfer")
        phone.click()
        page.wait_for_url(desk.stack.url + path)
        begin_edit(page)
        page.get_by_label("amount").fill("12.5")
        approve_edit(page)
        expect(page.get_by_role("heading", name="anna approved this")).to_be_visible()
        assert write_calls(desk.await_effects(asked)) == wanted(BANK, amount=12.5)
        check_dashboard(page, desk, asked, "anna approved this with 1 change")

        assert wait_until(lambda: len(browser.received) == 2, PATIENCE_S)
        phone.push(newest(browser))
        ((title, text, closed_tag, _),) = phone.shown(lambda found: found[0][0] != title)
        assert (title, closed_tag) == ("Closed", tag)
        assert text.startswith("anna approved this with 1 change over web at ")


def newest(browser: Browser) -> bytes:
    """Return the last message that the push service took, decrypted."""
    return json.dumps(browser.received[-1]).encode()
