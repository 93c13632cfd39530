import pytest
from redis.asyncio import Redis

from sayso.errors import Conflict, NotFound
from service.features.saved_views import MOST_VIEWS, SavedView, ViewStore
from tests.builders import store_of


@pytest.fixture
def views(redis: Redis) -> ViewStore:
    return ViewStore(store_of(redis))


async def test_views_are_kept_for_each_person_by_name(views: ViewStore) -> None:
    await views.save("anna", SavedView(name=" Refunds ", search="tool:refund"))
    await views.save("anna", SavedView(name="alone", search="is:mine"))
    await views.save("anna", SavedView(name="Refunds", search="tool:refund is:mine"))
    await views.save("ben", SavedView(name="mails", search="tool:mail"))
    first, second = await views.list_of("anna")
    assert (first.name, second.name, second.search) == ("alone", "Refunds", "tool:refund is:mine")
    await views.delete("anna", second.id)
    assert await views.list_of("anna") == (first,)
    with pytest.raises(NotFound, match="You have no saved view"):
        await views.delete("ben", first.id)


async def test_save_refuses_more_views_than_the_most(views: ViewStore) -> None:
    for number in range(MOST_VIEWS):
        await views.save("anna", SavedView(name=f"view {number}", search="is:mine"))
    with pytest.raises(Conflict, match="20 views are saved"):
        await views.save("anna", SavedView(name="one more", search="is:mine"))
    await views.save("anna", SavedView(name="view 7", search="is:doubt"))
    assert len(await views.list_of("anna")) == MOST_VIEWS
