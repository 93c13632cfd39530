"""Drive ready runs: a standing job takes them off the list, many at a time, for some seconds, then puts itself back.

Taking an id off the list gives no right to anything. The lease does, in one commit, and every later step of a worker
names that lease; whatever is lost on the way is brought back by the clock.
"""

import asyncio
import os
import signal
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import structlog
import uvloop

from sayso.agents import Agent, load_agents
from sayso.clock import monotonic_ms, new_id
from sayso.errors import Conflict, Frozen, NotFound, SaysoError, Unavailable
from sayso.resumptions import Fence
from service.credentials import TENANT
from service.jobs import DrainQueue
from service.settings import Settings, load
from service.store.suspensions import Saved
from service.wiring import Wiring, wire
from workers.notes import keeping_notes
from workers.outages import through_outages
from workers.resumers import RESUMERS, Known, plan_first

_TAKE_S = 0.5
_HARD_WINDOWS = 10
_STOP_WITHIN_S = 4.0
_THREADS = 64

log = structlog.get_logger()
agents: dict[str, Agent] = {}
"""The registered agents, imported by the worker before it forks, so that no job has to."""


def import_agents(settings: Settings) -> Mapping[str, Agent]:
    """Import the agents that the settings name, once in a process."""
    if not agents:
        agents.update(load_agents(settings.agents))
    return agents


def drain() -> None:
    """Drive ready runs until the window is over and nothing is under way; the job that RQ runs."""
    settings = load()
    import_agents(settings)
    holder = f"{os.uname().nodename}:{os.getpid()}.{new_id('w')[-4:]}"
    with keeping_notes(settings.home, holder):
        uvloop.run(_drain(settings, holder))
    jobs = DrainQueue(settings.store_url, settings.drain_window_s)
    jobs.put_back()
    jobs.close()


async def _drain(settings: Settings, holder: str) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(_THREADS, thread_name_prefix="tool"))
    stopping = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    async with wire(settings) as wiring:
        await Drain(wiring, holder).run(stopping)


class Drain:
    """One window of driving runs in one process."""

    def __init__(self, wiring: Wiring, holder: str) -> None:
        self._wiring = wiring
        self._holder = holder
        self._slots = asyncio.Semaphore(wiring.settings.drain_concurrency)
        self._driving: set[asyncio.Task[None]] = set()
        self._parent = os.getppid()

    async def run(self, stopping: asyncio.Event) -> None:
        """Take and drive until the window ends, the worker is told to stop, or its parent is gone."""
        window_ms = self._wiring.settings.drain_window_s * 1000
        began_ms = monotonic_ms()
        while not self._over(monotonic_ms() - began_ms, window_ms) and not stopping.is_set():
            await self._slots.acquire()
            suspension_id = await self._take()
            if suspension_id is None:
                self._slots.release()
                continue
            task = asyncio.create_task(self._drive(suspension_id))
            self._driving.add(task)
            task.add_done_callback(self._done)
        if self._driving:
            _, late = await asyncio.wait(self._driving, timeout=_STOP_WITHIN_S if stopping.is_set() else None)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _over(self, spent_ms: float, window_ms: int) -> bool:
        if os.getppid() != self._parent:
            return True
        return spent_ms >= (window_ms * _HARD_WINDOWS if self._driving else window_ms)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._driving.discard(task)
        self._slots.release()

    async def _take(self) -> str | None:
        try:
            return await self._wiring.agenda.take(TENANT, _TAKE_S)
        except Unavailable:
            await asyncio.sleep(_TAKE_S)
            return None

    async def _drive(self, suspension_id: str) -> None:
        lease_ms, step_id = self._wiring.settings.lease_s * 1000, new_id("step")
        try:
            standing = await self._wiring.standings.find(TENANT)
            plan = partial(plan_first, Known(agents, self._wiring.rulebook.refresh(), standing))
            leased = await through_outages(
                lambda: self._wiring.desk.lease(TENANT, suspension_id, self._holder, lease_ms, plan, step_id)
            )
        except (Conflict, NotFound, Unavailable) as refusal:
            log.info("run_not_taken", suspension=suspension_id, why=refusal.message)
            return
        if leased.record.lease is None or leased.record.lease.step != step_id:
            return  # this very worker drives it already
        fence = Fence(self._holder, leased.record.lease.attempt, lease_ms)
        renewing = asyncio.create_task(self._renew(suspension_id, fence))
        try:
            await self._resume(leased, fence)
        except asyncio.CancelledError:
            await self._release(suspension_id, fence, "its worker was told to stop")
            raise
        finally:
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing

    async def _resume(self, leased: Saved, fence: Fence) -> None:
        record = leased.record
        try:
            await RESUMERS[record.resume.resumer](self._wiring, agents, leased, fence)
        except Frozen as frozen:
            log.info("run_frozen", suspension=record.id, run=record.run.id, why=frozen.message)
            await self._release(record.id, fence, frozen.message, _tools_of(frozen))
        except (Conflict, Unavailable) as refusal:
            log.warning("run_lost", suspension=record.id, run=record.run.id, why=refusal.message)
        except Exception as error:
            log.exception("run_not_resumed", suspension=record.id, run=record.run.id)
            await self._postpone(record.id, fence, _sentence(error))

    async def _release(self, suspension_id: str, fence: Fence, reason: str, waits_for: tuple[str, ...] = ()) -> None:
        """Give the run back; with a call under way the lease has to run out instead."""
        with suppress(Conflict, Unavailable):
            await self._wiring.desk.release(TENANT, suspension_id, fence, reason, waits_for)

    async def _postpone(self, suspension_id: str, fence: Fence, error: str) -> None:
        try:
            await self._wiring.desk.postpone(TENANT, suspension_id, fence, error)
        except (Conflict, Unavailable) as refusal:
            log.warning("run_not_postponed", suspension=suspension_id, why=refusal.message)

    async def _renew(self, suspension_id: str, fence: Fence) -> None:
        while True:
            await asyncio.sleep(fence.lease_ms / 3000)
            try:
                await self._wiring.desk.renew(TENANT, suspension_id, fence)
            except Unavailable:
                continue
            except Conflict:
                return


def _tools_of(frozen: Frozen) -> tuple[str, ...]:
    tools = frozen.facts.get("tools")
    return tuple(map(str, tools)) if isinstance(tools, list) else ()


def _sentence(error: Exception) -> str:
    return error.message if isinstance(error, SaysoError) else f"{type(error).__name__}: {error}"
