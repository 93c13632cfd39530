"""Drive a run from where it stands to its next pause or its end: ask the model, judge, ask people, execute, tell.

All that a run is, is its `RunState`, plain JSON: it pauses in one process and goes on in another. What is about to be
done is written to the run's `Journal` before it is done, and what came of it after.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

from pydantic import JsonValue

from sayso.clock import monotonic_ms, now_ms
from sayso.errors import ModelError
from sayso.policy.engine import Policy
from sayso.records.events import Event, EventType
from sayso.records.items import Doubt, ItemDraft
from sayso.records.suspensions import RunStatus
from sayso.records.tool_calls import ToolResult
from sayso.runner.agents import Agent
from sayso.runner.batches import (
    Batch,
    Ending,
    PlannedCall,
    Resumption,
    answer_batch,
    check_tools,
    complete_batch,
    doubt_unfinished,
    find_ending,
    fit_outputs,
    plan_calls,
    report_batch,
    results_of,
    skip_rest,
    warn_of_timeouts,
)
from sayso.runner.fallbacks import Fits, fall_back, is_offered
from sayso.runner.judging import deny_changed, judge_turn
from sayso.runner.model_calls import judge_model_call
from sayso.runner.models import ChatMessage, ModelTurn
from sayso.runner.tools import CallContext, call_tool
from sayso.runner.transcripts import (
    Exceeded,
    RunState,
    add_results,
    add_turn,
    describe_run,
    find_exceeded,
    report_turn,
    start_state,
    summarise,
)

__all__ = [
    "End",
    "Journal",
    "Pause",
    "PlannedCall",
    "Resumption",
    "RunState",
    "drive",
    "start_state",
]

MAX_CALLS_AT_ONCE = 16
NOTE_AFTER_S = 0.02
"""How long an ended call waits for the rest of its batch before its result is saved alone."""

NO_OUTCOMES: Mapping[int, Resumption] = MappingProxyType({})


class Journal(Protocol):
    """Where a run saves what it is about to do and what it has done. What it raises ends the driving at once."""

    async def redeem(
        self, calls: Sequence[PlannedCall], events: Sequence[Event], state: RunState | None
    ) -> Mapping[int, str]:
        """Save which calls are about to start, with the state they start from unless it is saved already.

        Returns the idempotency key of each call by its index; the same call gets the same key every time.
        """
        ...

    async def confirm(self) -> None:
        """Make sure, right before a call starts, that the run is still in the same hands; raises where it is not."""
        ...

    def note_start(self, key: str) -> None:
        """Leave word that the call with this key starts this moment, in whatever thread it runs, if that is cheap."""
        ...

    def note_end(self, key: str, result: ToolResult) -> None:
        """Leave word of how a call has ended this moment, in whatever thread it ran, if that is cheap."""
        ...

    async def note_results(self, results: Mapping[int, ToolResult]) -> None:
        """Save how calls ended, by index, while others of their batch still run; raises nothing that ends those."""
        ...

    async def checkpoint(self, state: RunState, events: Sequence[Event]) -> None:
        """Save how far the run has come; no call is under way."""
        ...

    def begun_before(self) -> bool:
        """Whether the saved batch was begun before."""
        ...

    def finished(self) -> Mapping[int, ToolResult]:
        """Return the results, by index, that were noted before of calls of the saved batch."""
        ...

    def unfinished(self) -> Mapping[int, Doubt]:
        """Return the calls of the saved batch, by index, that were begun before and of which no result was saved."""
        ...


@dataclass(frozen=True)
class Pause:
    """The run waits for people. State and events are not saved yet: that is one with saving the pause."""

    state: RunState
    drafts: tuple[ItemDraft, ...]
    events: tuple[Event, ...]


@dataclass(frozen=True)
class End:
    """The run is over: completed, degraded or failed. State and events are not saved yet."""

    state: RunState
    status: RunStatus
    result: JsonValue
    error: str | None
    events: tuple[Event, ...]


async def drive(
    agent: Agent,
    state: RunState,
    *,
    policy: Policy,
    journal: Journal,
    outcomes: Mapping[int, Resumption] = NO_OUTCOMES,
    fits: Fits = is_offered,
) -> Pause | End:
    """Drive the run until it has to ask people or ends; `outcomes` are the answers to what it asked, by call index.

    A headless agent's fallback gives a value only where it `fits`.

    A model that gives no answer ends the run as failed. Raises what the journal raises.
    """
    return await _Drive(agent, state, policy, journal, fits).go(outcomes)


async def run_calls(
    agent: Agent,
    run_id: str,
    planned: Sequence[PlannedCall],
    keys: Mapping[int, str],
    journal: Journal,
    repeated: Collection[int] = (),
) -> Mapping[int, ToolResult]:
    """Run calls that the journal knows of together, and return how each ended, by its index."""
    slots = asyncio.Semaphore(MAX_CALLS_AT_ONCE)
    ended: dict[int, ToolResult] = {}

    async def run(one: PlannedCall) -> None:
        tool, index, key = agent.tools_by_name[one.call.name], one.call.index, keys[one.call.index]
        context = CallContext(run_id, one.call.call_id, key, 2 if index in repeated else 1)
        starting, ending = partial(journal.note_start, key), partial(journal.note_end, key)
        async with slots:
            await journal.confirm()
            ended[index] = await call_tool(tool, one.call, context, starting, ending, one.read)

    if len(planned) == 1:  # it keeps nobody waiting; a tool has a task of its own, whatever it does to that
        await asyncio.create_task(run(planned[0]))
        return ended
    running = asyncio.gather(*map(run, planned))
    await _note_early(running, ended, journal)
    await running
    return ended


async def _note_early(running: asyncio.Future[Any], ended: Mapping[int, ToolResult], journal: Journal) -> None:
    """Note what has ended while the rest still runs: a slow call is not to keep its quick neighbours in doubt.

    What ends together costs nothing more: then its batch is saved at once.
    """
    noted: set[int] = set()
    try:
        while True:
            await asyncio.wait((running,), timeout=NOTE_AFTER_S)
            if running.done():
                return
            if fresh := {index: result for index, result in ended.items() if index not in noted}:
                await journal.note_results(fresh)
                noted |= fresh.keys()
    finally:
        if not running.done():
            running.cancel()


class _Drive:
    """One stretch of a run, up to its next rest. `_events` are those that are not saved yet."""

    def __init__(self, agent: Agent, state: RunState, policy: Policy, journal: Journal, fits: Fits) -> None:
        self._agent = agent
        self._fits = fits
        self._state = state
        self._policy = policy
        self._journal = journal
        self._events: list[Event] = []
        self._spent_before_ms = state.spent_ms
        self._began_ms = monotonic_ms()

    async def go(self, outcomes: Mapping[int, Resumption]) -> Pause | End:
        batch = self._state.batch
        rest: Pause | End | None = await self._take_up(batch, outcomes) if batch is not None else None
        while rest is None:
            rest = await self._take_step()
        return rest

    async def _take_up(self, batch: Batch, outcomes: Mapping[int, Resumption]) -> Pause | End | None:
        """Go on with a batch that was saved: with the answers to what it asked, or after a worker was lost."""
        unfinished, finished = self._journal.unfinished(), self._journal.finished()
        if not self._journal.begun_before():  # else it was told already, with the calls that were begun
            self._events += warn_of_timeouts(batch, outcomes)
        answered = self._answer(complete_batch(batch, finished), outcomes)
        doubted = doubt_unfinished(answered, unfinished, self._agent)
        saved, repeated = bool(batch.drafts), frozenset(unfinished)
        if not doubted.drafts:
            return await self._finish(doubted, saved=saved, repeated=repeated)
        known, _ = await self._execute(doubted, saved, repeated)  # what may run again need not wait for the answer
        known, warnings = fit_outputs(known)
        self._events += warnings
        return Pause(self._now(known), known.drafts, self._take_events())

    async def _take_step(self) -> Pause | End | None:
        if stopped := self._find_stop():
            return stopped
        try:
            turn = await self._ask_model()
        except ModelError as error:
            return self._end(RunStatus.FAILED, None, error.message)
        if turn is None:
            return self._run_out(Exceeded("max_wall_time_s", self._agent.budgets.max_wall_time_s))
        self._events += report_turn(turn)
        self._state = add_turn(self._state, turn)
        if not turn.calls:
            return self._end(RunStatus.COMPLETED, {"text": turn.text}, None)
        if self._state.tool_calls > self._agent.budgets.max_tool_calls:
            exceeded = Exceeded("max_tool_calls", self._agent.budgets.max_tool_calls)
            return self._run_out(exceeded, [call.name for call in turn.calls])
        return await self._gate(turn)

    def _find_stop(self) -> End | None:
        """Return the end of a run that may not ask its model again, for its budget or the rules."""
        if exceeded := find_exceeded(self._agent.budgets, self._state, self._spent_ms()):
            return self._run_out(exceeded)
        if denied := judge_model_call(self._agent, self._policy, describe_run(self._state)):
            ending, told = denied
            self._events.append(told)
            return self._stop(ending)
        return None

    async def _ask_model(self) -> ModelTurn | None:
        """Return the model's next turn, or None when the run's time is up before it comes."""
        agent = self._agent
        told: list[ChatMessage] = [{"role": "system", "content": agent.instructions}] if agent.instructions else []
        definitions = [tool.definition for tool in agent.tools]
        limit = asyncio.timeout(agent.budgets.max_wall_time_s - self._spent_ms() / 1000)
        try:
            async with limit:
                return await agent.model.complete([*told, *self._state.messages], definitions)
        except TimeoutError:
            if limit.expired():
                return None
            raise

    async def _gate(self, turn: ModelTurn) -> Pause | End | None:
        """Judge the whole batch; then it waits for people, or is finished."""
        agent = self._agent
        batch, events = judge_turn(agent, turn, self._policy, describe_run(self._state))
        self._events += events
        if batch.drafts and find_ending(batch, agent.approval_denial_policy) is None:
            if agent.interaction == "desk":
                return Pause(self._now(batch), batch.drafts, self._take_events())
            answers = fall_back(batch.drafts, agent.approval_fallback, agent.input_fallback, now_ms(), self._fits)
            batch = self._answer(batch, answers)
        return await self._finish(batch)

    def _answer(self, batch: Batch, outcomes: Mapping[int, Resumption]) -> Batch:
        answered = check_tools(answer_batch(batch, outcomes), self._agent)
        return deny_changed(self._agent, answered, self._policy, describe_run(self._state))

    async def _finish(self, batch: Batch, *, saved: bool = False, repeated: frozenset[int] = frozenset()) -> End | None:
        """Run what may run and tell how every call ended; save that, unless the batch ends the run."""
        ending = find_ending(batch, self._agent.approval_denial_policy)
        if ending is not None:
            batch = skip_rest(batch, ending.reason)
        batch, latency_ms = await self._execute(batch, saved, repeated)
        batch, warnings = fit_outputs(batch)
        self._events += (*warnings, *report_batch(batch, latency_ms))
        self._state = add_results(self._state, results_of(batch))
        if ending is not None:
            return self._stop(ending)
        await self._journal.checkpoint(self._now(), self._take_events())
        return None

    async def _execute(self, batch: Batch, saved: bool, repeated: frozenset[int]) -> tuple[Batch, float]:
        """Run the planned calls together, written down first; return the batch with their results, and how long."""
        planned = plan_calls(batch, self._agent)
        if not planned:
            return batch, 0.0
        keys = await self._journal.redeem(planned, self._take_events(), None if saved else self._now(batch))
        began_ms = monotonic_ms()
        results = await run_calls(self._agent, self._state.run_id, planned, keys, self._journal, repeated)
        return complete_batch(batch, results), monotonic_ms() - began_ms

    def _stop(self, ending: Ending) -> End:
        partial = summarise(self._state, ending.reason) if ending.status is RunStatus.DEGRADED else None
        return self._end(ending.status, partial, ending.reason)

    def _run_out(self, exceeded: Exceeded, not_started: Sequence[str] = ()) -> End:
        """End the run with what it has."""
        reason = f"The run's budget is used up: {exceeded.budget} is {exceeded.limit:g}."
        data = {"message": reason, "budget": exceeded.budget, "limit": exceeded.limit}
        self._events.append(Event(type=EventType.WARNING, data=data))
        return self._end(RunStatus.DEGRADED, summarise(self._state, reason, not_started), reason)

    def _end(self, status: RunStatus, result: JsonValue, error: str | None) -> End:
        return End(self._now(), status, result, error, self._take_events())

    def _now(self, batch: Batch | None = None) -> RunState:
        return self._state.model_copy(update={"batch": batch, "spent_ms": self._spent_ms()})

    def _spent_ms(self) -> float:
        return self._spent_before_ms + monotonic_ms() - self._began_ms

    def _take_events(self) -> tuple[Event, ...]:
        events = tuple(self._events)
        self._events.clear()
        return events
