"""Drive all runs of a storm from start to end, some dozens at a time, through whatever is killed meanwhile."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from pydantic import BaseModel, ConfigDict

from sayso.canonical_json import JsonObject
from sayso.clock import monotonic_ms
from sayso.errors import SaysoError
from sayso.records.suspensions import RunStatus
from tests.chaos.clients import Clients, Errand
from tests.chaos.plans import REVIEWERS, Plan, dice, plan_run
from tests.chaos.reviews import InboxSeen, SuspensionSeen, review

AT_ONCE = 40
LOOK_S = 0.2
WAIT_S = 10
RUN_PATIENCE_S = 240
"""A run that has not ended after this is left, and the checker says so; no term of the storm's rules is as long."""

_PAGE = 200


class _RunSeen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    status: RunStatus


class Driver:
    """One storm's runs: `started` and `ended` tell how far it is; `may_start` holds runs back for the kills."""

    def __init__(self, clients: Clients, seed: int, runs: int, may_start: Callable[[int], bool]) -> None:
        self._clients = clients
        self._seed = seed
        self._plans = [plan_run(seed, number) for number in range(runs)]
        self._may_start = may_start
        self._by_run: dict[str, Plan] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._reviewing: set[asyncio.Task[None]] = set()
        self._reviewed: set[tuple[str, str, str]] = set()
        self.started = 0
        self.ended = 0

    @property
    def run_ids(self) -> dict[str, Plan]:
        """The plans of the runs that were started, by the runs' ids."""
        return self._by_run

    async def drive(self) -> None:
        """Return when every run has ended, or was waited for long enough."""
        looking = asyncio.create_task(self._look())
        try:
            async with asyncio.TaskGroup() as group:
                for plan in self._plans:
                    await self._slots.acquire()
                    await self._await_turn(plan)
                    self.started += 1
                    group.create_task(self._drive(plan))
                    if looking.done():
                        looking.result()
        finally:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking
        await asyncio.gather(*self._reviewing)

    async def _await_turn(self, plan: Plan) -> None:
        while True:
            if self._may_start(plan.number):
                return
            await asyncio.sleep(LOOK_S)

    async def _drive(self, plan: Plan) -> None:
        try:
            run_id = await self._start(plan)
            cancelling = asyncio.create_task(self._cancel(plan, run_id))
            await self._await_end(run_id)
            await cancelling
        finally:
            self.ended += 1
            self._slots.release()

    async def _start(self, plan: Plan) -> str:
        """Start the run; now and then the request goes out twice, or the key is used for something else again."""
        throw = dice(self._seed, "start", plan.number)
        body: JsonObject = {"agent": plan.agent, "input": plan.model_dump_json(), "title": f"Storm {plan.number}"}
        errand = Errand(
            kind="start", run=plan.number, actor=plan.owner, path="/api/v1/runs", key=f"start-{plan.number}", body=body
        )
        twice = 2 if throw.random() < 0.1 else 1
        said, *_ = await asyncio.gather(*(self._clients.run(errand) for _ in range(twice)))
        if not said.done:
            raise SaysoError(f"The run {plan.number} was not started: {said.status} {said.answer}")
        run = _RunSeen.model_validate(said.answer)
        self._by_run[run.id] = plan
        if throw.random() < 0.05:
            other = {**body, "title": "Something else"}
            await self._clients.run(Errand("start", plan.number, plan.owner, "/api/v1/runs", errand.key, other))
        return run.id

    async def _cancel(self, plan: Plan, run_id: str) -> None:
        if plan.cancel_after_s is None:
            return
        await asyncio.sleep(plan.cancel_after_s)
        path, body = f"/api/v1/runs/{run_id}/cancel", JsonObject(reason="The storm cancels it")
        person = dice(self._seed, "cancel", plan.number).choice([plan.owner, *REVIEWERS])
        await self._clients.run(Errand("cancel", plan.number, person, path, f"cancel-{run_id}", body, run_id))

    async def _await_end(self, run_id: str) -> None:
        until_ms = monotonic_ms() + RUN_PATIENCE_S * 1000
        while monotonic_ms() < until_ms:
            found = await self._clients.read(REVIEWERS[0], f"/api/v1/runs/{run_id}?wait={WAIT_S}s", WAIT_S)
            if _RunSeen.model_validate(found).status.ended:
                return

    async def _look(self) -> None:
        """Take what waits for people to the reviewers, each item once, and again when it has become another one."""
        while True:
            found = await self._clients.read(REVIEWERS[0], f"/api/v1/suspensions?status=pending&limit={_PAGE}")
            for seen in InboxSeen.model_validate(found).suspensions:
                plan = self._by_run.get(seen.run.id)
                fresh = self._pick_fresh(seen)
                if plan is None or not fresh.items:
                    continue
                self._reviewed |= {(seen.id, item.item_id, item.digest) for item in fresh.items}
                reviewing = asyncio.create_task(review(self._clients, plan, fresh, self._seed))
                self._reviewing.add(reviewing)
                reviewing.add_done_callback(self._note_reviewed)
            await asyncio.sleep(LOOK_S)

    def _pick_fresh(self, seen: SuspensionSeen) -> SuspensionSeen:
        """Return the pause with the open items that nobody was shown; a deadline that moves makes another digest."""
        fresh = [
            item
            for item in seen.items
            if item.outcome is None and (seen.id, item.item_id, item.digest) not in self._reviewed
        ]
        return seen.model_copy(update={"items": tuple(fresh)})

    def _note_reviewed(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and task.exception() is None:
            self._reviewing.discard(task)
