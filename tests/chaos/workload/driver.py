"""The driver of all runs: start them, several dozen at a time, and wait until they end."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from pydantic import BaseModel, ConfigDict

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import monotonic_ms
from sayso.core.records.suspensions import RunStatus
from sayso.errors import SaysoError
from tests.chaos.workload.clients import Clients, Request
from tests.chaos.workload.phones import Phones
from tests.chaos.workload.plans import REVIEWERS, Plan, plan_run, seeded_random
from tests.chaos.workload.reviews import InboxView, SuspensionView, review

AT_ONCE = 40
POLL_S = 0.2
WAIT_S = 10
RUN_PATIENCE_S = 240
"""The driver stops waiting for a run after this; the checker then reports it. No rule's deadline is as long."""

_PAGE = 200


class _RunView(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    status: RunStatus


class Driver:
    """Drives all runs. `started` and `ended` count them; `may_start` holds runs back until kills catch up."""

    def __init__(
        self, clients: Clients, phones: Phones, seed: int, runs: int, may_start: Callable[[int], bool]
    ) -> None:
        self._clients = clients
        self._phones = phones
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
        """The plans of started runs, by run id."""
        return self._by_run

    async def drive(self) -> None:
        """Return when every run has ended or its time is over."""
        polling = asyncio.create_task(self._poll_inbox())
        try:
            async with asyncio.TaskGroup() as group:
                for plan in self._plans:
                    await self._slots.acquire()
                    await self._await_turn(plan)
                    self.started += 1
                    group.create_task(self._drive(plan))
                    if polling.done():
                        polling.result()
        finally:
            polling.cancel()
            with suppress(asyncio.CancelledError):
                await polling
        await asyncio.gather(*self._reviewing)

    async def _await_turn(self, plan: Plan) -> None:
        while True:
            if self._may_start(plan.number):
                return
            await asyncio.sleep(POLL_S)

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
        """Start the run. Some requests go out twice, and some keys are used again for another request."""
        rng = seeded_random(self._seed, "start", plan.number)
        body: JsonObject = {"agent": plan.agent, "input": plan.model_dump_json(), "title": f"Chaos {plan.number}"}
        request = Request(
            kind="start", run=plan.number, actor=plan.owner, path="/api/v1/runs", key=f"start-{plan.number}", body=body
        )
        copies = 2 if rng.random() < 0.1 else 1
        exchange, *_ = await asyncio.gather(*(self._clients.send(request) for _ in range(copies)))
        if not exchange.confirmed:
            raise SaysoError(f"The run {plan.number} was not started: {exchange.status} {exchange.answer}")
        run = _RunView.model_validate(exchange.answer)
        self._by_run[run.id] = plan
        if rng.random() < 0.05:
            other = {**body, "title": "Something else"}
            await self._clients.send(Request("start", plan.number, plan.owner, "/api/v1/runs", request.key, other))
        return run.id

    async def _cancel(self, plan: Plan, run_id: str) -> None:
        if plan.cancel_after_s is None:
            return
        await asyncio.sleep(plan.cancel_after_s)
        path, body = f"/api/v1/runs/{run_id}/cancel", JsonObject(reason="Cancelled by the experiment")
        person = seeded_random(self._seed, "cancel", plan.number).choice([plan.owner, *REVIEWERS])
        await self._clients.send(Request("cancel", plan.number, person, path, f"cancel-{run_id}", body, run_id))

    async def _await_end(self, run_id: str) -> None:
        until_ms = monotonic_ms() + RUN_PATIENCE_S * 1000
        while monotonic_ms() < until_ms:
            found = await self._clients.read(REVIEWERS[0], f"/api/v1/runs/{run_id}?wait={WAIT_S}s", WAIT_S)
            if _RunView.model_validate(found).status.ended:
                return

    async def _poll_inbox(self) -> None:
        """Pass every pending item to the reviewers once, and again when its digest changes."""
        while True:
            found = await self._clients.read(REVIEWERS[0], f"/api/v1/suspensions?status=pending&limit={_PAGE}")
            for seen in InboxView.model_validate(found).suspensions:
                plan = self._by_run.get(seen.run.id)
                fresh = self._pick_fresh(seen)
                if plan is None or not fresh.items:
                    continue
                self._reviewed |= {(seen.id, item.item_id, item.digest) for item in fresh.items}
                reviewing = asyncio.create_task(review(self._clients, self._phones, plan, fresh, self._seed))
                self._reviewing.add(reviewing)
                reviewing.add_done_callback(self._note_reviewed)
            await asyncio.sleep(POLL_S)

    def _pick_fresh(self, seen: SuspensionView) -> SuspensionView:
        """Return the suspension with its unseen open items; a moved deadline changes the digest."""
        fresh = [
            item
            for item in seen.items
            if item.outcome is None and (seen.id, item.item_id, item.digest) not in self._reviewed
        ]
        return seen.model_copy(update={"items": tuple(fresh)})

    def _note_reviewed(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and task.exception() is None:
            self._reviewing.discard(task)
