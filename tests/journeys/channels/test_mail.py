"""Asked by mail and decided on the page that its link opens, through a real SMTP server and real processes."""

import re

import httpx
import pytest

from launch.stops import wait_until
from tests.fakes.smtp import MailServer, html_of, links_of, text_of
from tests.journeys.channels.desks import BANK, ChannelDesk, signed_in
from tests.journeys.channels.offices import Office, check_dashboard, wanted, write_calls
from tests.journeys.stacks import PATIENCE_S
from tests.service.edge.web.reading import press_approve, read_to_the_end

ADDRESS = "anna@example.com"


@pytest.fixture(scope="package")
def desk(office: Office) -> ChannelDesk:
    """The desk of runs that ask by mail, to the address that anna has linked on her page."""
    desk = office.over("mail")
    link_address(desk, office.mail)
    return desk


def link_address(desk: ChannelDesk, mail: MailServer) -> None:
    """Link anna's address on her page, with the code of the mail that is sent there."""
    with signed_in(f"{desk.stack.url}/me/notifications") as page:
        page.get_by_label("Mail address").fill(ADDRESS)
        page.get_by_role("button", name="Mail a code").click()
        page.get_by_label("Code from the mail").fill(read_code(mail))
        page.get_by_role("button", name="Link the address").click()
        page.get_by_role("button", name=f"Remove {ADDRESS}").wait_for()


def read_code(mail: MailServer) -> str:
    """Return the code of the first mail, once it has arrived."""
    assert wait_until(lambda: bool(mail.to(ADDRESS)), PATIENCE_S)
    found = re.search(r"^[A-Z0-9]{8}$", text_of(mail.to(ADDRESS)[0]), re.MULTILINE)
    assert found
    return found[0]


def test_approval_behind_the_link_of_a_mail_is_executed(desk: ChannelDesk, office: Office) -> None:
    asked = desk.ask(BANK)
    (item,) = desk.await_delivery(asked)
    card = office.mail.to(ADDRESS)[-1]
    assert "bank_account.transfer" in text_of(card)
    assert "bank_account.transfer" in html_of(card)
    (link,) = links_of(card)
    assert link == f"{desk.stack.url}/items/{asked.id}/{item.item_id}"
    assert "Sign in" in httpx.get(link, follow_redirects=True, timeout=PATIENCE_S).text
    with signed_in(link) as page:
        page.get_by_role("heading", name="Your decision").wait_for()
        assert desk.find(asked.id).items[0].outcome is None, "opening the link decides nothing"
        read_to_the_end(page)
        press_approve(page)
        assert write_calls(desk.await_effects(asked)) == wanted(BANK)
        check_dashboard(page, desk, asked, "anna approved this")
    assert wait_until(lambda: office.mail.to(ADDRESS)[-1] is not card, PATIENCE_S)
    closing = office.mail.to(ADDRESS)[-1]
    assert (closing["In-Reply-To"], closing["References"]) == (card["Message-ID"], card["Message-ID"])
    assert closing["Subject"] == f"Re: {card['Subject']}"
    assert "anna approved this over web at " in text_of(closing)
