"""Keys of pages that are neither the inbox nor an item: each action has one, and the help lists it."""

from collections.abc import Callable
from functools import partial

import pytest
from playwright.sync_api import Page, expect

from service.core.wiring import Wiring
from tests.service.edge.web.reading import read_to_the_end
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import ask_value, asked, make_ask, place_of

pytestmark = pytest.mark.browser

PASSWORD = "a-long-password"
Open = Callable[..., Page]
LISTED = """() => {
  const texts = (nodes) => [...nodes].map((node) => node.textContent).join("").trim();
  const name = (node) => texts([...node.childNodes].filter((part) => !part.classList?.contains("unseen")));
  const listed = [...document.querySelectorAll("dialog.keys dd")].map((line) => line.textContent);
  const isListed = (name) => listed.some((line) => line === name || line.startsWith(`${name}: `));
  const controls = [...document.querySelectorAll("main :is(button, summary, a.button)")];
  const shown = controls.filter((control) => control.checkVisibility() && !control.disabled);
  return shown.map(name).filter((name) => !isListed(name));
}"""
PAGES = (
    "/people", "/keys", "/webhooks", "/groups", "/channels", "/rules", "/insights", "/operate", "/drills", "/grants",
    "/second-looks", "/runs", "/history", "/who", "/me", "/me/notifications", "/rules/versions", "/rules/-/replays",
)  # fmt: skip


@pytest.fixture
def open_as_admin(site: Site, open_as: Open) -> Open:
    site.act(lambda wiring: wiring.reviewers.add("root", PASSWORD, ("reviewer", "admin")))
    return partial(open_as, name="root")


@pytest.mark.parametrize("path", PAGES)
def test_each_action_of_a_page_has_a_key_in_the_help(open_as_admin: Open, path: str) -> None:
    page = open_as_admin(path)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    assert page.evaluate(LISTED) == []


def test_key_of_a_form_leads_to_its_first_field(open_as_admin: Open) -> None:
    page = open_as_admin("/groups")
    page.keyboard.press("1")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.type("payments")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="payments")).to_be_visible()


def test_key_of_a_row_leads_to_its_button_and_enter_presses_it(open_as_admin: Open) -> None:
    page = open_as_admin("/people")
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    key = sheet.locator("dt:has(+ dd:text-is('Reset password'))").inner_text()
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    page.keyboard.press("j")
    row = page.locator("tbody tr").first
    expect(row).to_be_focused()
    page.keyboard.press(key.strip())
    expect(row.get_by_role("button", name="Reset password")).to_be_focused()


def test_undo_has_a_key(site: Site, open_as: Open) -> None:
    record = site.act(lambda wiring: asked(wiring, make_ask(terms={"undo": "60s"})))
    page = open_as(place_of(record))
    read_to_the_end(page)
    page.get_by_role("button", name="Approve EUR 250.00").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    page.keyboard.press("Shift+U")
    expect(page.get_by_role("button", name="Approve EUR 250.00")).to_be_visible()


def test_enter_sends_a_choice(site: Site, open_as: Open) -> None:
    async def ask(wiring: Wiring) -> str:
        return place_of(await asked(wiring, ask_value(choices=("gold", "silver"))))

    page = open_as(site.act(ask))
    read_to_the_end(page)
    page.keyboard.press("v")
    page.keyboard.press("Space")
    expect(page.get_by_label("gold")).to_be_checked()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="anna gave a value")).to_be_visible()
