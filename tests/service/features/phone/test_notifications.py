"""The page of notifications: addresses are proven by a mailed code, browsers subscribe on a click."""

import re

import pytest

from service.channels.base import DeliveryFailed, Recipient
from service.channels.push import PushChannel
from service.core.settings import Settings
from service.core.store.channels import Subscriptions
from tests.fakes.push import Browser, PushService
from tests.fakes.smtp import MailServer, text_of
from tests.service.channels.conformance import ARGS, card_of, record_of
from tests.service.edge.web.sites import Visit, let_in, visit

PAGE = "/me/notifications"


def code_in(mail: MailServer, address: str) -> str:
    """Return the code of the newest mail to an address."""
    found = re.search(r"^[A-Z0-9]{8}$", text_of(mail.to(address)[-1]), re.MULTILINE)
    assert found
    return found[0]


async def add_browser(anna: Visit, browser: Browser, status: int = 303, **fields: str) -> str:
    sent = browser.subscription
    given = {"channel": "push", "endpoint": sent.endpoint, "p256dh": sent.p256dh, "auth": sent.auth, "label": "Phone"}
    return await anna.send(f"{PAGE}/push", status, **{**given, **fields})


async def test_mailed_code_links_its_address(settings: Settings, mail: MailServer) -> None:
    async with visit(settings) as anna:
        await anna.send(f"{PAGE}/mail", channel="mail", address="anna@example.com")
        assert await anna.wiring.contacts.addresses_of("anna", "mail") == []
        await anna.send(f"{PAGE}/code", channel="mail", code=code_in(mail, "anna@example.com").lower())
        assert await anna.wiring.contacts.addresses_of("anna", "mail") == ["anna@example.com"]
        assert "anna@example.com" in await anna.read(PAGE)


async def test_code_counts_once(settings: Settings, mail: MailServer) -> None:
    async with visit(settings) as anna:
        await anna.send(f"{PAGE}/mail", channel="mail", address="anna@example.com")
        code = code_in(mail, "anna@example.com")
        await anna.send(f"{PAGE}/code", channel="mail", code=code)
        assert "not valid" in await anna.send(f"{PAGE}/code", 422, channel="mail", code=code)


async def test_code_links_only_the_address_it_was_mailed_to(settings: Settings, mail: MailServer) -> None:
    async with visit(settings) as anna:
        await anna.send(f"{PAGE}/mail", channel="mail", address="anna@example.com")
        await anna.send(f"{PAGE}/mail", channel="mail", address="ceo@example.com")
        await anna.send(
            f"{PAGE}/code", channel="mail", code=code_in(mail, "anna@example.com"), address="ceo@example.com"
        )
        assert await anna.wiring.contacts.addresses_of("anna", "mail") == ["anna@example.com"]


async def test_code_that_was_shown_links_no_mail_address(settings: Settings) -> None:
    async with visit(settings) as anna:
        made = await anna.wiring.contacts.create_code("anna", "mail")
        assert "not valid" in await anna.send(f"{PAGE}/code", 422, channel="mail", code=made.code)


async def test_code_of_another_person_is_refused(settings: Settings, mail: MailServer) -> None:
    async with visit(settings) as anna, visit(settings, "ben") as ben:
        await anna.send(f"{PAGE}/mail", channel="mail", address="anna@example.com")
        code = code_in(mail, "anna@example.com")
        assert "not valid" in await ben.send(f"{PAGE}/code", 422, channel="mail", code=code)
        assert await ben.wiring.contacts.list_of("ben") == []


async def test_mailbox_of_a_stranger_is_not_flooded(settings: Settings, mail: MailServer) -> None:
    async with visit(settings) as anna:
        for _ in range(3):
            await anna.send(f"{PAGE}/mail", channel="mail", address="anna@example.com")
        await anna.send(f"{PAGE}/mail", 429, channel="mail", address="ANNA@example.com")
    assert len(mail.mails) == 3


async def test_guessing_of_codes_is_limited(settings: Settings) -> None:
    async with visit(settings) as anna:
        for _ in range(10):
            await anna.send(f"{PAGE}/code", 422, channel="mail", code="AAAAAAAA")
        await anna.send(f"{PAGE}/code", 429, channel="mail", code="AAAAAAAA")


@pytest.mark.parametrize("address", ["", "anna", "anna@example.com\r\nBcc: eve@example.com", "a@b, c@d"])
async def test_faulty_address_is_refused(settings: Settings, mail: MailServer, address: str) -> None:
    async with visit(settings) as anna:
        assert "not a mail address" in await anna.send(f"{PAGE}/mail", 422, channel="mail", address=address)
    assert mail.mails == []


async def test_refusing_mail_server_is_reported(settings: Settings, mail: MailServer) -> None:
    mail.remove("anna@example.com")
    async with visit(settings) as anna:
        page = await anna.send(f"{PAGE}/mail", 422, channel="mail", address="anna@example.com")
    assert "refused the recipient (550)" in page


async def test_browser_is_subscribed_and_removed(settings: Settings, push: PushService) -> None:
    browser = push.subscribe()
    async with visit(settings) as anna:
        await add_browser(anna, browser)
        (contact,) = await anna.wiring.contacts.list_of("anna")
        assert (contact.address, contact.label) == (browser.subscription.address, "Phone")
        assert await anna.wiring.part(Subscriptions).find(contact.address) == browser.subscription
        assert browser.subscription.endpoint not in await anna.read(PAGE)
        await anna.send(f"{PAGE}/remove", which=contact.id)
        assert await anna.wiring.contacts.list_of("anna") == []
        assert await anna.wiring.part(Subscriptions).find(contact.address) is None


async def test_browser_that_changes_hands_notifies_its_new_person(settings: Settings, push: PushService) -> None:
    browser = push.subscribe()
    async with visit(settings) as anna, visit(settings, "ben") as ben:
        await add_browser(anna, browser)
        await add_browser(anna, browser)
        await add_browser(ben, browser)
        assert await ben.wiring.contacts.list_of("anna") == []
        assert await ben.wiring.contacts.addresses_of("ben", "push") == [browser.subscription.address]


async def test_browser_of_a_deactivated_person_can_change_hands(settings: Settings, push: PushService) -> None:
    browser = push.subscribe()
    async with visit(settings) as anna, visit(settings, "ben") as ben:
        await add_browser(anna, browser)
        await ben.wiring.reviewers.deactivate("anna")
        await add_browser(ben, browser)
        assert await ben.wiring.contacts.addresses_of("ben", "push") == [browser.subscription.address]


async def test_browser_that_is_gone_is_unlinked(settings: Settings, push: PushService) -> None:
    browser = push.subscribe()
    async with visit(settings) as anna:
        await add_browser(anna, browser)
        browser.gone = True
        channel = anna.app.state.channels.find("push")
        assert isinstance(channel, PushChannel)
        with pytest.raises(DeliveryFailed):
            await channel.send(Recipient("anna", browser.subscription.address), card_of(record_of(ARGS["small"])), "e1")
        assert await anna.wiring.contacts.list_of("anna") == []


@pytest.mark.parametrize(
    "fields",
    [
        {"endpoint": "https://10.0.0.1/x"},
        {"endpoint": "http://push.example.com/x"},
        {"p256dh": "short"},
        {"auth": ""},
        {"channel": "mail"},
        {"channel": "nowhere"},
    ],
)
async def test_faulty_subscription_is_refused(settings: Settings, push: PushService, fields: dict[str, str]) -> None:
    async with visit(settings) as anna:
        await add_browser(anna, push.subscribe(), 422, **fields)
        assert await anna.wiring.contacts.list_of("anna") == []


@pytest.mark.parametrize("place", ["mail", "code", "push", "remove"])
async def test_form_of_another_session_changes_nothing(settings: Settings, mail: MailServer, place: str) -> None:
    async with visit(settings) as anna:
        await anna.send(f"{PAGE}/{place}", 403, csrf="0" * 64, channel="mail", address="anna@example.com")
    assert mail.mails == []


async def test_removing_what_is_not_mine_changes_nothing(settings: Settings, push: PushService) -> None:
    async with visit(settings) as anna:
        await add_browser(anna, push.subscribe())
        (contact,) = await anna.wiring.contacts.list_of("anna")
        await let_in(settings, "ben")
        async with visit(settings, "cleo") as cleo:
            await cleo.send(f"{PAGE}/remove", which=contact.id)
        assert await anna.wiring.contacts.list_of("anna") == [contact]


async def test_page_without_a_file_turns_on_browsers_and_no_mail(settings: Settings) -> None:
    async with visit(settings.model_copy(update={"channels": None})) as anna:
        page = await anna.read(PAGE)
    assert "has not set up mail" in page
    assert "Turn on for this browser" in page


async def test_app_files_need_no_sign_in(settings: Settings) -> None:
    async with visit(settings, None) as somebody:
        manifest = await somebody.client.get("/manifest.webmanifest")
        worker = await somebody.client.get("/service-worker.js")
        assert manifest.headers["content-type"] == "application/manifest+json"
        assert manifest.json()["display"] == "standalone"
        for icon in manifest.json()["icons"]:
            assert (await somebody.client.get(icon["src"])).headers["content-type"] == icon["type"]
    assert worker.headers["content-type"].startswith("text/javascript")
    assert "default-src 'self'" in worker.headers["content-security-policy"]
