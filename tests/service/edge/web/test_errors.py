from fastapi import Request

from sayso.core.problems import Problem
from sayso.errors import Unavailable
from service.core.settings import Settings
from service.edge.web.languages import COOKIE
from service.edge.web.pages import render_problem
from tests.service.edge.web.sites import visit


async def test_unknown_path_shows_a_page_with_a_link(settings: Settings) -> None:
    async with visit(settings, None) as guest:
        page = await guest.read("/nowhere", 404)
        assert "<h1>Not found</h1>" in page
        assert "There is no page at this address." in page
        assert 'href="/"' in page


async def test_unsupported_method_shows_a_page(settings: Settings) -> None:
    async with visit(settings) as anna:
        response = await anna.client.delete("/runs")
        assert response.status_code == 405
        assert "<html" in response.text


async def test_unavailable_store_shows_a_page(settings: Settings, closed_store_url: str) -> None:
    away = settings.model_copy(update={"redis_url": closed_store_url})
    async with visit(away, None) as guest:
        response = await guest.client.get("/", headers={"Cookie": "sayso_session_8321=x"})
        assert response.status_code == 503
        assert Unavailable().message in response.text
        assert response.headers["retry-after"]


async def test_problem_page_escapes_everything(settings: Settings) -> None:
    async with visit(settings, None) as guest:
        request = Request(
            {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b"", "app": guest.app}
        )
        problem = Problem(418, "x", "<b>Odd</b>", "A\u202e<script>")
        page = render_problem(request, problem)
        assert page.status_code == 418
        assert b"<b>" not in page.body
        assert b"<script>" not in page.body
        assert "⟨U+202E⟩".encode() in page.body


async def test_missing_item_and_run_are_named_in_the_page_language(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert "This item does not exist, or is not yours to see." in await anna.read("/items/sus_nope/i1", 404)
        assert "This run does not exist, or is not yours to see." in await anna.read("/runs/run_nope", 404)
        anna.client.cookies.set(COOKIE, "de")
        page = await anna.read("/items/sus_nope/i1", 404)
        assert "<h1>Nicht gefunden</h1>" in page
        assert "Diesen Eintrag gibt es nicht, oder Sie dürfen ihn nicht sehen." in page
