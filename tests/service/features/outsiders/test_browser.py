"""A customer decides on a phone: a reviewer invites them, they open the mailed link, and enter the mailed code."""

import re
from collections.abc import Callable

from playwright.sync_api import Browser, Page, expect

from sayso.core.records.terms import RuleTerms
from service.channels.kinds import open_channels
from service.core.wiring import Wiring
from tests.browser import PHONE
from tests.channels import Book
from tests.fakes.smtp import MailServer, links_of, text_of
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import asked, make_ask, place_of
from workers.notify.attempts import Gate
from workers.notify.notifier import Notifier

JANE = "jane@partner.example"


async def deliver(wiring: Wiring) -> None:
    channels = open_channels(wiring.settings)
    notifier = Notifier(wiring, channels.attach(wiring), Book({}), Gate(wiring.attempts))
    await notifier.deliver_due()
    await notifier.finish()


def test_customer_decides_on_a_phone(
    site: Site, mail: MailServer, browser: Browser, open_as: Callable[..., Page]
) -> None:
    terms = RuleTerms(outsiders=(JANE,), timeout_s=86_400)
    record = site.act(lambda wiring: asked(wiring, make_ask().model_copy(update={"terms": terms})))
    page = open_as(place_of(record), viewport=PHONE)
    page.locator("#outside > summary").click()
    page.get_by_label("Mail address").fill(JANE)
    page.get_by_label("Message in the mail").fill("Did you ask for this?")
    page.get_by_role("button", name="Invite").click()
    expect(page.locator("#outside")).to_contain_text(f"{JANE}: open until")
    site.act(deliver)
    (link,) = links_of(mail.to(JANE)[0])
    context = browser.new_context(viewport=PHONE, base_url=site.url)
    outside = context.new_page()
    outside.goto(re.sub(r"^https?://[^/]+", site.url, link))
    outside.get_by_role("button", name="Send me a code").click()
    code = re.search(r"^\d{6}$", text_of(mail.to(JANE)[1]), re.MULTILINE)
    assert code
    outside.get_by_label("Code from the mail").fill(code[0])
    outside.get_by_role("button", name="Continue").click()
    expect(outside.get_by_role("region", name="What will run")).to_be_visible()
    assert outside.evaluate("document.documentElement.scrollWidth <= innerWidth")
    outside.get_by_role("button", name="Approve").click()
    expect(outside.get_by_role("heading", name="You approved this.")).to_be_visible()
    context.close()
    expect(page.locator("#standing")).to_contain_text("approved")
    item = site.act(lambda wiring: wiring.desk.suspensions.read(record.id)).record.items[0]
    assert (item.decisions[0].by.id, item.decisions[0].invited and item.decisions[0].invited.by) == (
        f"outsider:{JANE}",
        "anna",
    )
