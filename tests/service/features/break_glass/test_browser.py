"""Emergency rights in a real browser: the form, and what every page of everybody shows."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.sites import PASSWORD, Site
from tests.service.edge.web.test_gallery import check_page

pytestmark = pytest.mark.browser

REASON = "Payments are down, and no admin answers"


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_rights_are_taken_shown_on_every_page_and_ended(
    site: Site, open_as: Callable[..., Page], viewport: ViewportSize
) -> None:
    async def begin(wiring: Wiring) -> None:
        await wiring.reviewers.add("root", PASSWORD, ("reviewer", "admin"))
        await wiring.reviewers.add("olga", PASSWORD, ("operator",))

    site.act(begin)
    page = open_as("/break-glass", name="olga", viewport=viewport)
    page.get_by_label("Reason").fill(REASON)
    check_page(page, "emergency rights")
    page.get_by_role("button", name="Take emergency rights for an hour").click()
    expect(page.get_by_text("You have emergency rights, and others are informed.")).to_be_visible()
    expect(page.get_by_role("button", name="Take emergency rights for an hour")).to_have_count(0)
    check_page(page, "emergency rights taken")
    other = open_as("/history", viewport=viewport)
    bar = other.locator(".frost-bar", has_text="olga until")
    expect(bar).to_contain_text(REASON)
    admin = open_as("/break-glass", name="root", viewport=viewport)
    admin.get_by_role("button", name="End them now").click()
    expect(admin.get_by_text("Nobody has emergency rights.")).to_be_visible()
    other.reload()
    expect(bar).to_have_count(0)
