"""The filter menus count what waits and what the reader can decide, from the buckets alone."""

import re

import pytest

from sayso.core.clock import now_ms
from service.core.operations.queries import parse_query
from service.core.settings import Settings
from service.core.store.suspensions import buckets
from service.core.store.suspensions.buckets import Buckets
from service.edge.web.content.finding import Filters, Menu, read_filters
from tests.builders import person
from tests.service.edge.web.sites import Visit, visit
from tests.service.edge.web.stories import asked, make_ask

ANNA = person("anna")
UNATTENDED = {"fallback": {"action": "approve"}, "unattended_approval": True}


async def populate(anna: Visit) -> None:
    """Three items of support, one of them for ben alone, and one of the shop."""
    await anna.wiring.part(Buckets).complete(1)
    await asked(anna.wiring, make_ask(terms={"timeout_s": 300}), agent="support")
    await asked(anna.wiring, make_ask(terms={"timeout_s": 3000, "reviewers": ["ben"]}), agent="support")
    await asked(anna.wiring, make_ask(terms={"timeout_s": 30_000, **UNATTENDED}), agent="support")
    await asked(anna.wiring, make_ask(terms={"timeout_s": 30_000}), agent="shop")


async def read(anna: Visit, search: str) -> Filters:
    return await read_filters(anna.wiring, ANNA, parse_query(search), now_ms(), 0)


def list_counts(menu: Menu) -> list[tuple[str, int, int]]:
    return [(one.name, *one.tally) for one in menu.choices if one.tally is not None]


async def test_menus_count_what_waits_and_what_is_mine(settings: Settings) -> None:
    async with visit(settings) as anna:
        await populate(anna)
        filters = await read(anna, "")
        tool, agent, risk, due = filters.menus
        assert (filters.waiting, filters.mine.tally) == (4, (4, 3))
        assert list_counts(tool) == [("refund_payment", 4, 3)]
        assert list_counts(agent) == [("support", 3, 2), ("shop", 1, 1)]
        assert list_counts(risk) == [("May already have run", 0, 0), ("Runs by itself", 1, 1), ("Escalated", 0, 0)]
        assert list_counts(due) == [("Within 10 min", 1, 1), ("Within 1 h", 2, 1), ("Within 24 h", 4, 3)]
        assert [one.name for one in risk.choices if one.tally is None] == [
            "Look-alikes",
            "Hidden characters",
            "Unusual",
        ]


async def test_other_filters_narrow_a_menu_but_not_its_own(settings: Settings) -> None:
    async with visit(settings) as anna:
        await populate(anna)
        filters = await read(anna, 'is:mine agent:"support" due:1h 250')
        _, agent, risk, due = filters.menus
        assert filters.mine.chosen
        assert filters.mine.query == 'agent:"support" due:1h 250'
        assert list_counts(agent) == [("support", 1, 1)]
        assert (agent.chosen, agent.without) == ("support", "is:mine due:1h 250")
        assert [one.chosen for one in agent.choices] == [True]
        assert list_counts(risk)[1] == ("Runs by itself", 0, 0)
        assert list_counts(due) == [("Within 10 min", 1, 1), ("Within 1 h", 1, 1), ("Within 24 h", 2, 2)]
        assert due.chosen == "Within 1 h"


async def test_each_choice_finds_as_many_items_as_it_says(settings: Settings) -> None:
    async with visit(settings) as anna:
        await populate(anna)
        for menu in (await read(anna, "")).menus:
            for choice in menu.choices:
                page = (await anna.client.get("/", params={"q": choice.query})).text
                found = len(re.findall(r'<li class="item"', page))
                assert choice.tally is None or found == choice.tally.waiting, choice.name


async def test_menus_without_buckets_have_no_counts(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "MOST_BUCKETS", 0)
    async with visit(settings) as anna:
        await populate(anna)
        filters = await read(anna, "tool:refund")
        assert (filters.waiting, filters.mine.tally) == (None, None)
        assert [(menu.kind, len(menu.choices)) for menu in filters.menus] == [
            ("tool", 0),
            ("agent", 0),
            ("risk", 6),
            ("due", 3),
        ]
        assert "3 for me" not in await anna.read("/")


async def test_chips_show_the_search_and_links_that_remove_its_parts(settings: Settings) -> None:
    async with visit(settings) as anna:
        await populate(anna)
        page = await anna.read("/?q=parcel+tool:%22<b>%22+is:mine")
        assert 'Tool: <span class="value">&lt;b&gt;</span>' in page
        assert '<a class="remove" href="/?q=parcel%20is%3Amine"' in page
        assert '<span class="words">parcel</span><a class="remove" href="/?q=tool%3A%22%3Cb%3E%22%20is%3Amine"' in page
        assert '<a class="chip" href="/?q=parcel%20tool%3A%22%3Cb%3E%22" aria-current="true">For me' in page
        assert "4 wait outside this filter." in page
