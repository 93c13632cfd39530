"""The run loop: ask the model, judge its calls, suspend for people, execute, repeat.

State is plain JSON. The `Journal` gets every call before it starts, and its result before anything follows from it. The
model gets results while they are saved; if it ends the run at once, they are saved with the end.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeAlias

from pydantic import BaseModel

from sayso.core.clock import monotonic_ms, now_ms
from sayso.core.policy.budgets import Settle, settle_here
from sayso.core.policy.counters.charging import NO_READINGS
from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.records.events import Event, EventType
from sayso.core.records.suspensions import RunEnd, RunStatus
from sayso.core.transitions.inquiring import describe_delivery
from sayso.errors import OverLimit
from sayso.runner import batches, judging
from sayso.runner.agents import Agent
from sayso.runner.batches import Batch, Ending, Fitted, Resumption
from sayso.runner.execution import Journal
from sayso.runner.fallbacks import Fits, fall_back, is_offered
from sayso.runner.models import ModelTurn
from sayso.runner.previews import preview_batch
from sayso.runner.protocol import AgentRun, Executed, Execution, RunEnded, RunSuspended, State
from sayso.runner.transcripts import Exceeded, report_turn

NO_OUTCOMES: Mapping[int, Resumption] = MappingProxyType({})

_Reached: TypeAlias = ModelTurn | RunEnd | RunSuspended[Any] | None
"""Result of one step; None means that the model comes next."""


async def drive(
    run: AgentRun[State],
    *,
    policy: Policy,
    journal: Journal[State],
    outcomes: Mapping[int, Resumption] = NO_OUTCOMES,
    fits: Fits = is_offered,
    now_ms: Callable[[], int] = now_ms,
    answered: Fitted | None = None,
    settle: Settle = settle_here,
) -> RunSuspended[State] | RunEnded[State]:
    """Drive the run until it suspends or ends; `outcomes` are the decisions on its drafts, by call index.

    `answered` is the saved batch with these decisions, if `answer_calls` was applied to it before.
    `fits` checks the fallback value of a headless agent, `now_ms` is the clock that rules read, and `settle` evaluates
    them. Raises what journal and framework raise; the run can then be driven again from its saved state.
    """
    return await _Drive(run, policy, journal, _Means(fits, now_ms, settle)).run(outcomes, answered)


def answer_calls(
    agent: Agent, batch: Batch, outcomes: Mapping[int, Resumption], policy: Policy, describe: Callable[[], PolicyEvent]
) -> Fitted:
    """Apply decisions to a batch, and end the calls that can no longer run or whose edited arguments the rules deny."""
    fitted = batches.fit_calls(batches.answer_batch(batch, outcomes), agent)
    return fitted._replace(batch=judging.deny_changed(agent, fitted.batch, policy, describe))


class _Means(NamedTuple):
    fits: Fits
    now_ms: Callable[[], int]
    settle: Settle


class _Drive(Generic[State]):
    """One drive of a run. `_events` are those that are not saved yet; `_unsaved` says that results are among them."""

    def __init__(self, run: AgentRun[State], policy: Policy, journal: Journal[State], means: _Means) -> None:
        self._run = run
        self._agent = run.agent
        self._policy = policy
        self._journal = journal
        self._fits, self._now_ms, self._settle = means
        self._events: list[Event] = []
        self._unsaved = False
        self._read: Mapping[int, BaseModel] = {}
        self._started_ms: float | None = None

    async def run(
        self, outcomes: Mapping[int, Resumption], answered: Fitted | None
    ) -> RunSuspended[State] | RunEnded[State]:
        batch = self._run.batch
        reached: _Reached = await self._resume(batch, outcomes, answered) if batch is not None else None
        while not isinstance(reached, RunEnd | RunSuspended):
            reached = await self._ask() if reached is None else await self._judge(reached)
        external = self._run.external_events
        if isinstance(reached, RunSuspended):
            return replace(reached, external_events=external)
        state, status, result, error = self._run.snapshot(), reached.status, reached.result, reached.error
        return RunEnded(state, status, result, error, self._take_events(), external)

    async def _resume(self, batch: Batch, outcomes: Mapping[int, Resumption], answered: Fitted | None) -> _Reached:
        """Continue a saved batch with the decisions on it, or after its worker was lost."""
        unfinished, finished = self._journal.unfinished(), self._journal.finished()
        reported = all(entry.result is not None for entry in batch.calls)
        if not reported and not self._journal.started_before():  # else an earlier attempt has warned already
            self._events += batches.warn_of_timeouts(batch, outcomes)
        saved, repeated = bool(batch.drafts), frozenset(unfinished)
        if answered is None or finished:
            answered = await self._answer(batches.complete_batch(batch, finished), outcomes)
        batch, self._read = answered
        batch = batches.mark_unfinished(batch, unfinished, self._agent)
        if any(entry.granted and entry.may_run for entry in batch.calls) and not self._journal.started_before():
            batch = await self._judge_again(batch, may_ask=not self._run.asks_with_calls)
        while True:
            try:
                if not batch.drafts:
                    return await self._finish(batch, saved=saved, reported=reported, repeated=repeated)
                if not self._run.asks_with_calls:
                    executed = await self._execute(batch, saved, repeated)
                    batch, warnings = batches.fit_outputs(batches.complete_batch(batch, executed.results))
                    self._events += warnings
                return await self._suspend(await self._offer_undo(batch))
            except OverLimit:
                batch = await self._judge_again(batch, may_ask=not self._run.asks_with_calls)

    async def _ask(self) -> ModelTurn | RunEnd:
        if exceeded := self._run.find_exceeded():
            return self._exceed(exceeded)
        if denied := await self._judge_model_call():
            return self._stop(denied)
        for note in await self._journal.list_notes() if self._run.takes_notes else ():
            self._run.add_note(note)
            self._events.append(describe_delivery(note))
        reached = await (self._ask_and_save() if self._unsaved else self._run.ask())
        return self._exceed(reached) if isinstance(reached, Exceeded) else reached

    async def _ask_and_save(self) -> ModelTurn | RunEnd | Exceeded:
        """Ask the model and save the results that it gets, unless it ends the run at once."""
        asking = asyncio.create_task(self._run.ask())
        try:
            await asyncio.sleep(0)
            reached = asking.result() if asking.done() and not asking.cancelled() and not asking.exception() else None
            if reached is None or (isinstance(reached, ModelTurn) and reached.calls):
                await self._save()
            return await asking
        finally:
            asking.cancel()

    async def _judge(self, turn: ModelTurn) -> _Reached:
        self._events += report_turn(turn)
        end = self._run.accept(turn)
        if end is not None:
            return self._exceed(end, turn) if isinstance(end, Exceeded) else end
        agent, about = self._agent, self._describe()
        readings = NO_READINGS
        if self._policy.remembering:
            wanted = await self._settle(
                partial(judging.list_wanted, agent, judging.read_calls(turn, about), self._policy, about)
            )
            readings = await self._journal.recall(wanted) if wanted else readings
        batch, events = await self._settle(partial(judging.judge_turn, agent, turn, self._policy, about, readings))
        self._events += events
        while True:
            if batch.drafts and batches.find_ending(batch, agent.approval_denial_policy) is None:
                if agent.interaction == "desk":
                    return await self._suspend(batch)
                fallbacks = agent.approval_fallback, agent.input_fallback
                outcomes = fall_back(batch.drafts, *fallbacks, self._now_ms(), self._fits)
                batch, self._read = await self._answer(batch, outcomes)
            try:
                return await self._finish(batch)
            except OverLimit:
                batch = await self._judge_again(batch, may_ask=True)

    async def _judge_again(self, batch: Batch, *, may_ask: bool) -> Batch:
        """Judge the calls that may run on counters as they are now."""
        agent, about = self._agent, self._describe()
        wanted = await self._settle(partial(judging.list_batch_wanted, agent, batch, self._policy, about))
        readings = await self._journal.recall(wanted)
        judge = partial(judging.judge_again, agent, batch, self._policy, about, readings, may_ask=may_ask)
        batch, events = await self._settle(judge)
        self._events += events
        return batch

    def _describe(self) -> PolicyEvent:
        """Return the facts about the run that rules read, with the time if they need it."""
        about = self._run.describe()
        return about.model_copy(update={"at_ms": self._now_ms()}) if self._policy.reads_time else about

    async def _answer(self, batch: Batch, outcomes: Mapping[int, Resumption]) -> Fitted:
        return await self._settle(partial(answer_calls, self._agent, batch, outcomes, self._policy, self._describe))

    async def _finish(
        self, batch: Batch, *, saved: bool = False, reported: bool = False, repeated: frozenset[int] = frozenset()
    ) -> ModelTurn | RunEnd | None:
        """Execute the calls that may run and save all results, unless the batch ends the run."""
        ending = batches.find_ending(batch, self._agent.approval_denial_policy)
        if ending is None and self._run.asks_with_calls:
            ending = await self._judge_model_call()
        if ending is not None:
            if not reported:
                await self._report(batches.skip_rest(batch, ending.reason))
            return self._stop(ending)
        planned = any(entry.may_run for entry in batch.calls)
        if not planned and not reported:
            await self._keep(batch)
        executed = await self._execute(batch, saved, repeated)
        if planned and executed.reached is None:
            await self._report(batches.complete_batch(batch, executed.results))
            self._unsaved = True
        return executed.reached

    async def _execute(self, batch: Batch, saved: bool, repeated: frozenset[int]) -> Executed:
        planned = batches.plan_calls(batch, self._agent, self._read)
        self._read = {}
        keys: Mapping[int, str] = {}
        if planned:
            await self._run.check_ready()
            events = self._take_events()
            try:
                keys = await self._journal.redeem(planned, events, None if saved else self._run.snapshot(batch))
            except OverLimit:
                self._events[:0] = events
                raise
            self._started_ms = monotonic_ms()
        return await self._run.execute(Execution(batch, planned, keys, repeated, self._journal, self._keep))

    async def _keep(self, batch: Batch) -> None:
        """Save the results of a completed batch before the model sees them."""
        await self._report(batch)
        await self._save()

    async def _save(self) -> None:
        await self._journal.checkpoint(self._run.snapshot(), self._take_events())
        self._unsaved = False

    async def _offer_undo(self, batch: Batch) -> Batch:
        """Let people undo the calls that ran under a veto; an attempt that is lost before it saves that repeats it."""
        vetoed = [entry for entry in batch.calls if entry.offers_undo]
        if not vetoed:
            return batch
        self._events += await self._journal.offer_undo(self._agent, vetoed)
        calls = (entry.model_copy(update={"veto": None}) if entry in vetoed else entry for entry in batch.calls)
        return batch.model_copy(update={"calls": tuple(calls)})

    async def _report(self, batch: Batch) -> None:
        latency_ms = monotonic_ms() - self._started_ms if self._started_ms is not None else 0.0
        self._started_ms = None
        batch, warnings = batches.fit_outputs(batch)
        self._events += (*warnings, *batches.report_batch(batch, latency_ms))
        batch = await self._offer_undo(batch)
        self._run.complete(batch)

    async def _judge_model_call(self) -> Ending | None:
        denied = await self._settle(partial(judging.judge_model_call, self._agent, self._policy, self._describe))
        if denied is None:
            return None
        ending, event = denied
        self._events.append(event)
        return ending

    async def _suspend(self, batch: Batch) -> RunSuspended[State]:
        if any(draft.tool.previews for draft in batch.drafts):
            batch = await preview_batch(self._agent, batch, self._now_ms())
        return RunSuspended(self._run.snapshot(batch), batch.drafts, self._take_events())

    def _stop(self, ending: Ending) -> RunEnd:
        result = self._run.summarise(ending.reason) if ending.status is RunStatus.DEGRADED else None
        return RunEnd(status=ending.status, result=result, error=ending.reason)

    def _exceed(self, exceeded: Exceeded, turn: ModelTurn | None = None) -> RunEnd:
        """End the run with its partial result; the calls of `turn` do not start."""
        reason = f"The run's budget is used up: {exceeded.budget} is {exceeded.limit:g}."
        data = {"message": reason, "budget": exceeded.budget, "limit": exceeded.limit}
        self._events.append(Event(type=EventType.WARNING, data=data))
        not_started = [call.name for call in turn.calls] if turn is not None else []
        return RunEnd(status=RunStatus.DEGRADED, result=self._run.summarise(reason, not_started), error=reason)

    def _take_events(self) -> tuple[Event, ...]:
        events = tuple(self._events)
        self._events.clear()
        return events
