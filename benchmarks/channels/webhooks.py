"""Measure delivery to 100 endpoints of which 30 misbehave: `make bench ARGS=--webhooks`.

Each round starts a store and delivers the same events twice: once while all endpoints are well behaved, and once while
30 hang, drip, redirect, refuse, limit or reset. The figure is the time from an event to its arrival at the 70 others.
Then one endpoint that takes 100 ms for each event gets as many as it can. The last figure is what asking costs:
suspensions a second before any endpoint exists, and with one.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

import trustme
import uvloop

from benchmarks.channels.installations import Row, report
from benchmarks.channels.receivers import Behaviour, Program, serving
from benchmarks.measures import quantile
from launch.server import running_server
from sayso.core.canonical_json import JsonObject
from sayso.core.clock import monotonic_ms, new_id
from sayso.core.records.events import WebhookEvent
from sayso.core.records.items import ItemDraft, ItemTool
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import RunRef
from sayso.core.signing import new_signing_secret
from sayso.core.transitions.deciding import suspend
from service.assembly import assemble
from service.core.desk.changes import draft_suspension
from service.core.logs import configure_logs
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.wiring import Wiring
from service.features.webhooks.store import Endpoint, Endpoints, TimedSecret
from workers import repeat
from workers.delivery import TICK_S, keep_delivering
from workers.outbox import FanOut

ENDPOINTS = 100
MISBEHAVING = 30
_BAD: tuple[Behaviour, ...] = ("30 s", "never", "1 byte/s", "301", "410", "429", "reset")
EVENTS = 40
EVERY_S = 2.0
ASKS = 4_000
ANSWERS_AFTER_S = 0.1
MOST_SLOWER = 1.2
_FEWEST = 10
_WARM_UP = 4
_LATEST_S = 60.0

Figures = dict[str, float]


class Pace(NamedTuple):
    """How many events, and the seconds between two: far fewer than the machine can send."""

    events: int
    every_s: float


def make_certificate(home: Path) -> str:
    """Make the receivers' certificate, and trust it in this process; it is read once."""
    authority, certificate = trustme.CA(), home / "own.pem"
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(certificate))
    authority.cert_pem.write_to_path(str(home / "authority.pem"))
    os.environ["SSL_CERT_FILE"] = str(home / "authority.pem")
    return str(certificate)


async def measure_endpoints(certificate: str, behaviours: Sequence[Behaviour], pace: Pace, home: Path) -> Figures:
    """Return the delays, ms, at the well-behaved endpoints, and how many of their events are missing."""
    with running_server(home) as url:
        settings = Settings(home=home, redis_url=url, aap_allow_loopback=True)
        async with serving(certificate, behaviours) as programs, assemble(settings) as wiring:
            await add_endpoints(wiring, programs)
            return await _deliver(wiring, programs, pace)


async def _deliver(wiring: Wiring, programs: Sequence[Program], pace: Pace) -> Figures:
    stopping = asyncio.Event()
    working = [
        asyncio.create_task(repeat(FanOut(wiring).announce_due, TICK_S, stopping, "announcing_failed")),
        asyncio.create_task(keep_delivering(wiring, stopping)),
    ]
    well = programs[MISBEHAVING:]
    began: dict[str, float] = {}
    for _ in range(_WARM_UP + pace.events):
        suspension_id = await suspend_one(wiring)
        began[suspension_id] = await wiring.schedule.now_ms()
        await asyncio.sleep(pace.every_s)
    await _await_arrivals(well, len(began))
    stopping.set()
    await asyncio.gather(*working)
    counted = set(list(began)[_WARM_UP:])
    delays = []
    for one in well:
        for came in one.events:
            named = came.body["data"]["item"]["suspension_id"]
            if named in counted:
                delays.append(came.at_ms - began[named])
    missing = sum(len(began) - len({came.headers["webhook-id"] for came in one.events}) for one in well)
    return {"p50_ms": quantile(delays, 0.5), "p99_ms": quantile(delays, 0.99), "missing": float(missing)}


async def measure_rate(certificate: str, count: int, home: Path) -> Figures:
    """Return the events a second that one endpoint gets, which answers each after 100 ms.

    All events wait when the delivery begins.
    """
    with running_server(home) as url:
        settings = Settings(home=home, redis_url=url, aap_allow_loopback=True)
        async with serving(certificate, ["well"]) as (program,), assemble(settings) as wiring:
            program.answers_after_s = ANSWERS_AFTER_S
            await add_endpoints(wiring, [program])
            for _ in range(count):
                await suspend_one(wiring)
            stopping, began_ms = asyncio.Event(), monotonic_ms()
            working = [
                asyncio.create_task(repeat(FanOut(wiring).announce_due, TICK_S, stopping, "announcing_failed")),
                asyncio.create_task(keep_delivering(wiring, stopping)),
            ]
            await _await_arrivals([program], count)
            taken_s = (monotonic_ms() - began_ms) / 1000
            stopping.set()
            await asyncio.gather(*working)
            return {"events_per_s": len(program.events) / taken_s, "missing": float(count - len(program.events))}


async def _await_arrivals(programs: Sequence[Program], count: int) -> None:
    """Wait until every program has all events, or `_LATEST_S`."""
    for _ in range(int(_LATEST_S * 10)):
        if all(len(one.events) >= count for one in programs):
            return
        await asyncio.sleep(0.1)


async def measure_asking(home: Path, count: int) -> Figures:
    """Return suspensions a second, with and without an endpoint."""
    with running_server(home) as url:
        async with assemble(Settings(home=home, redis_url=url)) as wiring:
            await _ask(wiring, count // 4)
            without = await _ask(wiring, count)
            await add_endpoints(wiring, [Program("well", 1)])
            return {"asks_per_s_without_endpoint": without, "asks_per_s_with_endpoint": await _ask(wiring, count)}


async def _ask(wiring: Wiring, count: int) -> float:
    began_ms = monotonic_ms()
    for _ in range(count // 20):
        await asyncio.gather(*(suspend_one(wiring) for _ in range(20)))
    return count / (monotonic_ms() - began_ms) * 1000


async def add_endpoints(wiring: Wiring, programs: Sequence[Program]) -> None:
    """Save a verified endpoint for each program."""
    for program in programs:
        endpoint = Endpoint(
            id=new_id("whe"),
            url=program.url,
            events=(WebhookEvent.ITEM_CREATED,),
            created_by="bench",
            created_at_ms=1,
            state="active",
            secrets=(TimedSecret(secret=new_signing_secret()),),
        )
        await wiring.part(Endpoints).add(endpoint)


async def suspend_one(wiring: Wiring) -> str:
    """Ask about one call and return its suspension."""
    args: JsonObject = {"order": "A-1", "amount": 250.5}
    item = ItemDraft(call_id="call_1", tool=ItemTool(name="refund", args=args, definition="0" * 64))
    run = RunRef(id=(run_id := new_id("run")), agent="bench", owner="bench", thread_id=run_id)
    draft = draft_suspension(TENANT, run, state=seal_state(b"{}"))
    await wiring.desk.suspensions.create(draft.id, lambda at_ms: suspend(draft, (item,), at_ms))
    return draft.id


def _measure(certificate: str, count: int, pace: Pace, asks: int) -> dict[str, list[Figures]]:
    well: list[Behaviour] = ["well"] * ENDPOINTS
    mixed = [*islice(cycle(_BAD), MISBEHAVING), *well[MISBEHAVING:]]
    rounds: dict[str, list[Figures]] = {"all well": [], "30 misbehave": [], "one slow": [], "asking": []}
    for _ in range(count):
        for name, behaviours in (("all well", well), ("30 misbehave", mixed)):
            with tempfile.TemporaryDirectory() as home:
                rounds[name].append(uvloop.run(measure_endpoints(certificate, behaviours, pace, Path(home))))
        with tempfile.TemporaryDirectory() as home:
            rounds["one slow"].append(uvloop.run(measure_rate(certificate, asks // 2, Path(home))))
        with tempfile.TemporaryDirectory() as home:
            rounds["asking"].append(uvloop.run(measure_asking(Path(home), asks)))
        print(json.dumps({name: figures[-1] for name, figures in rounds.items()}), flush=True)
    return rounds


def main(rounds: int, scale: float) -> int:
    """Measure, print, and return 1 if the others' events come later or are missing."""
    configure_logs("benchmark", "error")
    pace = Pace(max(_FEWEST, round(EVENTS * scale)), EVERY_S)
    with tempfile.TemporaryDirectory() as home:
        measured = _measure(make_certificate(Path(home)), rounds, pace, max(100, round(ASKS * scale)))
    well, mixed, slow, asking = (partial(_find_median, measured[name]) for name in measured)
    missing = sum(figures.get("missing", 0) for all_figures in measured.values() for figures in all_figures)
    return report(
        [
            Row("100 well: arrival p50, ms", well("p50_ms")),
            Row("100 well: arrival p99, ms", well("p99_ms")),
            Row("30 misbehave: arrival at the others p50, ms", mixed("p50_ms")),
            Row("30 misbehave: arrival at the others p99, ms", mixed("p99_ms")),
            Row("p99 with 30 misbehaving, relative to 100 well", mixed("p99_ms") / well("p99_ms"), MOST_SLOWER),
            Row("events missing at the others", missing, 0),
            Row("seconds for 100 events to one endpoint that takes 100 ms", 100 / slow("events_per_s"), 1),
            Row("asks a second without an endpoint", asking("asks_per_s_without_endpoint")),
            Row("asks a second with one", asking("asks_per_s_with_endpoint")),
        ]
    )


def _find_median(rounds: Sequence[Figures], name: str) -> float:
    return median(figures[name] for figures in rounds)
