from service.settings import Settings
from tests.service.web.sites import visit
from tests.service.web.stories import asked, begin


async def test_search_redirects_to_the_page_of_an_id(settings: Settings) -> None:
    async with visit(settings) as anna:
        record, begun = await asked(anna.wiring), await begin(anna.wiring)
        for wanted, place in (
            (record.run.id, f"/runs/{record.run.id}"),
            (f"  {record.id} ", f"/items/{record.id}/i1"),
            (begun.id, f"/runs/{begun.run.id}"),
        ):
            response = await anna.client.get("/search", params={"q": wanted})
            assert (response.status_code, response.headers["location"]) == (303, place)


async def test_search_without_a_result_shows_the_query(settings: Settings) -> None:
    async with visit(settings) as anna:
        page = await anna.read("/search?q=%3Cb%3E", 404)
        assert "Nothing has this ID" in page
        assert 'value="&lt;b&gt;"' in page
        assert "Nothing has this ID" not in await anna.read("/search")
