import re

from service.settings import Settings
from tests.service.web.sites import visit
from tests.service.web.stories import REFUND_ARGS, ask_value, asked, decide, make_ask


def count(page: str) -> int:
    return len(re.findall(r'<li class="card over">', page))


async def test_decided_page_without_decisions(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert "No decisions yet." in await anna.read("/decided")


async def test_decided_page_filters_by_outcome_agent_and_text(settings: Settings) -> None:
    async with visit(settings) as anna:
        await asked(anna.wiring)
        await decide(anna.wiring, await asked(anna.wiring, agent="shop"), "approve", args={**REFUND_ARGS, "amount": 7})
        await decide(anna.wiring, await asked(anna.wiring), "deny", message="Too old")
        await decide(anna.wiring, await asked(anna.wiring, ask_value(), agent="travel"), "value", value="HH-1234")
        await asked(anna.wiring, make_ask(terms={"timeout_s": 0}))
        page = await anna.read("/decided")
        assert count(page) == 4
        for words in ("ben approved this with edited arguments", "ben denied this", "Too old", "ben gave a value"):
            assert words in page, words
        for query, found in (
            ("verdict=denied", 2),
            ("verdict=approved", 1),
            ("verdict=nonsense", 4),
            ("agent=TRAV", 1),
            ("q=too+old", 1),
            ("q=chicago", 1),
            ("q=CUP-7", 3),
            ("q=%2525", 0),
            ("verdict=denied&agent=support&q=cup", 2),
        ):
            assert count(await anna.read(f"/decided?{query}")) == found, query
        assert "Nothing matches." in await anna.read("/decided?q=zebra")


async def test_decided_page_escapes_the_filter(settings: Settings) -> None:
    async with visit(settings) as anna:
        page = await anna.read("/decided?agent=%22%3E%3Cb%3E&verdict=denied")
        assert 'value="&#34;&gt;&lt;b&gt;"' in page
        assert '<option value="denied" selected>' in page


async def test_decided_page_pages_without_gaps(settings: Settings) -> None:
    async with visit(settings) as anna:
        for place in range(30):
            await decide(anna.wiring, await asked(anna.wiring), "deny", message=f"reason {place}.")
        first = await anna.read("/decided")
        following = re.search(r'rel="next" href="\?[^"]*skip=(\d+)"', first)
        assert following is not None
        second = await anna.read(f"/decided?skip={following[1]}")
        seen = re.findall(r"reason (\d+)\.", first) + re.findall(r"reason (\d+)\.", second)
        assert [int(place) for place in seen] == list(range(29, -1, -1))
