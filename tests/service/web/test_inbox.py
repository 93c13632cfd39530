import re

from service.settings import Settings
from tests.service.web.sites import visit
from tests.service.web.stories import BOOK_HOTEL, BOOK_HOTEL_ARGS, ask_value, asked, decide, make_ask


def tools(page: str) -> list[str]:
    return re.findall(r'<h2><a href="/items/[^"]+"(?: class="tool")?>([^<]+)</a></h2>', page)


async def test_inbox_without_items(settings: Settings) -> None:
    async with visit(settings) as anna:
        page = await anna.read("/")
        assert "Nothing is waiting for you." in page
        assert "<title>Inbox · Sayso</title>" in page


async def test_inbox_sorts_items_by_deadline(settings: Settings) -> None:
    async with visit(settings) as anna:
        await asked(anna.wiring, make_ask(terms={"timeout_s": 900}), title="Broken cup")
        await asked(anna.wiring, ask_value(terms={"timeout_s": 60, "fallback": {"action": "fail"}}))
        page = await anna.read("/")
        assert tools(page) == ["book_hotel", "Refund payment EUR 250.00"]
        assert "<title>(2) Inbox · Sayso</title>" in page
        assert "2 runs are waiting, the next deadline first." in page
        for words in ("Refunds over 100 need a person", "Broken cup", "support, requested by demo", "the run fails"):
            assert words in page


async def test_inbox_has_a_card_per_open_item(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, make_ask(), make_ask(BOOK_HOTEL, BOOK_HOTEL_ARGS, index=1))
        assert len(tools(await anna.read("/"))) == 2
        await decide(anna.wiring, record, "approve", item_id="i1")
        page = await anna.read("/")
        assert tools(page) == ["book_hotel"]
        assert "1 run is waiting." in page
        await decide(anna.wiring, record, "deny", item_id="i2")
        assert "Nothing is waiting" in await anna.read("/")


async def test_inbox_marks_items_of_other_reviewers(settings: Settings) -> None:
    async with visit(settings) as anna:
        await asked(anna.wiring, make_ask(terms={"reviewers": ["ben"]}))
        assert "Only ben can decide this." in await anna.read("/")


async def test_inbox_is_paged(settings: Settings) -> None:
    async with visit(settings) as anna:
        for _ in range(53):
            await asked(anna.wiring)
        first, second = await anna.read("/"), await anna.read("/?skip=50")
        assert len(tools(first)) == 50
        assert 'href="?skip=50"' in first
        assert len(tools(second)) == 3
        assert 'href="?skip=0"' in second


async def test_inbox_with_an_invalid_page_shows_a_problem(settings: Settings) -> None:
    async with visit(settings) as anna:
        page = await anna.read("/?skip=many", 422)
        assert "<html" in page
