"""Passkeys in a real browser, with Chromium's virtual authenticator."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, CDPSession, Page, expect

from demo.stacks import find_ports
from sayso.core.key_files import create_key_file
from sayso.core.records.terms import RuleTerms
from tests.builders import ask, make_pending
from tests.service.edge.web.sites import Site, serve, settings_for
from tests.service.edge.web.stories import place_of
from tests.service.features.codes.apps import add_app, make_code

pytestmark = pytest.mark.browser
DEVICE = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest.fixture
def desk(clean_store_url: str, tmp_path: Path) -> Iterator[Site]:
    """A running desk at localhost, which browsers know passkeys for."""
    port = find_ports()
    create_key_file(tmp_path / "key")
    places = {"public_url": f"http://localhost:{port}", "key_file": str(tmp_path / "key")}
    settings = settings_for(clean_store_url, tmp_path, **places)
    with serve(settings, port):
        yield Site(settings.public_url, settings)


@dataclass(frozen=True)
class Device:
    """An authenticator in a browser."""

    session: CDPSession
    id: str

    def forget_person(self) -> None:
        """Verify nobody from now on."""
        self.session.send("WebAuthn.setUserVerified", {"authenticatorId": self.id, "isUserVerified": False})


def plug_in(page: Page) -> Device:
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    return Device(session, session.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE})["authenticatorId"])


def add_passkey(page: Page, desk: Site) -> None:
    page.goto(f"{desk.url}/me/passkeys")
    page.get_by_label("Name such as Phone").fill("Phone")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_text("The passkey is added.")).to_be_visible()
    expect(page.get_by_text("Phone, added")).to_be_visible()


@pytest.fixture
def page(desk: Site, browser: Browser) -> Iterator[Page]:
    """Anna's browser, signed in."""
    context = browser.new_context()
    port = desk.url.rsplit(":", 1)[1]
    context.add_cookies([{"name": f"sayso_session_{port}", "value": desk.token_of("anna"), "url": desk.url}])
    yield context.new_page()
    context.close()


def test_passkey_is_added_and_signs_in(desk: Site, page: Page) -> None:
    plug_in(page)
    add_passkey(page, desk)
    page.context.clear_cookies()
    page.goto(f"{desk.url}/sign-in?next=/history")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(f"{desk.url}/history")
    page.goto(f"{desk.url}/me")
    expect(page.get_by_text("Signed in as anna")).to_be_visible()


def test_device_adds_one_passkey(desk: Site, page: Page) -> None:
    plug_in(page)
    add_passkey(page, desk)
    page.get_by_label("Name such as Phone").fill("Again")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_text("This device has a passkey for you already.")).to_be_visible()


def test_person_who_is_not_verified_does_not_sign_in(desk: Site, page: Page) -> None:
    device = plug_in(page)
    add_passkey(page, desk)
    page.context.clear_cookies()
    device.forget_person()
    page.goto(f"{desk.url}/sign-in")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_text("No passkey was used. Try again.")).to_be_visible()


def test_approval_is_signed_by_a_press(desk: Site, page: Page) -> None:
    plug_in(page)
    add_passkey(page, desk)
    record = desk.act(lambda wiring: make_pending(wiring, ask(terms=RuleTerms(step_up="passkey"))))
    page.goto(f"{desk.url}{place_of(record)}")
    expect(page.get_by_text("Your passkey signs what you approve.")).to_be_visible()
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("#timeline").get_by_text("signed with passkey “Phone”")).to_be_visible()


def test_edit_is_signed_by_a_press(desk: Site, page: Page) -> None:
    plug_in(page)
    add_passkey(page, desk)
    record = desk.act(lambda wiring: make_pending(wiring, ask(terms=RuleTerms(step_up="passkey"))))
    page.goto(f"{desk.url}{place_of(record)}?answer=edit")
    page.get_by_label("amount").fill("7")
    page.get_by_role("button", name="Review 1 change").click()
    page.get_by_role("button", name="Approve with 1 change").click()
    expect(page.locator("#timeline").get_by_text("with edited arguments, signed with passkey “Phone”")).to_be_visible()


def test_approval_without_a_passkey_says_where_to_add_one(desk: Site, page: Page) -> None:
    plug_in(page)
    record = desk.act(lambda wiring: make_pending(wiring, ask(terms=RuleTerms(step_up="passkey"))))
    page.goto(f"{desk.url}{place_of(record)}")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("You have no passkey. Add one on /me/passkeys, and approve this then.")).to_be_visible()


def test_passkey_signs_where_a_code_is_needed(desk: Site, page: Page) -> None:
    plug_in(page)
    add_passkey(page, desk)
    record = desk.act(lambda wiring: make_pending(wiring, ask(terms=RuleTerms(step_up="code"))))
    page.goto(f"{desk.url}{place_of(record)}")
    expect(page.get_by_label("Code of your authenticator app")).to_have_count(0)
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("#timeline").get_by_text("signed with passkey “Phone”")).to_be_visible()


def test_typed_code_goes_before_the_passkey(desk: Site, page: Page) -> None:
    device = plug_in(page)
    add_passkey(page, desk)
    seed = desk.act(lambda wiring: add_app(wiring, "anna"))
    device.forget_person()
    record = desk.act(lambda wiring: make_pending(wiring, ask(terms=RuleTerms(step_up="code"))))
    page.goto(f"{desk.url}{place_of(record)}")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("No passkey was used. Try again.")).to_be_visible()
    page.get_by_label("Code of your authenticator app").fill(make_code(seed))
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("#timeline").get_by_text("with a code of their app")).to_be_visible()


def test_browser_without_passkeys_shows_no_button(desk: Site, page: Page) -> None:
    page.add_init_script("delete window.PublicKeyCredential")
    page.goto(f"{desk.url}/me/passkeys")
    expect(page.get_by_role("heading", name="Passkeys", level=1)).to_be_visible()
    expect(page.get_by_role("button", name="Add a passkey")).to_be_hidden()
    page.context.clear_cookies()
    page.goto(f"{desk.url}/sign-in")
    expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Sign in with a passkey")).to_be_hidden()
