"""One search field in the top bar of every page, also for ids."""

import pytest

from service.core.settings import Settings
from tests.service.edge.web.sites import visit
from tests.service.edge.web.stories import asked, begin


@pytest.mark.parametrize("page", ["/", "/history"])
async def test_search_redirects_to_the_page_of_an_id(settings: Settings, page: str) -> None:
    async with visit(settings) as anna:
        record, begun = await asked(anna.wiring), await begin(anna.wiring)
        for wanted, place in (
            (record.run.id, f"/runs/{record.run.id}"),
            (f"  {record.id} ", f"/items/{record.id}/i1"),
            (begun.id, f"/runs/{begun.run.id}"),
        ):
            response = await anna.client.get(page, params={"q": wanted})
            assert (response.status_code, response.headers["location"]) == (303, place)


async def test_search_for_an_unknown_id_finds_nothing(settings: Settings) -> None:
    async with visit(settings) as anna:
        await asked(anna.wiring)
        page = await anna.read("/?q=run_%3Cb%3E")
        assert "Nothing fits <em>run_&lt;b&gt;</em>." in page
        assert 'value="run_&lt;b&gt;"' in page


async def test_every_page_searches_open_items_or_history(settings: Settings) -> None:
    async with visit(settings) as anna:
        await asked(anna.wiring)
        for place in ("/runs", "/rules", "/me"):
            assert 'action="/" role="search" aria-label="Search open items"' in await anna.read(place)
        page = await anna.read("/history?q=amount%3E7&tool=refund")
        assert 'action="/history" role="search" aria-label="Search history"' in page
        assert 'value="amount&gt;7" form="filters"' in page
