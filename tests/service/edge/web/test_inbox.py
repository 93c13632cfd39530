import re
from html import unescape

import pytest

from service.core.settings import Settings
from service.core.store.suspensions.buckets import Buckets
from service.edge.web.content import finding
from tests.service.edge.web.sites import visit
from tests.service.edge.web.stories import BOOK_HOTEL, BOOK_HOTEL_ARGS, ask_value, asked, decide, make_ask, place_of

LONG = "x" * 3_000  # more than the search keeps of an item, so its record decides


def tools(page: str) -> list[str]:
    return re.findall(r'<h3><a href="/items/[^"]+"[^>]*>(?:<span class="tool">)?([^<]+)', page)


def find_rows(page: str) -> list[str]:
    return re.findall(r'<li class="item" id="([^"]+)"', page)


def find_next(page: str) -> str:
    """The address of the next page of the list."""
    links = re.findall(r'href="(/?\?[^"]*after=[^"]+)"', page)
    return "/" + unescape(links[0]).lstrip("/")


def section(page: str, name: str) -> str:
    return re.split(r'<(?:section|details) data-section="', page.partition(f'data-section="{name}"')[2])[0]


async def test_inbox_without_items(settings: Settings) -> None:
    async with visit(settings) as anna:
        page = await anna.read("/")
        assert "All done." in page
        assert "<title>Inbox · Sayso</title>" in page


@pytest.mark.parametrize(("place", "leads_to"), [("/inbox", "/"), ("/inbox?q=is%3Amine", "/?q=is%3Amine")])
@pytest.mark.parametrize("name", ["anna", None])
async def test_inbox_path_leads_to_the_inbox(settings: Settings, name: str | None, place: str, leads_to: str) -> None:
    async with visit(settings, name) as somebody:
        answer = await somebody.client.get(place)
        assert (answer.status_code, answer.headers["location"]) == (308, leads_to)
        followed = await somebody.client.get(place, follow_redirects=True)
        assert (followed.status_code, f"<title>{'Inbox' if name else 'Sign in'}" in followed.text) == (200, True)


async def test_inbox_sorts_items_by_deadline(settings: Settings) -> None:
    async with visit(settings) as anna:
        await asked(anna.wiring, make_ask(terms={"timeout_s": 900}), title="Broken cup")
        await asked(anna.wiring, ask_value(terms={"timeout_s": 60, "fallback": {"action": "fail"}}))
        page = await anna.read("/")
        assert tools(page) == ["book_hotel", "Refund payment EUR 250.00"]
        assert "<title>(2) Inbox · Sayso</title>" in page
        assert tools(section(page, "soon")) == ["book_hotel"]
        assert "wants: loyalty_code" in page
        for words in ("Refunds over 100 need a person", "Broken cup", "requested by"):
            assert words not in page


async def test_inbox_has_a_card_per_open_item(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring, make_ask(), make_ask(BOOK_HOTEL, BOOK_HOTEL_ARGS, index=1))
        assert len(tools(await anna.read("/"))) == 2
        await decide(anna.wiring, record, "approve", item_id="i1")
        page = await anna.read("/")
        assert tools(page) == ["book_hotel"]
        assert "<title>(1) Inbox" in page
        await decide(anna.wiring, record, "deny", item_id="i2")
        assert "All done. 2 decided today, median " in await anna.read("/")


async def test_inbox_folds_items_of_other_reviewers(settings: Settings) -> None:
    async with visit(settings) as anna:
        await asked(anna.wiring, make_ask(terms={"reviewers": ["ben"]}))
        page = await anna.read("/")
        assert "None of these is for you to decide." in page
        assert "All done" not in page
        assert "Only ben can decide this." in section(page, "others")
        await asked(anna.wiring)
        page = await anna.read("/")
        assert "None of these is for you to decide." not in page
        assert len(tools(section(page, "others"))) == 1


async def test_row_counts_the_values_that_it_leaves_out(settings: Settings) -> None:
    async with visit(settings) as anna:
        await asked(anna.wiring)
        assert '<span class="more">+ 2 values</span>' in await anna.read("/")


async def test_inbox_is_paged(settings: Settings) -> None:
    async with visit(settings) as anna:
        for place in range(53):
            await asked(anna.wiring, agent=f"agent-{place}")
        first = await anna.read("/")
        assert len(tools(first)) == 50
        assert "Load 50 more" in first
        second = await anna.read(find_next(first))
        assert len(tools(second)) == 3
        assert "First page" in second
        assert set(find_rows(first)).isdisjoint(find_rows(second))


async def test_filtered_inbox_is_paged(settings: Settings) -> None:
    async with visit(settings) as anna:
        for place in range(106):
            await asked(anna.wiring, make_ask(), agent=f"{('support', 'shop')[place % 2]}-{place}")
        first = await anna.read("/?q=agent:shop")
        second = await anna.read(find_next(first))
        assert (len(tools(first)), len(tools(second))) == (50, 3)


async def test_inbox_with_an_invalid_place_shows_a_problem(settings: Settings) -> None:
    async with visit(settings) as anna:
        page = await anna.read("/?after=many", 422)
        assert "<html" in page
        assert "Open the inbox again." in page


async def test_search_finds_items_by_text_tool_and_amount(settings: Settings) -> None:
    async with visit(settings) as anna:
        await asked(anna.wiring, make_ask(), make_ask(BOOK_HOTEL, BOOK_HOTEL_ARGS, index=1))
        await asked(anna.wiring, make_ask(args={"amount": 4890}), agent="shop")
        for query, found in (
            ("q=chicago", 1),
            ("q=tool:refund", 2),
            ("q=agent:shop+amount%3E1000", 1),
            ("q=is:doubt", 0),
        ):
            assert len(tools(await anna.read(f"/?{query}"))) == found, query


async def test_search_without_a_match_says_how_many_wait(settings: Settings) -> None:
    async with visit(settings) as anna:
        await asked(anna.wiring)
        page = await anna.read("/?q=tool:%3Cpayout%3E")
        assert "Nothing fits <em>tool:&lt;payout&gt;</em>." in page
        assert "1 waits outside this filter." in page
        assert 'value="tool:&lt;payout&gt;"' in page
        assert "“is:odd” is not a filter." in await anna.read("/?q=is:odd")


async def test_search_says_when_it_was_cut(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "BUDGET_MS", -1)
    async with visit(settings) as anna:
        for place in range(53):
            await asked(anna.wiring, make_ask(args={"note": LONG, "place": place}))
        page = await anna.read("/?q=place=52")
        assert "Nothing among 50 runs fits" in page
        assert len(tools(await anna.read(find_next(page)))) == 1
        assert "50 runs were searched." in await anna.read("/?q=place=1")


async def test_search_finds_every_item_and_counts_them(settings: Settings) -> None:
    async with visit(settings) as anna:
        await anna.wiring.part(Buckets).complete(1)
        for place in range(103):
            await asked(anna.wiring, make_ask(args={"place": place}), agent=f"agent-{place}")
        page = await anna.read("/?q=place=102")
        assert "1 found" in page
        assert len(tools(page)) == 1
        page = await anna.read("/?q=refund place>=20")
        assert "83 found" in page
        assert "Search further" not in page
        assert len(tools(page)) == 50
        assert len(tools(await anna.read(find_next(page)))) == 33
        assert "103 found" in await anna.read("/?q=tool:refund")
        assert "found</p>" not in await anna.read("/")


async def test_search_that_goes_further_keeps_what_it_found(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "BUDGET_MS", -1)
    async with visit(settings) as anna:
        made = [
            await asked(anna.wiring, make_ask(args={"note": LONG, "mark": 7 if place in (1, 52) else 8}))
            for place in range(53)
        ]
        first = await anna.read("/?q=mark=7")
        assert len(tools(first)) == 1
        further = await anna.read(find_next(first))
        assert [place_of(made[place]) in further for place in (1, 52)] == [True, True]
        assert len(tools(further)) == 2
        await decide(anna.wiring, made[1], "deny")
        assert len(tools(await anna.read(find_next(first)))) == 1


async def test_search_does_not_find_masked_secrets(settings: Settings) -> None:
    async with visit(settings) as anna:
        await asked(anna.wiring, make_ask(args={"token": "hunter2hunter2"}, terms={"secrets": ["token"]}))
        assert tools(await anna.read("/?q=hunter2")) == []
        assert tools(await anna.read("/?q=token")) == ["refund_payment"]


async def test_next_leads_to_the_item_after_the_named_one(settings: Settings) -> None:
    async with visit(settings) as anna:
        first, second = [await asked(anna.wiring, make_ask(terms={"timeout_s": 900 + place})) for place in range(2)]
        await asked(anna.wiring, make_ask(terms={"reviewers": ["ben"]}))
        for after, target in (("", first), (f"{first.id}-i1", second), (f"{second.id}-i1", first)):
            response = await anna.client.get("/next", params={"after": after})
            assert response.headers["location"] == place_of(target)
        await decide(anna.wiring, second, "deny")
        response = await anna.client.get("/next", params={"after": f"{first.id}-i1"})
        assert response.headers["location"] == "/"


async def test_next_follows_the_filter_of_the_inbox(settings: Settings) -> None:
    async with visit(settings) as anna:
        agents = ("shop", "travel", "shop")
        made = [
            await asked(anna.wiring, make_ask(terms={"timeout_s": 900 + place}), agent=agent)
            for place, agent in enumerate(agents)
        ]
        for query, target in (("", made[1]), ("agent:shop", made[2]), ("is:odd", made[1])):
            response = await anna.client.get("/next", params={"after": f"{made[0].id}-i1", "q": query})
            assert response.headers["location"] == place_of(target), query
        response = await anna.client.get("/next", params={"after": f"{made[1].id}-i1", "q": 'agent:"travel'})
        assert response.headers["location"] == "/?q=agent%3A%22travel"


async def test_next_item_without_scripts_is_that_of_the_list_seen_last(settings: Settings) -> None:
    async with visit(settings) as anna:
        made = [
            await asked(anna.wiring, make_ask(terms={"timeout_s": 900 + place}), agent=agent)
            for place, agent in enumerate(("support", "travel", "support"))
        ]

        async def follow(**query: str) -> str:
            answer = await anna.client.get("/next", params={"after": f"{made[0].id}-i1", **query})
            return answer.headers["location"]

        await anna.read("/?q=agent:support")
        assert await follow() == place_of(made[2])
        assert await follow(q="agent:travel") == place_of(made[1])
        assert await follow(q="") == place_of(made[1])
        await anna.read("/")
        assert await follow() == place_of(made[1])
