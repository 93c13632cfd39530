"""Headers, limits and errors of every response of the service."""

import asyncio
import tomllib
from collections.abc import AsyncIterator

import pytest
from httpx import AsyncClient
from redis.asyncio import Redis
from structlog.testing import capture_logs

from sayso.core.records.freezes import ClockReading
from service.app import VERSION, begin_closing, create_app
from service.core.settings import CHECKOUT, Settings
from service.core.settings.limits import TENANT
from service.core.store.connection.connecting import connect
from service.core.store.connection.formats import check_format
from service.core.store.keys import TenantKeys
from tests.builders import make_pending, make_running, person
from tests.service.servers import served
from tests.service.worlds import World, waiting
from tests.waits import until

POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/healthz", 200),
        ("GET", "/api/v1/runs", 200),
        ("GET", "/api/v1/runs/nowhere", 404),
        ("GET", "/api/nowhere", 404),
        ("PUT", "/api/v1/runs", 405),
        ("POST", "/hooks/decisions", 503),
        ("GET", "/sign-in", 200),
        ("GET", "/", 303),
        ("GET", "/nowhere", 404),
        ("GET", "/static/nowhere.css", 404),
    ],
)
async def test_security_headers_are_on_every_answer(world: World, method: str, path: str, status: int) -> None:
    async with world.client("anna") as client:
        answer = await client.request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] in ("no-referrer", "same-origin")
    assert "server" not in answer.headers


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/api/v1/runs", "GET, POST"),
        ("/api/v1/suspensions/sus_0/items/i1/decision", "DELETE, POST"),
        ("/api/aap/v1/requests/01a20050-ff1e-e40b-3042-aa4054b3500a", "DELETE, GET"),
        ("/healthz", "GET, HEAD"),
        ("/sign-in", "GET, HEAD, POST"),
        ("/live", "GET"),
    ],
)
async def test_unsupported_method_lists_the_supported_ones(world: World, path: str, methods: str) -> None:
    async with world.client("anna") as client:
        answer = await client.put(path)
    assert (answer.status_code, answer.headers["allow"]) == (405, methods)
    assert methods in answer.text


async def test_static_files_are_confirmed_before_use(world: World) -> None:
    (name, *_) = sorted(path.name for path in (CHECKOUT / "templates" / "static").iterdir() if path.is_file())
    async with world.client() as client:
        answer = await client.get(f"/static/{name}")
    assert (answer.status_code, answer.headers.get("cache-control")) == (200, "no-cache")
    assert answer.headers["content-security-policy"] == POLICY


async def test_errors_are_problems_for_clients_and_pages_for_people(world: World) -> None:
    async with world.client() as client:
        for path in ("/api", "/api/nowhere", "/hooks/nowhere"):
            assert (await client.get(path)).headers["content-type"] == "application/problem+json"
        for path in ("/nowhere", "/apis", "/healthzz"):
            assert (await client.get(path)).headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("path", ["/api/v1/runs", "/hooks/decisions", "/sign-in"])
async def test_a_body_over_the_limit_is_refused_whatever_it_says_of_its_size(world: World, path: str) -> None:
    over = 262_144 + 1

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(over // 65_536 + 1):
            yield b"a" * 65_536

    form = {"Content-Type": "application/x-www-form-urlencoded"}
    kind = form if path == "/sign-in" else {"Content-Type": "application/json"}
    async with world.client("demo") as client:
        announced = await client.post(path, content=b"a" * over, headers=kind)
        streamed = await client.post(path, content=pieces(), headers=kind)
    wanted = 413 if path != "/hooks/decisions" else 503  # this address is closed, so its bodies are not read
    assert [announced.status_code, streamed.status_code] == [wanted, wanted]
    assert announced.headers["content-security-policy"] == POLICY


async def test_what_breaks_is_logged_and_answered_without_a_word_of_its_inside(
    world: World, settings: Settings
) -> None:
    redis = connect(settings.store_url)
    await redis.hset(TenantKeys(TENANT).used, "key", "not a time")
    await redis.aclose()
    async with world.client("root") as client:
        with capture_logs() as logs:
            answer = await client.get("/api/v1/keys")
    reported = answer.json()
    assert (answer.status_code, reported["type"]) == (500, "/problems/something-broke")
    assert reported["error_id"] in reported["detail"]
    assert [line["error_id"] for line in logs if line["event"] == "unexpected error"] == [reported["error_id"]]
    assert answer.headers["content-security-policy"] == POLICY
    assert "not a time" not in answer.text


async def test_while_the_store_is_away_the_service_lives_but_is_not_ready(tmp_path: object) -> None:
    app = create_app(Settings(redis_url=f"unix://{tmp_path}/nobody.sock"))
    async with app.router.lifespan_context(app):
        world = World(app, app.state.process.wiring, {"demo": "sayso_agent_x"})
        async with world.client("demo") as client:
            alive, ready = await client.get("/healthz"), await client.get("/readyz")
            runs = await client.get("/api/v1/runs")
    assert (alive.status_code, ready.status_code, runs.status_code) == (200, 503, 503)
    assert runs.json()["type"] == "/problems/unavailable"
    assert runs.headers["retry-after"] == "2"


async def test_a_store_that_refuses_writes_or_commands_is_not_ready(world: World, clean_store_url: str) -> None:
    async with Redis.from_url(clean_store_url) as redis, world.client("demo") as client:
        await redis.config_set("maxmemory", 1)
        try:
            full = [await client.get("/readyz"), await client.head("/readyz")]
        finally:
            await redis.config_set("maxmemory", 0)
        well = [await client.head("/readyz"), await client.head("/healthz")]
        await redis.acl_setuser("default", enabled=True, commands=["-time"])
        try:
            refused = await client.get("/readyz")
        finally:
            await redis.acl_setuser("default", enabled=True, commands=["+time"])
    assert [one.status_code for one in (*full, *well, refused)] == [503, 503, 200, 200, 503]
    assert "refuses" in refused.json()["detail"]


async def test_store_that_was_emptied_is_not_ready(world: World, clean_store_url: str) -> None:
    async with Redis.from_url(clean_store_url) as redis, world.client() as client:
        await redis.flushall()
        emptied = await client.get("/readyz")
        await check_format(clean_store_url)
        ready = await client.get("/readyz")
    assert (emptied.status_code, ready.status_code) == (503, 200)
    assert "run `python -m service.setup`" in emptied.json()["detail"]


async def test_emptied_store_refuses_known_keys_as_unavailable_until_set_up(world: World, clean_store_url: str) -> None:
    """A client then waits; it takes a 401 for the end of its key."""
    async with Redis.from_url(clean_store_url) as redis, world.client("demo") as client:
        await check_format(clean_store_url)
        unknown = {"Authorization": "Bearer unknown"}
        known = [(await client.get("/api/v1/runs", headers=headers)).status_code for headers in ({}, unknown)]
        await redis.flushall()

        async def is_refused() -> bool:
            return (await client.get("/api/v1/runs")).status_code == 503

        await until(is_refused)
        emptied = await client.get("/api/v1/runs")
        await check_format(clean_store_url)
        again = await client.get("/api/v1/runs")
    assert (known, again.status_code) == ([200, 401], 401)
    assert "run `python -m service.setup`" in emptied.json()["detail"]
    assert "retry-after" in emptied.headers


async def test_readiness_reports_a_silent_or_doubtful_clock(world: World) -> None:
    """The service serves all the same: what is in time is decided."""
    async with world.client() as client:
        reported = []
        now_ms = await world.wiring.schedule.now_ms()
        beat = ClockReading(at_ms=now_ms, uptime_ms=0, boot="one", wall_ms=now_ms)
        for note in (
            None,
            world.wiring.freezes.save_reading(beat),
            world.wiring.freezes.doubt_time(now_ms, now_ms + 600_000),
        ):
            if note is not None:
                await note
            answer = await client.get("/readyz")
            assert answer.status_code == 200
            reported.append(answer.json())
    well = {"status": "ready", "unreadable": 0, "rules": "in force", "commits": "complete", "queue": "reachable"}
    assert reported == [{**well, "clock": clock} for clock in ("silent", "right", "in doubt")]


async def test_long_polls_and_streams_end_when_the_service_closes(world: World) -> None:
    pending = await make_pending(world.wiring)
    running = await make_running(world.wiring)
    async with world.client("demo") as client:
        waits = [
            asyncio.create_task(client.get(path))
            for path in (
                f"/api/v1/suspensions/{pending.id}?wait=60s",
                f"/api/v1/runs/{running.run.id}/events/stream",
            )
        ]
        for topic in (pending.id, running.run.id):
            await waiting(world, topic)
        begin_closing(world.app)
        poll, stream = await asyncio.wait_for(asyncio.gather(*waits), 10)
    assert poll.json()["status"] == "pending"
    assert "event: run_started" in stream.text
    assert "event: end" not in stream.text


async def test_a_stream_is_sent_as_it_happens_over_a_real_connection(world: World, settings: Settings) -> None:
    record = await make_running(world.wiring)
    headers = {"Authorization": f"Bearer {world.tokens['demo']}"}
    with served(settings) as url:
        async with AsyncClient(base_url=url, headers=headers, timeout=10) as client:
            async with client.stream("GET", f"/api/v1/runs/{record.run.id}/events/stream") as stream:
                lines = stream.aiter_lines()
                assert await next_event(lines) == "run_started"
                await world.wiring.desk.cancel(record.run.id, by=person("anna"))
                assert await next_event(lines) == "run_cancelled"
                assert await next_event(lines) == "end"
            limit = settings.body_limit_bytes
            over = await client.post("/api/v1/runs", content=b"a" * (limit + 1))
            assert over.status_code == 413
            assert (await client.get("/api/v1/runs")).status_code == 200


async def next_event(lines: AsyncIterator[str]) -> str:
    async for line in lines:
        if line.startswith("event: "):
            return line.removeprefix("event: ")
    return ""


def test_the_version_is_the_packages() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION
