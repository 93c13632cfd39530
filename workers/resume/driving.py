"""The drain job: it drives ready runs under leases, many at a time, for some seconds, then queues itself again."""

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

import structlog
import uvloop

from sayso import errors
from sayso.core.clock import monotonic_ms, new_id
from sayso.core.policy.counters.charging import NO_READINGS
from sayso.core.transitions.execution import Fence, WaitingWorker
from sayso.errors import (
    Conflict,
    FrameworkFault,
    Frozen,
    NotFound,
    OverLimit,
    SaysoError,
    Unavailable,
    Unreadable,
    Withdrawn,
)
from sayso.runner.agents import Agent, load_agents
from sayso.runner.revalidation import list_judged, list_wanted
from service.assembly import assemble
from service.core.jobs import DrainQueue, current_job_id
from service.core.operations.runs import withdraw_run
from service.core.settings import Settings
from service.core.store.load import ANNOUNCED_MS
from service.core.store.suspensions.saving import Saved
from service.core.store.suspensions.schedule import Ready, read_ready
from service.core.wiring import Wiring, settle_memory
from service.features.insights.store import Counters
from workers import held_settings, wait
from workers.resume.journals import RunStates, StartDelays
from workers.resume.notes import keeping_notes
from workers.resume.outages import ContextThreads, next_step, renewed, share_turns, through_outages
from workers.resume.plans import FirstPlan, LeasedRun, PlanInputs, confirm_handed, list_unclaimed
from workers.resume.previews import make_previews
from workers.resume.resumers import RESUMERS

_TAKE_S = 0.5
_TAKE_AT_ONCE = 8  # limit of runs taken at once; the rest is for the other workers
_LOOK_AGAIN_S = 0.1
"""How long a worker leaves the ready list alone in a rush of deadlines, until it looks whether that is over."""

_ANNOUNCE_S = ANNOUNCED_MS / 4000
_HARD_WINDOWS = 10
_STOP_WITHIN_S = 4.0
_THREADS = 64

_LOST = (errors.LeaseHeld, errors.StaleAttempt, Unreadable, Unavailable)
_FINAL = (errors.IllegalTransition, errors.StaleDigest)
"""Errors that every further attempt would meet: the run fails at once."""

log = structlog.get_logger()
agents: dict[str, Agent] = {}  # the registered agents. The worker imports them before it forks, so that no job has to.


def import_agents(settings: Settings) -> Mapping[str, Agent]:
    """Import the agents that the settings name, once per process."""
    if not agents:
        agents.update(load_agents(settings.agents))
    return agents


def drain() -> None:
    """Drive ready runs until the window ends and no run is under way; the job that RQ runs."""
    settings = held_settings()
    import_agents(settings)
    holder = f"{os.uname().nodename}:{os.getpid()}.{new_id('w')[-4:]}"
    with keeping_notes(settings.home, holder):
        uvloop.run(_drain(settings, holder, current_job_id()))
    jobs = DrainQueue(settings.jobs_url, settings.drain_window_s, settings.tenant)
    jobs.put_back()
    jobs.close()


async def _drain(settings: Settings, holder: str, job_id: str | None) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ContextThreads(_THREADS, thread_name_prefix="tool"))
    stopping = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    settle_memory()
    share_turns()
    async with assemble(settings) as wiring, wiring.rules.kept("worker"):
        with suppress(Unavailable):
            await asyncio.gather(wiring.freezes.known(), wiring.revocation_cache.find())  # refreshed from now on
        await Drain(wiring, holder, job_id).run(stopping)


class Drain:
    """One window of the drain job in one process."""

    def __init__(self, wiring: Wiring, holder: str, job_id: str | None = None) -> None:
        self._wiring, self._holder, self._job_id = wiring, holder, job_id
        self._lease_ms = wiring.settings.lease_s * 1000
        self._name = WaitingWorker(holder, self._lease_ms, job_id or "").name
        self._driving: set[asyncio.Task[None]] = set()
        self._parent = os.getppid()
        self._delays = StartDelays(wiring.part(Counters).starts)
        self._states = RunStates(wiring.runs)

    async def run(self, stopping: asyncio.Event) -> None:
        """Take and drive runs until the window ends, the worker is stopped, or its parent is gone."""
        async with self._delays.kept():
            self._announcing = asyncio.create_task(self._announce())
            try:
                await self._run(stopping)
            finally:
                self._announcing.cancel()

    async def _run(self, stopping: asyncio.Event) -> None:
        window_ms, began_ms = self._wiring.settings.drain_window_s * 1000, monotonic_ms()
        while not stopping.is_set() and os.getppid() == self._parent:
            if monotonic_ms() - began_ms >= (window_ms * _HARD_WINDOWS if self._driving else window_ms):
                break
            if self._wiring.store.counts.move is not None:
                await self._stop_waiting()
                await wait(stopping, _TAKE_S)
                continue
            free = self._wiring.settings.drain_concurrency - len(self._driving)
            if free <= 0:
                await asyncio.wait(self._driving, return_when=asyncio.FIRST_COMPLETED)
                continue
            taken: list[Ready] = []
            try:
                taken = await self._wiring.schedule.take(_TAKE_S, min(free, _TAKE_AT_ONCE), self._name)
            except Unavailable:
                await asyncio.sleep(_TAKE_S)
            for ready in taken:
                self._begin(ready)
            if len(taken) == _TAKE_AT_ONCE and not taken[0].handed:
                with suppress(Unavailable):  # the clock has more deadlines than it can apply at once
                    while await self._wiring.schedule.is_rush() and not stopping.is_set():
                        await wait(stopping, _LOOK_AGAIN_S)
            for _ in range(2):  # the runs just leased send their first commit before anything else is sent
                await asyncio.sleep(0)
        await self._stop_waiting()
        if self._driving:
            _, late = await asyncio.wait(self._driving, timeout=_STOP_WITHIN_S if stopping.is_set() else None)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _announce(self) -> None:
        """Let decisions hand runs to this worker while it has places."""
        while True:
            if self._wiring.settings.drain_concurrency - len(self._driving) >= _TAKE_AT_ONCE:
                with suppress(Unavailable):
                    await self._wiring.desk.suspensions.waiting.announce(self._name)
            await asyncio.sleep(_ANNOUNCE_S)

    async def _stop_waiting(self) -> None:
        """Let nothing more be handed to this worker, and begin the rest; without the store its leases run out."""
        waiting = self._wiring.desk.suspensions.waiting
        self._announcing.cancel()
        with suppress(Unavailable):
            await waiting.announce(self._name, 0)
            for entry in await waiting.take_rest(self._name):
                self._begin(read_ready(entry, handed=True))

    def _begin(self, ready: Ready) -> None:
        task = asyncio.create_task(self._drive(ready))
        self._driving.add(task)
        task.add_done_callback(self._driving.discard)

    async def _drive(self, ready: Ready) -> None:
        if ready.wants_preview:
            return await make_previews(self._wiring, agents, ready.id)
        try:
            take = partial(self._accept, ready) if ready.handed else partial(self._lease, ready, new_id("step"))
            leased_run = await through_outages(take)
        except (Conflict, NotFound, Unreadable, Unavailable) as refusal:
            log.info("run_not_taken", suspension=ready.id, why=refusal.message)
            return None
        if leased_run is None:
            return None
        self._delays.note(leased_run.saved.record, leased_run.saved.now_ms)
        with renewed(self._wiring.desk, ready.id, leased_run.fence):
            try:
                await self._resume(leased_run)
            except asyncio.CancelledError:
                await self._release(leased_run, "its worker was stopped")
                raise

    async def _accept(self, ready: Ready) -> LeasedRun | None:
        """Take a run that was handed to this worker; permits of calls that may not start, and frozen runs, go back."""
        desk = self._wiring.desk
        saved = await desk.suspensions.read_handed(ready.id, ready.packed)
        record, held = saved.record, saved.record.lease
        fence = Fence(self._holder, held.attempt if held else 0, self._lease_ms)
        revocations = await self._wiring.revocation_cache.find()
        state = await self._states.try_read(record) if record.resume.resumer == "runner" else None
        inputs = PlanInputs(agents, self._wiring.rules.policy(), revocations, state=state)
        plan, may_start = confirm_handed(record, inputs, saved.now_ms), await desk.may_start(record, saved.now_ms)
        if not record.journal and not may_start:
            await desk.release(record.id, next_step(fence), "it is frozen")
            return None
        if record.journal and (plan is None or not may_start):
            unused = {intent.index for intent in record.journal}
            saved, plan = await desk.return_permits(record.id, next_step(fence), unused, saved), None
        return LeasedRun(saved, fence, plan, state, self._states, list_unclaimed(saved))

    async def _lease(self, ready: Ready, step_id: str) -> LeasedRun | None:
        """Lease the run; None if this very worker drives it already."""
        revocations = await self._wiring.revocation_cache.find()
        policy = self._wiring.rules.policy()
        suspensions = self._wiring.desk.suspensions
        known = suspensions.recall_packed(ready.id, ready.packed)
        if known is None:  # the store's time was read long ago
            await suspensions.read_time_ms()
            known = suspensions.recall_packed(ready.id, ready.packed)
        inputs = PlanInputs(agents, policy, revocations)
        if known is not None and policy.remembering:
            about = (known.record, list_judged(known.record), policy, known.now_ms)
            wanted = await self._wiring.desk.evaluations.judge(partial(list_wanted, *about), caller=known.record.id)
            inputs = inputs._replace(readings=await suspensions.recall(wanted))
        if known is None or known.record.resume.resumer != "runner":
            leasing = self._lease_and_plan(ready.id, step_id, inputs, known)
        elif known.record.items:  # the calls that start are in the state
            state = await self._states.try_read(known.record)
            leasing = self._lease_and_plan(ready.id, step_id, inputs._replace(state=state), known)
        else:  # it has not asked its model yet, so its state may be read at the same time
            leasing = self._lease_and_plan(ready.id, step_id, inputs, known)
            state, leased_run = await asyncio.gather(self._states.try_read(known.record), leasing)
            return replace(leased_run, state=state) if leased_run is not None else None
        return await leasing

    async def _lease_and_plan(
        self, suspension_id: str, step_id: str, inputs: PlanInputs, known: Saved | None
    ) -> LeasedRun | None:
        lease_ms, first = self._lease_ms, FirstPlan(inputs)
        try:
            leased = await self._wiring.desk.lease(
                suspension_id, self._holder, lease_ms, first.plan, self._job_id, step_id, known
            )
        except OverLimit:  # the calls are judged again after the lease
            if inputs.readings is NO_READINGS:
                raise
            return await self._lease_and_plan(suspension_id, step_id, inputs._replace(readings=NO_READINGS), known)
        held = leased.record.lease
        if held is None or held.step != step_id:
            return None
        fence = Fence(self._holder, held.attempt, lease_ms)
        return LeasedRun(leased, fence, first.find(leased), inputs.state, self._states, list_unclaimed(leased))

    async def _resume(self, leased_run: LeasedRun) -> None:
        record = leased_run.saved.record
        try:
            if (why := (await self._wiring.revocation_cache.find()).find_withdrawal(record.run)) is not None:
                raise Withdrawn(why)
            await RESUMERS[record.resume.resumer](self._wiring, agents, leased_run)
        except Withdrawn as withdrawn:
            log.info("run_withdrawn", suspension=record.id, run=record.run.id, why=withdrawn.message)
            await self._return_unclaimed(leased_run)
            with suppress(Conflict, Unavailable):
                await withdraw_run(self._wiring, record.run, withdrawn.message)
        except Frozen as frozen:
            log.info("run_frozen", suspension=record.id, run=record.run.id, why=frozen.message)
            tools = frozen.facts.get("tools")
            await self._release(leased_run, frozen.message, tuple(map(str, tools)) if isinstance(tools, list) else ())
        except _LOST as refusal:
            log.warning("run_lost", suspension=record.id, run=record.run.id, why=refusal.message)
        except Conflict as refusal:  # the desk decides whether the lease is lost or the run cannot continue
            log.warning("run_refused", suspension=record.id, run=record.run.id, why=refusal.message)
            await self._postpone(leased_run, refusal.message, is_final=isinstance(refusal, _FINAL))
        except Exception as error:
            log.exception("run_not_resumed", suspension=record.id, run=record.run.id)
            reason = error.message if isinstance(error, SaysoError) else f"{type(error).__name__}: {error}"
            await self._postpone(leased_run, reason, is_final=isinstance(error, FrameworkFault))

    async def _release(self, leased_run: LeasedRun, reason: str, waits_for: tuple[str, ...] = ()) -> None:
        """Give the run back. With a call under way the desk refuses, and the lease runs out instead."""
        await self._return_unclaimed(leased_run)
        with suppress(Conflict, Unreadable, Unavailable):
            await self._wiring.desk.release(leased_run.saved.record.id, leased_run.fence, reason, waits_for)

    async def _postpone(self, leased_run: LeasedRun, error: str, *, is_final: bool = False) -> None:
        suspension_id = leased_run.saved.record.id
        await self._return_unclaimed(leased_run)
        try:
            await self._wiring.desk.postpone(suspension_id, leased_run.fence, error, is_final=is_final)
        except (Conflict, Unreadable, Unavailable) as refusal:
            log.warning("run_not_postponed", suspension=suspension_id, why=refusal.message)

    async def _return_unclaimed(self, leased_run: LeasedRun) -> None:
        """Return permits that were redeemed with the lease and whose calls have not started."""
        if leased_run.unclaimed:
            with suppress(Conflict, Unreadable, Unavailable):
                unused = frozenset(leased_run.unclaimed)
                await self._wiring.desk.return_permits(leased_run.saved.record.id, next_step(leased_run.fence), unused)
