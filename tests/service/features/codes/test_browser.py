"""Authenticator apps in a real browser, on a phone and on a desktop."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from sayso.core.records.terms import RuleTerms
from service.core.settings import Settings
from tests.builders import ask, make_pending
from tests.service.edge.web.sites import PASSWORD, Site, serve
from tests.service.edge.web.stories import place_of
from tests.service.features.codes.apps import forget_use, make_code

pytestmark = pytest.mark.browser


@pytest.fixture
def desk(settings: Settings) -> Iterator[Site]:
    with serve(settings) as site:
        yield site


@pytest.fixture(params=[(390, 844), (1440, 900)], ids=["phone", "desktop"])
def page(request: pytest.FixtureRequest, desk: Site, browser: Browser) -> Iterator[Page]:
    width, height = request.param
    context = browser.new_context(viewport={"width": width, "height": height}, base_url=desk.url)
    yield context.new_page()
    context.close()


def enrol(desk: Site, page: Page) -> str:
    """Sign Ben in and add an app on his page; return its secret."""
    desk.act(lambda wiring: wiring.reviewers.add("ben", PASSWORD, ("reviewer",)))
    give_password(page)
    page.goto("/me")
    page.get_by_role("link", name="Your authenticator app").click()
    page.get_by_role("button", name="Add an authenticator app").click()
    seed = page.locator("#secret").inner_text()
    assert page.get_by_role("link", name="Open the app").get_attribute("href") == (
        f"otpauth://totp/Sayso:ben?digits=6&secret={seed}&algorithm=SHA1&issuer=Sayso&period=30"
    )
    page.get_by_label("2. Type the code that the app shows").fill(make_code(seed))
    page.get_by_role("button", name="Add the app").click()
    expect(page.get_by_text("The app is added.")).to_be_visible()
    desk.act(lambda wiring: forget_use(wiring, "ben"))
    return seed


def give_password(page: Page) -> None:
    page.goto("/sign-in?next=/history")
    page.get_by_label("Name").fill("ben")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def test_app_is_added_and_its_code_signs_in(desk: Site, page: Page) -> None:
    seed = enrol(desk, page)
    page.context.clear_cookies()
    give_password(page)
    expect(page.get_by_label("Code of your authenticator app")).to_be_focused()
    page.keyboard.type(make_code(seed))
    page.keyboard.press("Enter")
    page.wait_for_url("/history")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_keys_approve_after_the_code_is_typed(desk: Site, page: Page) -> None:
    seed = enrol(desk, page)
    record = desk.act(lambda wiring: make_pending(wiring, ask(terms=RuleTerms(step_up="code"))))
    page.goto(place_of(record))
    field = page.get_by_label("Code of your authenticator app")
    page.keyboard.press("a")
    expect(field).to_be_focused()
    page.keyboard.type(make_code(seed))
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    expect(page.locator(".armed")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("#timeline").get_by_text("with a code of their app")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
