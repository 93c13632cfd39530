"""How far the four journeys of `docs/architecture.md` go through the code: `make hops` plays and traces them.

Each journey runs in this process over a real store: what it starts, ends and answers is traced, but not the setting up.
It prints the product files and functions that ran, and their calls, beside the bounds in the page.
"""

import asyncio
import dis
import inspect
import re
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient, Request, Response
from redis.asyncio import Redis

from launch.server import running_server
from sayso.client import AsyncClient as Agent
from sayso.core.transitions.execution import Fence
from sayso.errors import Conflict
from sayso.gating.decorator import gate
from sayso.runner.agents import Agent as Definition
from sayso.runner.models import ScriptedModel
from service.app import create_app
from service.assembly import assemble
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.connection.formats import check_format
from service.core.store.keys import TenantKeys
from service.core.wiring import Wiring
from tests.builders import make_agent, make_person
from tests.waits import until
from tests.workers import runs
from workers.clock import ticks as clock
from workers.resume import driving
from workers.resume.plans import LeasedRun
from workers.resume.resumers import RESUMERS

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = tuple(f"{ROOT / package}/" for package in ("sayso", "service", "workers"))
PAGE = ROOT / "docs" / "architecture.md"
BOUND = re.compile(r"^\| (Gate|Decide|Timeout|Crash) \| (\d+) \|$", re.MULTILINE)
"""A row of the page's table: a journey and the files that it may run through."""


COROUTINES = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
BEGUN = dis.opmap["RETURN_GENERATOR"]
"""The instruction behind which a coroutine begins."""


@dataclass
class Trace:
    """The functions of the product that ran, with their calls."""

    calls: Counter[CodeType] = field(default_factory=Counter)

    @property
    def files(self) -> set[str]:
        """The files of the functions, from the root."""
        return {str(Path(code.co_filename).relative_to(ROOT)) for code in self.calls}

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note each call in this thread, once for a coroutine; a module and a class that are built are no functions."""

        def note(frame: FrameType, event: str, _value: object) -> None:
            code = frame.f_code
            if event == "call" and code.co_flags & inspect.CO_NEWLOCALS and code.co_filename.startswith(PRODUCT):
                resumes = code.co_flags & COROUTINES and code.co_code[frame.f_lasti] != BEGUN
                self.calls[code] += not resumes

        sys.setprofile(note)
        try:
            yield
        finally:
            sys.setprofile(None)


class Place(ASGITransport):
    """The app as an agent reaches it; no question about what the agent waits for is answered."""

    def __init__(self, app: FastAPI) -> None:
        super().__init__(app)
        self.asked = asyncio.Event()

    async def handle_async_request(self, request: Request) -> Response:
        """Pass a request on; the first that only reads ends the journey and waits."""
        if request.method == "GET":
            self.asked.set()
            await asyncio.Event().wait()
        return await super().handle_async_request(request)


@dataclass
class Stage:
    """Where a journey is played: the parts of a desk, a client for an agent, one for a reviewer, and the store."""

    wiring: Wiring
    agent: Agent
    reviewer: AsyncClient
    store: Redis
    place: Place
    trace: Trace = field(default_factory=Trace)

    async def await_event(self, kind: str) -> None:
        """Return once the trail ends with this event; the code that is traced reads nothing for it."""

        async def look() -> bool:
            return f'"{kind}"'.encode() in (await self.store.lindex(TenantKeys(TENANT).trail("run_x"), -1) or b"")

        await until(look)

    async def await_due(self) -> None:
        """Return once the schedule has something that is due."""

        async def look() -> bool:
            seconds, _ = await self.store.time()
            return bool(await self.store.zcount(TenantKeys(TENANT).schedule, 0, int(seconds) * 1000))

        await until(look)

    async def await_worker(self) -> None:
        """Return once a worker has announced that it waits for runs."""
        await until(lambda: self.store.zcard(TenantKeys(TENANT).waiting))

    async def await_ask(self) -> None:
        """Return once a person is asked."""
        await until(lambda: self.store.zcard(TenantKeys(TENANT).open))


@asynccontextmanager
async def staged(store_url: str, home: Path, timeout_s: int) -> AsyncIterator[Stage]:
    """Open the stage of one journey, on an empty store."""
    policy = home / "policy.yaml"
    policy.write_text(runs.POLICY.replace("timeout_s: 60", f"timeout_s: {timeout_s}"))
    settings = Settings(home=home, redis_url=store_url, policy=policy, lease_s=1, drain_window_s=60)
    app = create_app(settings)
    async with Redis.from_url(store_url) as store:
        await store.flushall()
        await check_format(store_url)
        async with app.router.lifespan_context(app), assemble(settings) as wiring:
            bot, anna = await make_agent(wiring, "bot"), await make_person(wiring, "anna")
            url, place, headers = "http://127.0.0.1:8321", Place(app), {"Authorization": f"Bearer {anna}"}
            reviewer = AsyncClient(transport=ASGITransport(app), base_url=url, headers=headers)
            async with Agent(url, bot, transport=place) as agent, reviewer:
                yield Stage(wiring, agent, reviewer, store, place)


async def play_gate(stage: Stage) -> None:
    """A gated function is called; a person is asked."""

    async def refund(order: str, amount: float) -> str:
        """Refund an order."""
        return f"refunded {amount} for {order}"

    with stage.trace.noted():
        calling = asyncio.create_task(gate(client=stage.agent, quiet=True)(refund)("A", 5.0))
        await stage.place.asked.wait()
    calling.cancel()
    with suppress(asyncio.CancelledError):
        await calling


async def play_decide(stage: Stage) -> None:
    """A person approves; a worker resumes the run and executes the call."""
    async with runs.draining(stage.wiring):
        await runs.start(stage.wiring)
        await stage.await_event("run_paused")
        await stage.await_worker()
        suspension = (await stage.wiring.runs.read("run_x")).suspension_id
        view = (await stage.reviewer.get(f"/api/v1/suspensions/{suspension}")).json()
        decision = {"action": "approve", "digest": view["items"][0]["digest"]}
        place = f"/api/v1/suspensions/{suspension}/items/i1/decision"
        with stage.trace.noted():
            (await stage.reviewer.post(place, json=decision)).raise_for_status()
            await stage.await_event("run_completed")


async def play_timeout(stage: Stage) -> None:
    """Nobody decides; the clock applies the fallback."""
    async with runs.draining(stage.wiring):
        await runs.start(stage.wiring)
        await stage.await_event("run_paused")
    await stage.await_due()
    with stage.trace.noted():
        await clock.process_due(stage.wiring)
        await stage.await_event("decided")


async def play_crash(stage: Stage) -> None:
    """A worker is lost during a call; another one takes the run, and a person is asked."""
    started, may_end, payer = runs.make_slow_payer()
    driving.agents["payer"] = payer
    leased = LeasedRun(await runs.lease_shortly(stage.wiring, "payer"), Fence("w1", 1, 1))
    lost = asyncio.create_task(RESUMERS["runner"](stage.wiring, driving.agents, leased))
    await started.wait()
    await stage.await_due()
    with stage.trace.noted():
        await clock.process_due(stage.wiring)
        async with runs.draining(stage.wiring, "w2"):
            await stage.await_ask()
    may_end.set()
    with suppress(Conflict):
        await lost


JOURNEYS: dict[str, Callable[[Stage], Awaitable[None]]] = {
    "Gate": play_gate,
    "Decide": play_decide,
    "Timeout": play_timeout,
    "Crash": play_crash,
}


async def play(journey: str, store_url: str) -> Trace:
    """Return what runs each time a journey is played: the first fills caches, and background work varies."""
    tools = (runs.look_up, runs.refund, runs.drop)
    common: Counter[CodeType] | None = None
    for is_first in (True, False, False, False):
        driving.agents["a"] = Definition(name="a", instructions="x", tools=tools, model=ScriptedModel(runs.TURNS))
        with tempfile.TemporaryDirectory() as home:
            async with staged(store_url, Path(home), 1 if journey == "Timeout" else 60) as stage:
                await JOURNEYS[journey](stage)
        if not is_first:
            common = stage.trace.calls if common is None else common & stage.trace.calls
    return Trace(common or Counter())


def main() -> int:
    """Print what each journey runs through; return 1 if one runs through more files than the page allows."""
    bounds = {name: int(files) for name, files in BOUND.findall(PAGE.read_text())}
    with tempfile.TemporaryDirectory() as folder, running_server(Path(folder)) as store_url:
        traces = {name: asyncio.run(play(name, store_url)) for name in JOURNEYS}
    print(f"{'journey':<10}{'files':>7}{'bound':>7}{'functions':>11}{'calls':>8}")
    for name, trace in traces.items():
        print(f"{name:<10}{len(trace.files):>7}{bounds[name]:>7}{len(trace.calls):>11}{trace.calls.total():>8}")
    return int(any(len(trace.files) > bounds[name] for name, trace in traces.items()))


if __name__ == "__main__":
    sys.exit(main())
