import pytest
from redis.asyncio import Redis

from service.core.auth.reviewers import hash_token
from service.core.settings import Settings
from service.core.store.keys import SESSIONS
from service.edge.web.sessions import REFRESH_HEADER, safe_next
from tests.service.edge.web.sites import visit


@pytest.mark.parametrize(
    "place",
    [
        "/",
        "/history",
        "/history?verdict=denied&agent=a%20b",
        "/runs",
        "/runs/run_1",
        "/items/sus_1/i1",
        "/runs/run_1/cancel",
    ],
)
def test_safe_next_returns_own_pages(place: str) -> None:
    assert safe_next(place) == place


@pytest.mark.parametrize(
    "place",
    [
        None,
        "",
        "//evil.example",
        "https://evil.example/",
        "/\\evil.example",
        "\\/evil.example",
        "javascript:alert(1)",
        "/items/../sign-out",
        "/items/a/b/c",
        "/sign-out",
        "/api/v1/runs",
        "/history#//evil.example",
        "/runs/a\r\nSet-Cookie: x=y",
        "/runs/%2f%2fevil.example",
        "/runs/ä",
        " /",
        "/?next=//evil.example",
    ],
)
def test_safe_next_replaces_other_targets(place: str | None) -> None:
    assert safe_next(place) == "/"


@pytest.mark.parametrize(("headers", "renewed"), [({}, True), ({REFRESH_HEADER: "1"}, False)], ids=["person", "page"])
async def test_refreshes_do_not_keep_a_session_alive(
    settings: Settings, headers: dict[str, str], renewed: bool
) -> None:
    async with visit(settings, "anna") as anna:
        key = SESSIONS + hash_token(anna.client.cookies["sayso_session_8321"])
        async with Redis.from_url(settings.store_url) as redis:
            await redis.pexpire(key, 5_000)
            assert (await anna.client.get("/", headers=headers)).status_code == 200
            assert (await redis.pttl(key) > 5_000) == renewed
