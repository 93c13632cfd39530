"""Put calls in doubt that this process knows to have started, and that a store which went back has as unspent."""

import asyncio
from contextlib import suppress

import structlog

from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.freezes import Loss
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.transitions.permits import recover_start
from sayso.errors import Conflict, NotFound, SaysoError, Unavailable, Unreadable
from service.core.desk.desk import Desk
from service.core.store.loss.start_log import Start
from service.core.store.runs.runs import Runs

_BY = Actor(id="desk", kind=ActorKind.POLICY, channel="desk")
_MARGIN_MS = 5_000
_AGAIN_S = 0.5
_REASON = "The store went back, and calls of this run that it has as unspent may have run"

log = structlog.get_logger(__name__)


class Recovery:
    """The recovery of one tenant in one process, which runs beside everything else."""

    def __init__(self, desk: Desk, runs: Runs) -> None:
        self._desk, self._runs = desk, runs
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_ending = False

    def begin(self, loss: Loss) -> None:
        """Recover the starts of the lost window in the background, through outages."""
        task = asyncio.create_task(self._run(loss))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Wait for what was begun."""
        await asyncio.gather(*self._tasks)

    async def end(self) -> None:
        """Finish what the store takes now; the next process of this home begins the rest anew."""
        self._is_ending = True
        await self.finish()

    async def _run(self, loss: Loss) -> None:
        for start in self._desk.suspensions.starts.list_since(loss.from_ms - _MARGIN_MS):
            await self._recover_through_outages(start)

    async def _recover_through_outages(self, start: Start) -> None:
        while True:
            try:
                await self.recover(start)
                return
            except (SaysoError, ValueError) as error:
                if not isinstance(error, Unavailable) or self._is_ending:
                    log.warning("start_not_recovered", suspension=start.suspension_id, exc_info=error)
                    return
                await asyncio.sleep(_AGAIN_S)

    async def recover(self, start: Start) -> None:
        """Put the calls of one start in doubt, or cancel its run where that cannot be, unless the store has it."""
        suspensions = self._desk.suspensions
        started, head = suspensions.unpack(start.suspension_id, start.packed)
        if await self._runs.has_event(started.run.id, head):
            return
        try:
            record = (await suspensions.read(start.suspension_id)).record
            if record.state == started.state:
                await suspensions.change(record.id, lambda now, at_ms: recover_start(now, started, at_ms))
                await self._ask(started)
                log.warning("call_in_doubt", suspension=record.id, run=record.run.id)
                return
        except (NotFound, Conflict):
            pass
        with suppress(NotFound, Conflict, Unreadable):
            await self._desk.cancel(started.run.id, _BY, _REASON, is_admin=True)
            log.warning("run_cancelled", run=started.run.id, why=_REASON)

    async def _ask(self, started: SuspensionRecord) -> None:
        """Ask a person about a call that its client runs; what a worker runs is asked when it continues."""
        for item in started.items if started.resume.mode == "poll" else ():
            if item.permit is not None and item.permit.report is None:
                with suppress(Conflict):
                    await self._desk.mark_in_doubt(started.id, item.item_id)
