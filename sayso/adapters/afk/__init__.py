"""Have every tool call of an AFK agent judged before it runs, wherever the run goes on afterwards.

    from sayso.adapters.afk import gate
    bot = gate(build, name="bot", memory=lambda: SQLiteMemoryStore("afk.db"))

AFK's policy role puts each call to its interaction provider; the provider suspends the run and its process may end.
Whoever goes on has the answers by run, step and place in the turn, and gives the same ones however often AFK asks.
An agent that has to wait in its own process uses `sayso.adapters.afk.desk` instead.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sayso.adapters.afk.checkpoints import Memory, Waiting, is_elsewhere, put_back, read_native, read_waiting
from sayso.adapters.afk.classes import load_words
from sayso.adapters.afk.hooks import NOT_ASKED, Seams
from sayso.adapters.afk.tools import define_tool
from sayso.canonical_json import JsonObject
from sayso.clock import new_id, now_ms
from sayso.errors import InvalidInput
from sayso.records.run_state import check_state
from sayso.records.suspensions import Origin, RunStatus
from sayso.runner.execution import CallExecutor, current_executor
from sayso.runner.protocol import Done, FrameworkAgent, FrameworkTurn, build_agent

_ELSEWHERE = (
    "The run {run_id} no longer waits where this was asked: somebody else has gone on with it. The answers are not "
    "given to another question; cancel this run."
)

_STATUSES = {"degraded": RunStatus.DEGRADED, "cancelled": RunStatus.CANCELLED}
"""How a run ended whose AFK state is not `completed`; in any other state it failed."""

Build = Callable[[Seams], tuple[Any, Any]]
"""What makes the runner and the agent anew in every process, from the seams."""


def gate(
    build: Build,
    *,
    name: str,
    memory: Callable[[], Memory],
    idempotent: Collection[str] = (),
    **options: Any,
) -> FrameworkAgent:
    """Return the agent with all its tools behind Sayso, for `SAYSO_AGENTS` and for `start`.

    `memory` opens AFK's memory store. The other options are those of `sayso.runner.agents.Agent`. Raises `InvalidInput` where
    something would run that nobody judges.
    """
    framework = Afk(build, memory)
    _, _, seams = framework.make(memory())
    definitions = {one.spec.name: define_tool(one, idempotent) for one in seams.tools}
    return build_agent(framework, name, definitions, **options)


@dataclass(frozen=True)
class Afk:
    """An AFK agent behind `sayso.runner.protocol.Framework`."""

    build: Build
    memory: Callable[[], Memory]

    @property
    def origin(self) -> Origin:
        """Which software this is, and how its state is written."""
        return Origin(
            framework="afk",
            framework_version=_find_version(),
            adapter="sayso.adapters.afk",
            state_schema="afk.runtime_state/1",
        )

    async def begin(self, text: str) -> FrameworkTurn | Done:
        """Run up to the first call that nobody was asked about, none of its turn having started, or to the end."""
        async with self._opened() as memory:
            runner, agent, seams = self.make(memory)
            handle = await runner.run_handle(agent, user_message=text, thread_id=new_id("thread"))
            return await self._rest(seams, handle)

    async def find_fault(self, native: JsonObject) -> str | None:
        """Say that the run waits elsewhere by now, or has ended: somebody else has gone on with it."""
        waiting = read_native(native)
        async with self._opened() as memory:
            elsewhere = await is_elsewhere(memory, waiting)
        return _ELSEWHERE.format(run_id=waiting.run_id) if elsewhere else None

    async def resume(self, native: JsonObject, executor: CallExecutor) -> FrameworkTurn | Done:
        """Put the run back where it waits and run on; its clocks are moved by the time it waited."""
        waiting = read_native(native)
        async with self._opened() as memory:
            runner, agent, seams = self.make(memory, waiting, executor)
            await put_back(memory, waiting, now_ms())
            handle = await runner.resume_handle(agent, run_id=waiting.run_id, thread_id=waiting.thread_id)
            return await self._rest(seams, handle)

    def make(
        self, memory: Memory, waiting: Waiting | None = None, executor: CallExecutor | None = None
    ) -> tuple[Any, Any, Seams]:
        """Return the runner and the agent; raises `InvalidInput` where something of it would run unasked."""
        seams = Seams(memory, waiting, executor)
        runner, agent = self.build(seams)
        check_agent(agent, seams.tools, seams.role)
        return runner, agent, seams

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Memory]:
        memory = self.memory()
        await memory.setup()
        try:
            yield memory
        finally:
            await memory.close()

    async def _rest(self, seams: Seams, handle: Any) -> FrameworkTurn | Done:
        try:
            reached = await _await_rest(seams, handle)
        except Exception as error:
            if not load_words().ends_run(error):
                raise
            return Done(
                None, RunStatus.FAILED, str(error) or type(error).__name__, external_events=seams.external_events.said
            )
        if seams.stopped.is_set():
            return await self._read_stop(seams)
        if reached is None:
            return Done(None, RunStatus.CANCELLED, "AFK cancelled the run.", external_events=seams.external_events.said)
        result: JsonObject = {"text": reached.final_text}
        if reached.state == "completed":
            return Done(result, external_events=seams.external_events.said)
        status = _STATUSES.get(reached.state, RunStatus.FAILED)
        return Done(
            {**result, "state": reached.state}, status, reached.final_text, external_events=seams.external_events.said
        )

    async def _read_stop(self, seams: Seams) -> FrameworkTurn:
        place, executor = seams.stopped_at, current_executor()
        if place is None:
            assert executor is not None  # noqa: S101  only a call that went wrong in the gate stops without a place
            raise executor.fault or InvalidInput(NOT_ASKED)
        native = await read_waiting(seams.memory, place.run_id, str(seams.turns.thread_id), place.step, now_ms())
        check_state(native)
        waiting = read_native(native)
        return FrameworkTurn(native, waiting.calls, waiting.text, external_events=seams.external_events.said)


def check_agent(agent: Any, gated: Sequence[Any], role: Any) -> None:
    """Raise `InvalidInput` for an agent that has something which would run unasked."""
    loose = [tool for tool in agent.tools if not any(tool is one for one in gated)]
    if loose:
        names = ", ".join(getattr(getattr(one, "spec", None), "name", repr(one)) for one in loose)
        raise InvalidInput(f"The tools {names} of {agent.name!r} are not gated. Build it with tools=seams.gate([...]).")
    if role not in agent.policy_roles:
        raise InvalidInput(f"The agent {agent.name!r} asks nobody. Build it with policy_roles=[seams.role].")
    if agent.subagents:
        raise InvalidInput(
            f"{agent.name!r} has subagents, whose runs AFK cannot suspend. Let them wait: sayso.adapters.afk.desk."
        )


async def _await_rest(seams: Seams, handle: Any) -> Any:
    """Return what the run came to, or None once it has stopped and AFK has saved all of it."""
    ended = asyncio.ensure_future(handle.await_result())
    stopped = asyncio.ensure_future(seams.stopped.wait())
    task = getattr(handle, "_task", None)
    try:
        await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not seams.stopped.is_set():
            return await ended
        if task is not None:
            await asyncio.wait({task})  # it saves what is not saved yet
            task.exception()
        return None
    except asyncio.CancelledError:
        if task is not None:
            task.cancel()
        raise
    finally:
        stopped.cancel()
        ended.cancel()


def _find_version() -> str:
    try:
        return version("afk-py")
    except PackageNotFoundError:
        return "unpackaged"
