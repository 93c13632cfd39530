"""The number on an item's page: typed by the reviewer, and never shown to them."""

import re

from sayso.core.records.items import assign_numbers
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import RuleTerms
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.builders import ask, make_pending
from tests.service.edge.web.sites import visit
from tests.service.edge.web.stories import place_of


async def numbered(wiring: Wiring) -> SuspensionRecord:
    return await make_pending(wiring, *assign_numbers((ask(terms=RuleTerms(match_number=True)),), lambda: "42"))


async def test_page_asks_for_the_number_with_an_approval(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await numbered(anna.wiring)
        page = await anna.read(place_of(record))
    (field,) = re.findall(r"<input[^>]*name=\"number\"[^>]*>", page)  # the review of an edit has its own
    assert "value=" not in field
    assert page.count("Ask demo for the two digits of this item") == 1


async def test_wrong_number_shows_the_page_again(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await numbered(anna.wiring)
        given = {"answer": "approve", "digest": record.items[0].digest}
        assert "That is not the number" in await anna.send(place_of(record), 403, **given, number="41")
        assert "That is not the number" in await anna.send(place_of(record), 403, **given)
        assert "The number has two digits" in await anna.send(place_of(record), 422, **given, number="4x")
        await anna.send(place_of(record), 303, **given, number="42")
        assert "anna approved this" in await anna.read(place_of(record))


async def test_too_many_wrong_numbers_must_wait(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await numbered(anna.wiring)
        given = {"answer": "approve", "digest": record.items[0].digest}
        for _ in range(3):
            await anna.send(place_of(record), 403, **given, number="41")
        assert "Too many wrong attempts" in await anna.send(place_of(record), 429, **given, number="42")
        await anna.send(place_of(record), 303, answer="deny", digest=record.items[0].digest)


async def test_item_without_the_term_asks_for_no_number(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await make_pending(anna.wiring)
        assert 'name="number"' not in await anna.read(place_of(record))
