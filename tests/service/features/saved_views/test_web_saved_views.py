from service.core.settings import Settings
from service.features.saved_views import MOST_VIEWS, SavedView, ViewStore
from tests.service.edge.web.sites import OWN, visit


async def test_view_is_saved_listed_and_deleted(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert "Save view" not in await anna.read("/?q=")
        assert "Save view" in await anna.read("/?q=tool:refund")
        assert await anna.send("/views", q="tool:refund amount>1000", name="<b>Large</b>") == (
            "/?q=tool%3Arefund+amount%3E1000"
        )
        page = await anna.read("/?q=is:mine")
        assert '<a href="/?q=tool%3Arefund%20amount%3E1000"><span class="value">&lt;b&gt;Large&lt;/b&gt;</span>' in page
        (view,) = await anna.wiring.part(ViewStore).list_of("anna")
        assert await anna.send("/views/delete", q="is:mine", which=view.id) == "/?q=is%3Amine"
        assert await anna.wiring.part(ViewStore).list_of("anna") == ()
        assert "You have no saved view" in await anna.send("/views/delete", 404, which=view.id)


async def test_view_that_cannot_be_saved_is_refused(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert "a name of 1 to 60 characters" in await anna.send("/views", 422, q="is:mine", name="x" * 61)
        assert "a name of 1 to 60 characters" in await anna.send("/views", 422, q="", name="x")
        for number in range(MOST_VIEWS):
            await anna.wiring.part(ViewStore).save("anna", SavedView(name=f"view {number}", search="is:mine"))
        assert "20 views are saved" in await anna.send("/views", 409, q="is:mine", name="x")
        page = await anna.read("/?q=is:mine")
        assert "the most you can save" in page
        assert "Save view" not in page


async def test_view_is_saved_only_by_a_form_of_the_session(settings: Settings) -> None:
    async with visit(settings) as anna:
        fields = {"csrf": "0" * 128, "q": "is:mine", "name": "x"}
        response = await anna.client.post("/views", data=fields, headers=OWN)
        assert response.status_code == 403
        assert await anna.wiring.part(ViewStore).list_of("anna") == ()
