import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from service.core.settings import Settings
from service.core.store.connection.formats import check_format
from service.edge.web.live import APART_S
from tests.builders import person
from tests.service.edge.web.sites import CSRF, OWN, serve, visit
from tests.service.edge.web.stories import asked, decide


@pytest.fixture(autouse=True)
async def store_in_our_format(settings: Settings) -> None:
    """Claim the store before the tests write into it, as a service that starts does."""
    await check_format(settings.store_url)


@asynccontextmanager
async def stream(settings: Settings, query: str = "") -> AsyncIterator[tuple[AsyncIterator[str], httpx.AsyncClient]]:
    """Follow what the service tells a page; the client can send more."""
    with serve(settings) as site:
        cookies = {"sayso_session_8321": site.token_of("anna")}
        async with (
            httpx.AsyncClient(base_url=site.url, cookies=cookies, timeout=20) as client,
            client.stream("GET", f"/live{query}") as response,
        ):
            assert response.status_code == 200
            assert response.headers["content-type"].startswith("text/event-stream")
            assert response.headers["cache-control"] == "no-store"
            yield response.aiter_lines(), client


async def follow(lines: AsyncIterator[str], wanted: str) -> list[str]:
    """Return the lines up to the one wanted."""
    seen: list[str] = []
    async with asyncio.timeout(15):
        async for line in lines:
            seen.append(line)
            if line == wanted:
                return seen
    raise AssertionError(seen)


async def test_stream_sends_the_count_at_once_and_after_changes(settings: Settings) -> None:
    async with stream(settings) as (lines, _), visit(settings, None) as desk:
        seen = await follow(lines, "data: 0")
        assert seen[:3] == ["retry: 2000", "", "event: seen"]
        assert seen[-2:] == ["event: inbox", "data: 0"]
        record = await asked(desk.wiring)
        await follow(lines, "data: 1")
        await decide(desk.wiring, record, "approve")
        assert "event: run" not in await follow(lines, "data: 0")


async def test_stream_names_the_changed_suspensions(settings: Settings) -> None:
    async with stream(settings) as (lines, _), visit(settings, None) as desk:
        await follow(lines, "event: all")
        record = await asked(desk.wiring)
        seen = await follow(lines, "data: 1")
        while not any(record.id in line for line in seen):
            seen.append(await anext(lines))
        assert "event: rows" in seen
        assert "event: all" not in seen


@pytest.mark.parametrize("of", ["every run", "one run"])
async def test_stream_sends_nothing_without_changes(settings: Settings, of: str) -> None:
    async with visit(settings, None) as desk:
        record = await asked(desk.wiring)
        async with stream(settings, f"?run={record.run.id}" if of == "one run" else "") as (lines, _):
            await follow(lines, f"data: {record.run.id}" if of == "one run" else "data:")
            heard = 0
            while (await asyncio.wait({line := asyncio.ensure_future(anext(lines))}, timeout=5 * APART_S))[0]:
                heard += 1
                assert heard < 20, line.result()  # a late word of the request itself may come first
            line.cancel()


async def test_stream_of_a_run_sends_its_changes(settings: Settings) -> None:
    async with visit(settings, None) as desk:
        record = await asked(desk.wiring)
        async with stream(settings, f"?run={record.run.id}") as (lines, _):
            await follow(lines, "event: run")
            await asked(desk.wiring)
            assert "event: run" not in await follow(lines, "data: 2")
            await decide(desk.wiring, record, "approve")
            await follow(lines, "event: run")


async def test_one_stream_names_each_of_its_runs(settings: Settings) -> None:
    async with visit(settings, None) as desk:
        first, second = await asked(desk.wiring), await asked(desk.wiring)
        query = f"?run={first.run.id}&run={second.run.id}&run=run_gone"
        async with stream(settings, query) as (lines, _):
            assert "event: all" in await follow(lines, f"data: {second.run.id}")
            await decide(desk.wiring, second, "approve")
            seen = await follow(lines, f"data: {second.run.id}")
            assert f"data: {first.run.id}" not in seen
            await decide(desk.wiring, first, "approve")
            await follow(lines, f"data: {first.run.id}")


async def test_stream_that_joins_another_begins_with_the_count(settings: Settings) -> None:
    async with visit(settings, None) as desk:
        record = await asked(desk.wiring)
        async with stream(settings, f"?joined=1&run={record.run.id}") as (lines, _):
            await follow(lines, "data: 1")
            await decide(desk.wiring, record, "approve")
            seen = await follow(lines, f"data: {record.run.id}")
            assert "event: all" not in seen


async def test_quiet_stream_sends_pings(settings: Settings) -> None:
    async with stream(settings) as (lines, _):
        await follow(lines, "event: ping")


async def test_stream_merges_simultaneous_changes(settings: Settings) -> None:
    async with stream(settings) as (lines, _), visit(settings, None) as desk:
        await follow(lines, "data: 0")
        for _ in range(40):
            await asked(desk.wiring)
        seen = await follow(lines, "data: 40")
        assert seen.count("event: inbox") < 40


async def test_stream_of_a_run_sends_freezes(settings: Settings) -> None:
    async with visit(settings, None) as desk:
        record = await asked(desk.wiring)
        async with stream(settings, f"?run={record.run.id}") as (lines, _):
            await follow(lines, "event: run")
            freeze = await desk.wiring.freezes.freeze("agent:other", "Wrong", person("root"))
            await follow(lines, "event: run")
            await desk.wiring.freezes.unfreeze(freeze.id, person("root"))
            await follow(lines, "event: run")


async def test_stream_ends_with_the_service(settings: Settings) -> None:
    with serve(settings) as site:
        cookies = {"sayso_session_8321": site.token_of("anna")}
        client = httpx.AsyncClient(base_url=site.url, cookies=cookies, timeout=20)
        request = client.build_request("GET", "/live")
        response = await client.send(request, stream=True)
        lines = response.aiter_lines()
        await follow(lines, "data: 0")
    async with asyncio.timeout(5):
        assert "data: 1" not in [line async for line in lines]
    await client.aclose()


async def test_stream_ends_after_sign_out(settings: Settings) -> None:
    async with stream(settings) as (lines, client), visit(settings, None) as desk:
        await follow(lines, "data: 0")
        await client.post("/sign-out", data={"csrf": CSRF}, headers=OWN)
        await asked(desk.wiring)
        async with asyncio.timeout(10):
            assert "data: 1" not in [line async for line in lines]


async def test_stream_needs_a_session_and_an_existing_run(settings: Settings) -> None:
    async with visit(settings) as anna:
        await anna.read("/live?run=run_1", 404)
    async with visit(settings, None) as guest:
        assert (await guest.client.get("/live")).status_code == 303
        assert (await guest.client.get("/live", headers={"Accept": "text/event-stream"})).status_code == 401


@asynccontextmanager
async def open_page(settings: Settings) -> AsyncIterator[tuple[httpx.AsyncClient, str]]:
    """Open the inbox, and return the client and the mark of the page."""
    with serve(settings) as site:
        cookies = {"sayso_session_8321": site.token_of("anna")}
        async with httpx.AsyncClient(base_url=site.url, cookies=cookies, timeout=20) as client:
            yield client, re.findall(r'data-seen="([^"]+)"', (await client.get("/")).text)[0]


async def test_stream_of_a_current_page_begins_with_the_count_alone(settings: Settings) -> None:
    async with open_page(settings) as (client, mark), client.stream("GET", f"/live?seen={mark}") as response:
        lines = response.aiter_lines()
        seen = await follow(lines, "data: 0")
        async with visit(settings, None) as desk:
            await asked(desk.wiring)
        seen += await follow(lines, "data: 1")
        assert "event: all" not in seen


async def test_stream_of_a_page_that_changed_sends_all(settings: Settings) -> None:
    async with open_page(settings) as (client, mark), visit(settings, None) as desk:
        await asked(desk.wiring)
        async with client.stream("GET", f"/live?seen={mark}") as response:
            await follow(response.aiter_lines(), "event: all")
