"""Prometheus reads the metrics with a token, and they follow a run."""

import asyncio
import re
from collections.abc import Mapping
from math import inf
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from pydantic import SecretStr
from redis.asyncio import Redis

from docs.references import write_metrics
from sayso import __version__
from sayso.core.clock import DAY_MS, HOUR_MS, now_ms
from sayso.core.records.freezes import ClockReading
from sayso.errors import Unavailable
from sayso.runner.agents import Agent
from sayso.runner.models import ScriptedModel
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.keys import TenantKeys
from service.core.store.load import count_delay
from service.features.insights.store import Counters
from service.features.insights.totals import VERDICTS
from service.features.operate.metrics import Readings
from tests.builders import approve, ask, make_pending, make_running
from tests.service.worlds import World
from tests.waits import until
from tests.workers.runs import POLICY, TURNS, draining, drop, look_up, ran, refund
from workers.clock.ticks import process_due
from workers.resume import driving

TOKEN = "m" * 40
Samples = Mapping[tuple[str, ...], float]


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=policy, metrics_token=SecretStr(TOKEN))


async def scrape(world: World) -> Samples:
    """The samples of the page as of now, each by its name and the values of its labels."""
    world.app.state.readings = Readings(world.wiring, world.app.state.channels.by_name)
    async with world.client() as client:
        answer = await client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=")
    families = parse_text(answer.text)
    return {(one.name, *sorted(one.labels.values())): one.value for family in families for one in family.samples}


def grown(before: Samples, after: Samples, *name: str) -> float:
    return after[name] - before[name]


@pytest.mark.parametrize(
    ("header", "status"),
    [(None, 401), ("Bearer " + "x" * 40, 401), (f"Bearer {TOKEN}é", 401), (TOKEN, 401), (f"Bearer {TOKEN}", 200)],
)
async def test_metrics_need_their_token(world: World, header: str | None, status: int) -> None:
    async with world.client() as client:
        answer = await client.get("/metrics", headers={b"Authorization": header.encode()} if header else {})
    assert answer.status_code == status
    assert ("sayso_" in answer.text) == (status == 200)
    assert answer.headers["content-type"].startswith("text/plain" if status == 200 else "application/problem+json")


async def test_sessions_and_keys_do_not_open_the_metrics(world: World) -> None:
    for who in ("demo", "anna", "root"):
        async with world.client(who) as client:
            assert (await client.get("/metrics")).status_code == 401


async def test_metrics_are_closed_without_a_token(world: World) -> None:
    open_settings = world.app.state.process.settings
    world.app.state.process.settings = open_settings.model_copy(update={"metrics_token": None})
    async with world.client("root") as client:
        answer = await client.get("/metrics")
        assert answer.status_code == 404
        assert "Set SAYSO_METRICS_TOKEN to open them" in answer.json()["detail"]
        world.app.state.process.settings = open_settings
        assert (await client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})).status_code == 200


async def test_metrics_follow_a_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ran.clear()
    agent = Agent(name="a", instructions="x", tools=(look_up, refund, drop), model=ScriptedModel(TURNS))
    monkeypatch.setitem(driving.agents, "a", agent)
    await world.wiring.runs.save_agent("a", agent.manifest().model_dump_json())
    before = await scrape(world)

    async with world.client("demo") as client:
        run = (await client.post("/api/v1/runs", json={"agent": "a", "input": "refund order A"})).json()
    queued = await scrape(world)
    assert (queued["sayso_backlog_runs",], queued["sayso_open_items", "under_1m"]) == (1, 1)
    assert grown(before, queued, "sayso_operation_duration_seconds_count", "done", "start") == 1

    async with draining(world.wiring):
        (item,) = await pending_items(world)
        suspended = await scrape(world)
        assert (suspended["sayso_backlog_runs",], suspended["sayso_runs", "suspended"]) == (0, 1)
        await decide(world, item)

        async def ended() -> bool:
            return (await world.wiring.runs.read(run["id"])).status.ended

        await until(ended)
    after = await scrape(world)
    assert (after["sayso_runs", "completed"], after["sayso_runs", "suspended"]) == (1, 0)
    assert after["sayso_open_items", "under_1m"] == 0
    assert grown(before, after, "sayso_operation_duration_seconds_count", "decide", "done") == 1
    assert grown(before, after, "sayso_start_delay_seconds_count") == 2, "it was taken before and after the decision"
    assert after["sayso_start_delay_seconds_bucket", "+Inf"] == after["sayso_start_delay_seconds_count",]
    assert grown(before, after, "sayso_store_reply_seconds_count") > 0
    kinds = [(kind, source) for kind in ("call", "batch") for source in ("execute", "replay")]
    counts = [grown(before, after, f"sayso_tool_{kind}_latency_seconds_count", source) for kind, source in kinds]
    assert counts == [2, 0, 1, 0], "the denied call has no latency"


async def pending_items(world: World) -> list[tuple[str, str, str]]:
    async def look() -> object:
        return await world.wiring.runs.inbox()

    await until(look)
    records = await world.wiring.desk.suspensions.read_many(await world.wiring.runs.inbox())
    return [(record.id, item.item_id, item.digest) for record in records for item in record.items if item.open]


async def decide(world: World, item: tuple[str, str, str]) -> None:
    path = f"/api/v1/suspensions/{item[0]}/items/{item[1]}/decision"
    async with world.client("anna") as client:
        answer = await client.post(path, json={"action": "approve", "digest": item[2]})
    assert answer.status_code == 200, answer.text


async def test_open_items_are_counted_by_age(world: World) -> None:
    for late_ms in (0, HOUR_MS // 2, 5 * HOUR_MS, 5 * HOUR_MS):
        await make_pending(world.wiring, ask(), late_ms=late_ms)
    async with Redis.from_url(world.wiring.settings.store_url) as redis:
        await redis.zadd(TenantKeys(TENANT).open, {"sus_old i1": now_ms() - 3 * DAY_MS})
        await redis.zadd(TenantKeys(TENANT).schedule, {"sus_old": now_ms() - 90_000})
    found = await scrape(world)
    ages = {age: found["sayso_open_items", age] for age in ("under_1m", "under_1h", "under_1d", "older")}
    assert ages == {"under_1m": 1, "under_1h": 1, "under_1d": 2, "older": 1}
    assert found["sayso_overdue_suspensions",] >= 1
    assert found["sayso_overdue_oldest_seconds",] >= 90


async def test_refused_requests_are_counted_by_their_limit(world: World) -> None:
    world.wiring.intake.limits = world.wiring.settings.model_copy(update={"asks_per_minute_per_key": 1})
    before = await scrape(world)
    await make_running(world.wiring)
    async with world.client("demo") as client:
        body = {"mode": "poll", "calls": [{"tool": "refund", "definition": {}}]}
        assert (await client.post("/api/v1/suspensions", json=body)).status_code == 429
    after = await scrape(world)
    assert grown(before, after, "sayso_refused_requests_total", "pace") == 1
    assert grown(before, after, "sayso_operation_duration_seconds_count", "refused", "suspend") == 1


async def test_names_from_requests_never_become_labels(world: World) -> None:
    names = set(await scrape(world))
    for name in ('evil"} 1\n', "x" * 1_000):
        await approve(world.wiring, await make_pending(world.wiring, owner=name))
    assert set(await scrape(world)) == names


async def test_every_metric_is_in_the_reference(world: World) -> None:
    listed = set(re.findall(r"^\| `(sayso_[a-z_]+)", write_metrics(), re.MULTILINE))
    async with world.client() as client:
        text = (await client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})).text
    assert listed == set(re.findall("^# TYPE ([a-z_]+) ", text, re.MULTILINE))


async def test_many_scrapes_read_the_store_once(world: World) -> None:
    readings = Readings(world.wiring, ())
    found = await asyncio.gather(*(readings.find() for _ in range(20)))
    assert all(one is found[0] for one in found)


async def test_metrics_without_the_store_say_that_it_is_down(world: World) -> None:
    async with Redis.from_url(world.wiring.settings.store_url) as redis:
        await redis.set(TenantKeys(TENANT).ready, "of the wrong type")
    found = await scrape(world)
    assert found["sayso_store_up",] == 0
    assert ("sayso_backlog_runs",) not in found
    assert ("sayso_refused_requests_total", "pace") in found


async def test_openmetrics_is_sent_to_those_who_ask_for_it(world: World) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/openmetrics-text; version=1.0.0"}
    async with world.client() as client:
        answer = await client.get("/metrics", headers=headers)
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert "sayso_start_delay_seconds" in {family.name for family in parse_openmetrics(answer.text)}  # type: ignore[no-untyped-call]


async def test_start_delays_are_sums_of_all_workers(world: World) -> None:
    for delay_ms in (-3, 5, 6, 70_000):
        await world.wiring.part(Counters).starts.add(count_delay(delay_ms))
    found = await world.wiring.part(Counters).starts.read()
    assert (found.within[:2], found.within[-1], found.total, found.sum_ms) == ((2, 3), 3, 4, 70_011)


async def test_rules_held_show_in_metrics_readiness_and_doctor(world: World) -> None:
    policy = world.wiring.settings.policy

    async def read() -> tuple[float, str, str]:
        async with world.client("root") as root:
            ready = (await root.get("/readyz")).json()["rules"]
            found = (await root.get("/api/v1/diagnostics")).json()["findings"]
        fault = " ".join(one["message"] for one in found if one["part"] == "rules" and not one["ok"])
        return (await scrape(world))[("sayso_rules_held",)], ready, fault

    assert (await read())[:2] == (0, "in force")
    policy.write_text(POLICY + "\nrulez: []\n")
    held, ready, fault = await read()
    assert (held, ready) == (1, "held")
    assert "policy.yaml" in fault
    assert "rulez" in fault
    policy.write_text(POLICY)
    assert await read() == (0, "in force", "")


async def test_verdicts_outcomes_and_times_to_decide_are_counted(world: World) -> None:
    before = await scrape(world)
    async with world.client("demo") as client:
        for tool in ("look_up", "refund", "drop"):
            body = {"mode": "poll", "calls": [{"tool": tool, "args": {}, "definition": {}}]}
            assert (await client.post("/api/v1/suspensions", json=body)).status_code == 201
    for item in await pending_items(world):
        await decide(world, item)
    after = await scrape(world)
    verdicts = {name: grown(before, after, "sayso_verdicts_total", name) for name in VERDICTS}
    assert verdicts == {"allow": 1, "ask": 1, "deny": 1}
    assert grown(before, after, "sayso_outcomes_total", "approved") == 1
    assert grown(before, after, "sayso_decision_seconds_count") == 1
    assert grown(before, after, "sayso_decision_seconds_bucket", "60") == 1


async def test_items_that_nobody_decided_count_as_fallbacks(world: World) -> None:
    before = await scrape(world)
    pending = await make_pending(world.wiring, ask(), late_ms=30 * DAY_MS)
    await process_due(world.wiring, pending.created_at_ms + 60 * DAY_MS)
    assert grown(before, await scrape(world), "sayso_outcomes_total", "fallback") == 1


async def test_refusals_of_the_store_are_counted_by_reason(world: World) -> None:
    before = await scrape(world)
    async with Redis.from_url(world.wiring.settings.store_url) as redis:
        await redis.config_set("maxmemory", 1)
        try:
            with pytest.raises(Unavailable):
                await world.wiring.schedule.writing_ms()
            with pytest.raises(Unavailable):
                await world.wiring.store.redis.set("x", "y")
        finally:
            await redis.config_set("maxmemory", 0)
    assert grown(before, await scrape(world), "sayso_refused_writes_total", "oom") == 2


async def test_clock_silence_limits_and_memory_are_those_of_the_store(world: World) -> None:
    assert (await scrape(world))["sayso_clock_silence_seconds",] == inf, "no clock ran yet"
    at_ms = await world.wiring.schedule.now_ms() - 90_000
    await world.wiring.freezes.save_reading(ClockReading(at_ms=at_ms, uptime_ms=0, boot="b", wall_ms=at_ms))
    world.wiring.settings = world.wiring.settings.model_copy(update={"pending_limit": 4})
    await make_pending(world.wiring, ask())
    async with Redis.from_url(world.wiring.settings.store_url) as redis:
        await redis.config_set("maxmemory", 10**9)
        metrics = await scrape(world)
        await redis.config_set("maxmemory", 0)
    assert 90 <= metrics["sayso_clock_silence_seconds",] < 150
    assert metrics["sayso_limit_used_ratio", "open_items"] == 0.25
    assert 0 < metrics["sayso_store_memory_bytes",] < metrics["sayso_store_memory_limit_bytes",] == 10**9
    assert metrics["sayso_build_info", __version__] == 1
