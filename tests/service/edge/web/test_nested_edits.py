"""Edits of nested arguments: entries are added, moved and removed, and alternatives chosen, without scripts, too."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from sayso.core.canonical_json import JsonObject
from sayso.core.records.suspensions import SuspensionRecord
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.orders import ORDER_ARGS, ask_order
from tests.service.edge.web.reading import approve_edit, begin_edit
from tests.service.edge.web.sites import Site, visit
from tests.service.edge.web.stories import ask_value, asked, place_of
from tests.service.edge.web.test_gallery import check_page

Open = Callable[..., Page]


def args_of(site: Site, record: SuspensionRecord) -> Any:
    async def read(wiring: Wiring) -> Any:
        outcome = (await wiring.desk.suspensions.read(record.id)).record.items[0].outcome
        return outcome.args if outcome is not None else None

    return site.act(read)


async def test_step_of_the_form_records_nothing_and_keeps_invalid_texts(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await ask_order(anna.wiring)
        version = (await anna.wiring.desk.suspensions.read(record.id)).record.version
        typed = {"f1.?": "1", "f1.#": "1", "f1.0.@": "0", "f1.0.?": "1", "f1.0.0": "CUP-9", "f1.0.1": "many"}
        page = await anna.send(
            place_of(record), 200, answer="edit", step="add:f1", digest=record.items[0].digest, **typed
        )
        assert 'name="f1.#" value="2"' in page
        assert 'value="many"' in page
        assert "-problem" not in page
        assert (await anna.wiring.desk.suspensions.read(record.id)).record.version == version


async def test_form_of_a_value_has_nested_fields(settings: Settings) -> None:
    schema = {"type": "array", "items": {"type": "string"}, "title": "Codes"}
    async with visit(settings) as anna:
        record = await asked(anna.wiring, ask_value(response_schema=schema, target_arg=None))
        digest = record.items[0].digest
        page = await anna.send(
            place_of(record), 200, answer="value", step="add:v0", digest=digest, **{"v0.?": "1", "v0.#": "0"}
        )
        assert 'name="v0.0"' in page
        sent = {"v0.?": "1", "v0.#": "1", "v0.0.@": "", "v0.0": "HH-77"}
        await anna.send(place_of(record), 303, answer="value", digest=digest, **sent)
        outcome = (await anna.wiring.desk.suspensions.read(record.id)).record.items[0].outcome
        assert outcome is not None
        assert outcome.value == ["HH-77"]


@pytest.mark.parametrize(
    ("viewport", "scripts"), [(PHONE, True), (DESKTOP, False)], ids=["phone", "desktop without scripts"]
)
def test_order_is_edited_and_approved(site: Site, open_as: Open, viewport: ViewportSize, scripts: bool) -> None:
    record = site.act(ask_order)
    page = open_as(place_of(record), viewport=viewport, java_script_enabled=scripts)
    begin_edit(page)
    page.get_by_label("name", exact=True).fill("Ann")
    page.get_by_role("button", name="Add an entry to lines").click()
    expect(page.get_by_label("name", exact=True)).to_have_value("Ann")
    third = page.get_by_role("group", name="lines 3")
    third.get_by_label("sku").fill("CUP-9")
    third.get_by_label("count").fill("5")
    page.get_by_role("button", name="Up lines 3").click()
    expect(page.get_by_role("group", name="lines 2").get_by_label("sku")).to_have_value("CUP-9")
    page.get_by_role("button", name="Remove lines 1").click()
    expect(page.get_by_role("group", name="lines 3")).to_have_count(0)
    page.get_by_label("Card", exact=True).first.check()
    page.get_by_label("digits").fill("4242")
    if scripts:
        check_page(page, "nested edit")
    page.get_by_role("button", name="Review").click()
    page.get_by_role("button", name="Back").click()
    expect(page.get_by_label("digits")).to_have_value("4242")
    approve_edit(page)
    expect(page.get_by_role("heading", name="anna approved this with")).to_be_visible()
    expected: JsonObject = {
        **ORDER_ARGS,
        "customer": {"name": "Ann", "since": "2024-02-29"},
        "lines": [{"sku": "CUP-9", "count": 5}, {"sku": "CUP-8", "count": 1}],
        "payment": {"kind": "card", "digits": "4242"},
    }
    assert args_of(site, record) == expected
