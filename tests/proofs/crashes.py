"""Drive one run, crash at a chosen point, and finish the run in another process.

`python -m tests.proofs.crashes STORE_URL FOLDER` does so for every point, in separate processes, and prints each result
as a line of JSON. A point is before or after the n-th commit or call.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from redis import Redis as BlockingRedis
from redis.asyncio import Redis

from sayso.core.clock import now_ms
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import RunRef, RunStatus, Status
from sayso.core.transitions.permits import Choice
from sayso.runner.agents import Agent
from sayso.runner.models import ModelTurn, RequestedCall, ScriptedModel
from sayso.runner.tools import CallContext, tool
from sayso.runner.transcripts import start_state
from service.assembly import assemble
from service.core.desk.desk import Desk
from service.core.logs import configure_logs
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.connection.connecting import connect
from service.core.store.runs.runs import Run
from service.core.store.suspensions.batches import DueBatches, PackedCommit
from service.core.store.suspensions.saving import Verb
from service.core.store.suspensions.schedule import Schedule
from service.core.store.tenants import Connections, TenantStore
from service.core.wiring import Wiring
from service.features.registry import HOOKS
from tests.proofs.faulty_stores import ClockedSuspensions
from tests.proofs.indexes import expect_indexes, find_trail_error, read_indexes
from tests.sayso.samples import person
from workers.clock import ticks as clock
from workers.clock.ticks import take_back_handed
from workers.resume import driving as resume

CRASHED = 7
"""The exit code of a process that crashed at its point."""

LATER_MS = 120_000
"""How much later the second process runs: all leases have expired."""

_MOST_LOOKS = 200
RUN_ID = "run_1"
IDEMPOTENT = ("look_up", "tag")
POLICY = """
version: 1
default: allow
rules:
  - {id: ask-refund, tool: refund, action: request_approval, terms: {timeout_s: 86400, start_by_s: 86400}}
  - {id: ask-tag, tool: tag, action: request_approval, terms: {timeout_s: 86400, start_by_s: 86400}}
"""


class CrashPoint(NamedTuple):
    """The crash point: before or after the `place`-th commit or call."""

    kind: str
    place: int
    when: str


class Steps:
    """A counter of commits and calls that exits the process at its point, as kill -9 would."""

    def __init__(self, point: CrashPoint | None) -> None:
        self.point = point
        self.counts = {"commit": 0, "call": 0}

    async def take(self, kind: str, step: Callable[[], Awaitable[Any]]) -> Any:
        """Take a step, and exit at the point."""
        self.counts[kind] += 1
        place = self.counts[kind]
        self._reach(CrashPoint(kind, place, "before"))
        done = await step()
        self._reach(CrashPoint(kind, place, "after"))
        return done

    def _reach(self, point: CrashPoint) -> None:
        if point == self.point:
            os._exit(CRASHED)


class LaterSuspensions(ClockedSuspensions):
    """The store at a later time; its commits are steps."""

    def __init__(self, store: TenantStore, steps: Steps, later_ms: int) -> None:
        super().__init__(store, lambda: now_ms() + later_ms)
        self.due_batches = LaterBatches(store, steps, self.at_clock)
        commit = self._commit
        self._commit = lambda **arguments: steps.take(  # type: ignore[assignment]
            "commit", lambda: commit(**arguments)
        )


class LaterBatches(DueBatches):
    """Due batches at a later time; each commit of a batch is a step."""

    def __init__(self, store: TenantStore, steps: Steps, at_clock: Callable[[Verb], Verb]) -> None:
        super().__init__(store, lambda: 0)
        self._steps = steps
        self._at_clock = at_clock

    async def change(self, suspension_ids: Sequence[str], verb: Verb, valid_until_ms: int = 0) -> list[str]:
        """Apply a transition at the later time."""
        return await super().change(suspension_ids, self._at_clock(verb), valid_until_ms)

    async def _send(
        self, suspension_ids: Sequence[str], commits: Sequence[PackedCommit], valid_until_ms: int
    ) -> list[str]:
        left: list[str] = []
        for suspension_id, commit in zip(suspension_ids, commits, strict=True):
            left += await self._steps.take("commit", partial(super()._send, [suspension_id], [commit], valid_until_ms))
        return left


class LaterSchedule(Schedule):
    """The schedule at a later time."""

    later_ms = 0

    async def now_ms(self) -> int:
        """Return the later time."""
        return await super().now_ms() + self.later_ms


def build_agent(steps: Steps, effects: Path) -> Agent:
    """Return an agent whose calls write lines to a file; two of its four calls need approval."""

    async def run_call(name: str, call: CallContext) -> str:
        async def write() -> str:
            with effects.open("a") as file:
                file.write(json.dumps([name, call.call_id, call.idempotency_key]) + "\n")
            return f"{name} done"

        return str(await steps.take("call", write))

    @tool(idempotent=True)
    async def look_up(order: str, call: CallContext) -> str:
        """Look an order up."""
        return await run_call("look_up", call)

    @tool
    async def note(order: str, call: CallContext) -> str:
        """Write a note on an order."""
        return await run_call("note", call)

    @tool
    async def refund(order: str, call: CallContext) -> str:
        """Pay an order back."""
        return await run_call("refund", call)

    @tool(idempotent=True)
    async def tag(order: str, call: CallContext) -> str:
        """Tag an order."""
        return await run_call("tag", call)

    turns = [turn("look_up", "note"), turn("refund", "tag"), ModelTurn(text="all done")]
    return Agent(name="a", instructions="x", tools=(look_up, note, refund, tag), model=ScriptedModel(turns))


def turn(*names: str) -> ModelTurn:
    """Return a turn of the model that calls tools by these names."""
    calls = (RequestedCall(call_id=f"call_{name}", name=name, args_json='{"order": "A"}') for name in names)
    return ModelTurn(text="", calls=tuple(calls))


async def run_to_end(settings: Settings, point: CrashPoint | None, later_ms: int, report: Path) -> None:
    """Act as client, reviewer, worker and clock of one run until it ends; then report and exit."""
    steps = Steps(point)
    resume.agents["a"] = build_agent(steps, settings.home / "effects")
    redis = connect(settings.store_url)
    async with assemble(settings) as wired:
        store = TenantStore(Connections(redis), TENANT, HOOKS)
        desk = Desk(LaterSuspensions(store, steps, later_ms), wired.runs, wired.rulebook.refresh)
        schedule = LaterSchedule(store)
        schedule.later_ms = later_ms
        left_begun = await list_begun(redis)
        wiring = copy(wired)
        wiring.desk, wiring.schedule = desk, schedule
        listening = asyncio.create_task(wiring.watch.listen())
        driving = asyncio.create_task(resume.Drain(wiring, f"w-{os.getpid()}").run(asyncio.Event()))
        state = start_state(RUN_ID, "a", "refund order A")
        ref = RunRef(id=RUN_ID, agent="a", owner="bot", thread_id="t")
        await wiring.desk.start(ref, seal_state(state.model_dump_json().encode()), key="start")
        in_doubt = await tick_until_end(wiring)
        described = await describe(wiring, redis)
        result = json.dumps({"left_begun": left_begun, "in_doubt": in_doubt, "counts": steps.counts, **described})
        await asyncio.to_thread(report.write_text, result)
        assert not listening.done()
        assert not driving.done()
        os._exit(0)


async def tick_until_end(wiring: Wiring) -> bool:
    """Tick and decide until the run ends; return whether a call was in doubt."""
    in_doubt = False
    with wiring.watch.on(RUN_ID) as moved:
        for _ in range(_MOST_LOOKS):
            moved.clear()
            await clock.process_due(wiring)
            await take_back_handed(wiring)
            run = await wiring.runs.read(RUN_ID)
            if run.status.ended:
                return in_doubt
            if run.status is RunStatus.SUSPENDED:
                in_doubt |= await decide_open(wiring, run)
            with suppress(TimeoutError):  # a worker that crashed may have been handed the run
                await asyncio.wait_for(moved.wait(), 1)

    raise AssertionError("the run does not end")


async def decide_open(wiring: Wiring, run: Run) -> bool:
    """Approve every open item, skip calls in doubt, and return whether there was one."""
    found = await wiring.desk.suspensions.read(run.suspension_id)
    record = found.record
    assert record is not None
    if record.status is not Status.PENDING:
        return False
    for item in record.items:
        if item.open:
            decision: dict[str, Any] = {"action": "approve"}
            if item.doubt is not None:
                decision = {"action": "value", "value": {"choice": str(Choice.SKIP)}}
            request = DecisionRequest(digest=item.digest, **decision)
            key = f"{record.id}:{item.item_id}"
            await wiring.desk.decide(record.id, item.item_id, request, person("ada"), key)
    return any(item.doubt is not None for item in record.items)


async def list_begun(redis: Redis) -> list[str]:
    """Return the tools whose calls the store holds as begun and without a result."""
    _, records = await read_indexes(redis, TENANT)
    return [one.tool for record in records for one in record.journal if one.result is None]


async def describe(wiring: Wiring, redis: Redis) -> dict[str, Any]:
    """Return how the run ended, and the errors in its trail and indexes."""
    run = await wiring.runs.read(RUN_ID)
    held, records = await read_indexes(redis, TENANT)
    trail = await wiring.runs.trail(RUN_ID)
    latest = next(record for record in records if record.id == run.suspension_id)
    return {
        "status": str(run.status),
        "error": run.error,
        "trail": [[entry.type, entry.data.get("tool_call_id")] for entry in trail],
        "trail_error": find_trail_error(trail, latest.status),
        "indexes_differ": {name: held[name] for name in held if held[name]} != expect_indexes(records),
    }


def run_process(settings: Settings, point: CrashPoint | None, later_ms: int, report: Path) -> int:
    """Return the exit code of a forked child that runs until it crashes or reports."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        with ExitStack() as stack:
            stack.callback(os._exit, 1)  # the child never returns from here, even after an error
            asyncio.run(run_to_end(settings, point, later_ms, report))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_all_points(url: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the result of every point; the first run has no crash and counts the points."""
    counts: dict[str, int] | None = None
    points: list[CrashPoint | None] = [None]
    for number, point in enumerate(points):
        home = folder / str(number)
        home.mkdir()
        (home / "policy.yaml").write_text(POLICY)
        settings = Settings(home=home, redis_url=url, policy=home / "policy.yaml", drain_window_s=60, log_level="error")
        with BlockingRedis.from_url(url) as redis:
            redis.flushall()
        codes = [run_process(settings, point, 0, home / "report")]
        if codes[0] == CRASHED:
            codes.append(run_process(settings, None, LATER_MS, home / "report"))
        report = json.loads((home / "report").read_text()) if (home / "report").exists() else {}
        effects = (home / "effects").read_text() if (home / "effects").exists() else ""
        yield {"point": point, "codes": codes, "effects": [*map(json.loads, effects.splitlines())], **report}
        if counts is None:
            counts = report["counts"]
            for kind, most in report["counts"].items():
                points += [
                    CrashPoint(kind, place, when) for place in range(1, most + 1) for when in ("before", "after")
                ]


if __name__ == "__main__":
    configure_logs("proof", "error")
    for outcome in run_all_points(sys.argv[1], Path(sys.argv[2])):
        print(json.dumps(outcome), flush=True)
