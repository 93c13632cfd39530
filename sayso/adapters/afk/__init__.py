"""Adapter for AFK.

    from sayso.adapters.afk import gate
    bot = gate(build, name="bot", memory=lambda: SQLiteMemoryStore("afk.db"))

AFK's policy role sends each call to its interaction provider. The provider suspends the run, and its process may end.
The process that resumes finds decisions by run, step and place in the turn, and gives the same ones each time AFK asks.
An agent that must wait in its own process uses `sayso.adapters.afk.desk` instead.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from sayso.adapters.afk.checkpoints import Memory, WaitingRun, read_native, read_waiting, restore, was_resumed_elsewhere
from sayso.adapters.afk.hooks import NOT_DECIDED, Hooks
from sayso.adapters.afk.tools import define_tool, load_types
from sayso.adapters.base import RESUMED_ELSEWHERE, Adapter
from sayso.core.canonical_json import JsonObject
from sayso.core.clock import new_id, now_ms
from sayso.core.records.run_state import check_state
from sayso.core.records.suspensions import RunStatus
from sayso.errors import InvalidInput
from sayso.runner.execution import CallExecutor, current_executor
from sayso.runner.protocol import Done, FrameworkAgent, FrameworkTurn, build_agent

_STATUSES = {"degraded": RunStatus.DEGRADED, "cancelled": RunStatus.CANCELLED}
"""The run status for each AFK state except `completed`. Any other state is a failure."""

Build = Callable[[Hooks], tuple[Any, Any]]
"""Builds the runner and the agent in each process, from the hooks."""


def gate(
    build: Build, *, name: str, memory: Callable[[], Memory], idempotent: Collection[str] = (), **options: Any
) -> FrameworkAgent:
    """Return the agent with all its tools gated by Sayso, for `SAYSO_AGENTS` and for `start`.

    `memory` opens AFK's memory store. Raises `InvalidInput` if the agent could run tools ungated.
    """
    framework = Afk(build, memory)
    _, _, hooks = framework.make(memory())
    definitions = {tool.spec.name: define_tool(tool, idempotent) for tool in hooks.tools}
    return build_agent(framework, name, definitions, **options)


@dataclass(frozen=True)
class Afk(Adapter):
    """An AFK agent behind `sayso.runner.protocol.Framework`."""

    framework = "afk"
    package = "afk-py"
    state_schema = "afk.runtime_state/2"

    build: Build
    memory: Callable[[], Memory]

    async def begin(self, text: str) -> FrameworkTurn | Done:
        """Run until the first turn with an undecided call, before any of its calls start, or to the end."""
        async with self._opened() as memory:
            runner, agent, hooks = self.make(memory)
            handle = await runner.run_handle(agent, user_message=text, thread_id=new_id("thread"))
            return await self._rest(hooks, handle)

    async def find_fault(self, native: JsonObject) -> str | None:
        """Return an error if another process has resumed or ended the run, else None."""
        waiting = read_native(native)
        async with self._opened() as memory:
            elsewhere = await was_resumed_elsewhere(memory, waiting)
        return RESUMED_ELSEWHERE.format(what=f"run {waiting.run_id}") if elsewhere else None

    async def resume(self, native: JsonObject, executor: CallExecutor) -> FrameworkTurn | Done:
        """Restore the run where it waits and resume it. AFK's clocks are shifted by the time it waited."""
        waiting = read_native(native)
        async with self._opened() as memory:
            runner, agent, hooks = self.make(memory, waiting, executor)
            await restore(memory, waiting, now_ms())
            handle = await runner.resume_handle(agent, run_id=waiting.run_id, thread_id=waiting.thread_id)
            return await self._rest(hooks, handle)

    def make(
        self, memory: Memory, waiting: WaitingRun | None = None, executor: CallExecutor | None = None
    ) -> tuple[Any, Any, Hooks]:
        """Return the runner and the agent. Raises `InvalidInput` if the agent could run tools ungated."""
        hooks = Hooks(memory, waiting, executor)
        runner, agent = self.build(hooks)
        check_agent(agent, hooks.tools, hooks.role)
        return runner, agent, hooks

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Memory]:
        memory = self.memory()
        await memory.setup()
        try:
            yield memory
        finally:
            await memory.close()

    async def _rest(self, hooks: Hooks, handle: Any) -> FrameworkTurn | Done:
        try:
            reached = await _await_rest(hooks, handle)
        except Exception as error:
            if not load_types().ends_run(error):
                raise
            done = Done(None, RunStatus.FAILED, str(error) or type(error).__name__)
        else:
            if hooks.stopped.is_set():
                position, executor = hooks.stopped_at, current_executor()
                if position is None:
                    assert executor is not None  # noqa: S101  only a failure in the gate stops a run without a position
                    raise executor.fault or InvalidInput(NOT_DECIDED)
                native = await read_waiting(
                    hooks.memory, position.run_id, str(hooks.turns.thread_id), position.step, now_ms()
                )
                check_state(native)
                waiting = read_native(native)
                events, usage = hooks.external_events.raw, waiting.read_usage(hooks.waiting)
                return FrameworkTurn(native, waiting.calls, waiting.text, external_events=events, usage=usage)
            if reached is None:
                done = Done(None, RunStatus.CANCELLED, "AFK cancelled the run.")
            elif reached.state == "completed":
                done = Done({"text": reached.final_text})
            else:
                result: JsonObject = {"text": reached.final_text, "state": reached.state}
                done = Done(result, _STATUSES.get(reached.state, RunStatus.FAILED), reached.final_text)
        return replace(done, external_events=hooks.external_events.raw)


def check_agent(agent: Any, gated: Sequence[Any], role: Any) -> None:
    """Raise `InvalidInput` if the agent could run tools ungated."""
    ungated = [tool for tool in agent.tools if not any(tool is known for known in gated)]
    if ungated:
        names = ", ".join(getattr(getattr(tool, "spec", None), "name", repr(tool)) for tool in ungated)
        raise InvalidInput(f"The tools {names} of {agent.name!r} are not gated. Build it with tools=hooks.gate([...]).")
    if role not in agent.policy_roles:
        raise InvalidInput(f"The agent {agent.name!r} lacks Sayso's role. Build it with policy_roles=[hooks.role].")
    if agent.subagents:
        raise InvalidInput(
            f"{agent.name!r} has subagents, whose runs AFK cannot suspend. Use sayso.adapters.afk.desk instead."
        )


async def _await_rest(hooks: Hooks, handle: Any) -> Any:
    """Return AFK's result, or None once the run has stopped and AFK has saved it."""
    ended = asyncio.ensure_future(handle.await_result())
    stopped = asyncio.ensure_future(hooks.stopped.wait())
    task = getattr(handle, "_task", None)
    try:
        await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not hooks.stopped.is_set():
            return await ended
        if task is not None:
            await asyncio.wait({task})  # the task saves the checkpoint
            task.exception()
        return None
    except asyncio.CancelledError:
        if task is not None:
            task.cancel()
        raise
    finally:
        stopped.cancel()
        ended.cancel()
