"""The form of a requested value: its prompt, its controls, its problems, and secrets that are never shown again."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, ViewportSize, expect
from pydantic import JsonValue

from sayso.core.records.suspensions import SuspensionRecord
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.reading import read_to_the_end
from tests.service.edge.web.sites import Site, Visit, visit
from tests.service.edge.web.stories import ask_value, asked, place_of

CODE: dict[str, JsonValue] = {
    "type": "string",
    "pattern": "^[0-9]{6}$",
    "description": "Six digits, such as 123456",
}
PASSWORD: dict[str, JsonValue] = {"type": "string", "minLength": 8, "format": "password"}
SIZES = pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
SCRIPTS = pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])

Open = Callable[..., Page]


async def ask_code(wiring: Wiring) -> SuspensionRecord:
    """A run that waits for a code from the bank."""
    prompt = {"title": "Confirmation code", "body": "The code that the bank sent to your phone."}
    return await asked(wiring, ask_value(response_schema=CODE, prompt=prompt))


def value_of(site: Site, record: SuspensionRecord) -> JsonValue:
    async def read(wiring: Wiring) -> JsonValue:
        outcome = (await wiring.desk.suspensions.read(record.id)).record.items[0].outcome
        assert outcome is not None
        return outcome.value

    return site.act(read)


async def send(anna: Visit, record: SuspensionRecord, status: int = 422, **fields: str) -> str:
    return await anna.send(place_of(record), status, answer="value", digest=record.items[0].digest, **fields)


async def test_many_choices_are_a_list(settings: Settings) -> None:
    async with visit(settings) as anna:
        few = await asked(anna.wiring, ask_value(choices=(1, 2, 3, 4, 5)))
        many = await asked(anna.wiring, ask_value(choices=(1, 2, 3, 4, 5, 6)))
        assert (await anna.read(place_of(few))).count('type="radio" name="v0"') == 5
        assert '<select id="v0"' in await anna.read(place_of(many))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"pin": {"type": "string", "writeOnly": True}}, "required": ["pin", "tan"]},
        {"type": "string", "writeOnly": True, "enum": [f"secret-{place}" for place in range(9)]},
        {"type": "integer", "format": "password"},
    ],
)
async def test_refused_secret_is_not_echoed(settings: Settings, schema: dict[str, Any]) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, ask_value(response_schema=schema))
        assert "s3cr3t-canary" not in await send(anna, record, v0="s3cr3t-canary")


async def test_secret_of_the_rule_is_masked(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, ask_value(terms={"secrets": ["loyalty_code"]}))
        assert 'type="password" id="v0"' in await anna.read(place_of(record))


async def test_problem_without_a_pattern_is_told_as_it_is(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(
            anna.wiring, ask_value(response_schema={"type": "integer", "maximum": 9, "title": "Nights"})
        )
        assert 'id="v0-problem">12 is greater than the maximum of 9' in await send(anna, record, v0="12")


@SCRIPTS
@SIZES
def test_code_is_asked_with_its_prompt_and_corrected(
    site: Site, open_as: Open, viewport: ViewportSize, scripts: bool
) -> None:
    """Type "12 34", read what is wanted without a regular expression, and send six digits."""
    record = site.act(ask_code)
    page = open_as(place_of(record), viewport=viewport, java_script_enabled=scripts)
    form = page.locator("#forms .value")
    expect(form).to_contain_text("Confirmation code")
    expect(form).to_contain_text("The code that the bank sent to your phone.")
    field = page.get_by_label("loyalty_code")
    expect(field).to_have_attribute("inputmode", "numeric")
    expect(field).to_have_attribute("autocomplete", "one-time-code")
    read_to_the_end(page)
    field.fill("12 34")
    page.locator(".decide .sends .wide").click()
    expect(page.locator("#v0-problem")).to_have_text("Six digits, such as 123456")
    expect(page.get_by_role("alert")).to_contain_text("Not sent")
    expect(page.locator("main")).not_to_contain_text("[0-9]")
    expect(field).to_have_value("12 34")
    field.fill("123456")
    page.locator(".decide .sends .wide").click()
    expect(page.get_by_role("heading", name="anna gave a value")).to_be_visible()
    assert value_of(site, record) == "123456"


@SCRIPTS
@SIZES
def test_few_choices_are_buttons_in_a_row(site: Site, open_as: Open, viewport: ViewportSize, scripts: bool) -> None:
    record = site.act(lambda wiring: asked(wiring, ask_value(choices=("eu-west", "eu-north", "us-east"))))
    page = open_as(place_of(record), viewport=viewport, java_script_enabled=scripts)
    choices = page.locator("#forms .value").get_by_role("radio")
    expect(choices).to_have_count(3)
    read_to_the_end(page)
    page.locator(".decide .sends .wide").click()
    expect(page.locator("#forms .value").get_by_role("radio", checked=True)).to_have_count(0)
    page.get_by_label("eu-north").check()
    page.get_by_label("eu-north").press("Enter")
    if not scripts:
        expect(page.get_by_label("eu-north")).to_be_checked()
        page.locator(".decide .sends .wide").click()
    expect(page.get_by_role("heading", name="anna gave a value")).to_be_visible()
    assert value_of(site, record) == "eu-north"


@SCRIPTS
def test_secret_value_is_masked_and_never_shown_again(site: Site, open_as: Open, scripts: bool) -> None:
    record = site.act(lambda wiring: asked(wiring, ask_value(response_schema=PASSWORD)))
    page = open_as(place_of(record), java_script_enabled=scripts)
    field = page.get_by_label("loyalty_code")
    expect(field).to_have_attribute("type", "password")
    field.fill("hunter2")
    page.locator(".decide .sends .wide").click()
    expect(page.locator("#v0-problem")).to_have_text("This does not have the required form.")
    expect(field).to_have_value("")
    assert "hunter2" not in page.content()
    field.fill("correct horse")
    page.locator(".decide .sends .wide").click()
    expect(page.get_by_role("heading", name="anna gave a value")).to_be_visible()
