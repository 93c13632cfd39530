"""Drive a run of another framework from where it stands to its next pause or its end.

The framework asks its model and runs its tools; here its calls are judged, put to people and written down, and what
they came to is saved before the framework sees it. So a run that is taken up anew runs nothing twice.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.clock import now_ms
from sayso.errors import InvalidInput
from sayso.policy.engine import Policy, PolicyEvent
from sayso.records.events import Event
from sayso.records.items import Doubt, ItemDraft
from sayso.records.run_state import check_state
from sayso.records.suspensions import RunEnd, RunRef, RunStatus
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
from sayso.runner.protocol import Asked, Done, FrameworkAgent, FrameworkState, Gate, open_gate, read_turn
from sayso.runner.tools import CallContext
from sayso.runner.transcripts import report_turn


class FrameworkJournal(Protocol):
    """Where a run saves what it is about to do and what it has done. What it raises ends the driving at once."""

    async def redeem(
        self, calls: Sequence[PlannedCall], events: Sequence[Event], state: FrameworkState | None
    ) -> Mapping[int, str]:
        """Save which calls are about to start, with the state they start from unless it is saved already."""
        ...

    async def confirm(self) -> None:
        """Make sure, right before a call starts, that the run is still in the same hands; raises where it is not."""
        ...

    async def return_permits(self, unused: Collection[int]) -> None:
        """Return the permits of journalled calls that never began, by index."""
        ...

    async def checkpoint(self, state: FrameworkState, events: Sequence[Event]) -> None:
        """Save how far the run has come; no call is under way."""
        ...

    def unfinished(self) -> Mapping[int, Doubt]:
        """Return the calls of the saved batch that were begun before and of which no result was saved."""
        ...


@dataclass(frozen=True)
class FrameworkSuspension:
    """The run waits for people. State and events are not saved yet."""

    state: FrameworkState
    drafts: tuple[ItemDraft, ...]
    events: tuple[Event, ...]
    told: tuple[JsonObject, ...] = ()


@dataclass(frozen=True)
class FrameworkEnd:
    """The run is over; that is not saved yet."""

    end: RunEnd
    events: tuple[Event, ...]
    told: tuple[JsonObject, ...] = ()


async def drive_framework(
    agent: FrameworkAgent,
    run: RunRef,
    state: FrameworkState,
    outcomes: Mapping[int, Resumption],
    *,
    policy: Policy,
    journal: FrameworkJournal,
    fits: Fits = is_offered,
) -> FrameworkSuspension | FrameworkEnd:
    """Drive the run until it has to ask people or ends; `outcomes` are the answers to what it asked, by call index.

    A headless agent's fallback gives a value only where it `fits`.

    Raises what the journal and the framework raise; with what is saved by then the run can be driven anew.
    """
    check_origin(agent, state)
    return await _Drive(agent, run, state, policy, journal, fits).go(outcomes)


def check_origin(agent: FrameworkAgent, state: FrameworkState) -> None:
    """Raise `InvalidInput` for a state that another agent, another framework or another adapter has written."""
    origin = agent.framework.origin
    written = (state.agent, state.framework, state.state_schema)
    expected = (agent.name, origin.framework, origin.state_schema)
    if written != expected:
        raise InvalidInput(
            f"The run's state is of {' / '.join(written)}; this worker's agent goes on from {' / '.join(expected)} "
            "alone. Run the version that wrote it."
        )


class _Drive:
    """One stretch of a run, up to its next rest. `_events` are those that are not saved yet."""

    def __init__(
        self,
        agent: FrameworkAgent,
        run: RunRef,
        state: FrameworkState,
        policy: Policy,
        journal: FrameworkJournal,
        fits: Fits,
    ) -> None:
        self._agent = agent
        self._fits = fits
        self._run = run
        self._state = state
        self._policy = policy
        self._journal = journal
        self._events: list[Event] = []
        self._told: list[JsonObject] = []

    async def go(self, outcomes: Mapping[int, Resumption]) -> FrameworkSuspension | FrameworkEnd:
        reached: Asked | Done | FrameworkSuspension | FrameworkEnd
        if self._state.batch is not None:
            reached = await self._take_up(self._state.batch, outcomes)
        elif denied := judge_model_call(self._agent, self._policy, self._describe()):
            reached = self._deny_model(*denied)
        else:
            with open_gate(None):
                reached = await self._agent.framework.begin(self._state.text)
        while isinstance(reached, Asked | Done):
            self._told += reached.told
            reached = await self._judge(reached) if isinstance(reached, Asked) else self._complete(reached)
        return replace(reached, told=tuple(self._told))

    async def _take_up(
        self, batch: Batch, outcomes: Mapping[int, Resumption]
    ) -> Asked | Done | FrameworkSuspension | FrameworkEnd:
        """Go on with the batch that was saved: with the answers to what it asked, or after a worker was lost."""
        unfinished = self._journal.unfinished()
        told = all(one.result is not None for one in batch.calls)
        if not unfinished and not told:
            self._events += warn_of_timeouts(batch, outcomes)
        doubted = doubt_unfinished(self._answer(batch, outcomes), unfinished, self._agent)
        if doubted.drafts:
            return self._pause(doubted)
        return await self._go_on(doubted, saved=True, told=told, repeated=frozenset(unfinished))

    async def _judge(self, asked: Asked) -> Asked | Done | FrameworkSuspension | FrameworkEnd:
        """Judge all calls of a turn; then it waits for people, or goes on."""
        check_state(asked.native)
        turn = read_turn(asked)
        update = {"native": asked.native, "unseen": asked.unseen, "step": self._state.step + 1, "batch": None}
        self._state = self._state.model_copy(update=update)
        batch, events = judge_turn(self._agent, turn, self._policy, self._describe())
        self._events += (*report_turn(turn), *events)
        if batch.drafts and find_ending(batch, self._agent.approval_denial_policy) is None:
            if self._agent.interaction == "desk":
                return self._pause(batch)
            agent = self._agent
            answers = fall_back(batch.drafts, agent.approval_fallback, agent.input_fallback, now_ms(), self._fits)
            batch = self._answer(batch, answers)
        return await self._go_on(batch)

    async def _go_on(
        self, batch: Batch, *, saved: bool = False, told: bool = False, repeated: frozenset[int] = frozenset()
    ) -> Asked | Done | FrameworkEnd:
        """Let the framework run what may run, written down first, and go on from there."""
        ending = find_ending(batch, self._agent.approval_denial_policy)
        if ending is None and (denied := judge_model_call(self._agent, self._policy, self._describe())):
            ending, event = denied  # the framework asks its model by itself, as soon as it goes on
            self._events.append(event)
            if told:
                return self._stop(ending)
        if ending is not None:
            self._events += report_batch(skip_rest(batch, ending.reason), 0.0)
            return self._stop(ending)
        contexts: dict[int, CallContext] = {}
        if planned := plan_calls(batch, self._agent):
            await self._check_way()
            keys = await self._journal.redeem(planned, self._take_events(), None if saved else self._now(batch))
            contexts = {index: self._context(batch, index, key, repeated) for index, key in keys.items()}
        elif not told:
            await self._keep(batch)
        gate = Gate(batch, contexts, self._keep, self._state.unseen, self._journal.confirm)
        assert self._state.native is not None  # noqa: S101  a batch comes with the state it stopped in
        with open_gate(gate):
            try:
                reached = await self._agent.framework.go_on(self._state.native, gate)
            except Exception as error:
                fault = gate.fault or error
                await self._return_unused(gate, self._state.batch or batch, fault, repeated)
                raise fault from error
        await gate.close()
        return reached

    async def _return_unused(self, gate: Gate, batch: Batch, fault: Exception, repeated: frozenset[int]) -> None:
        """Return the permits of calls that the framework never began, and save the results of those that ended.

        A call that is `repeated` may have begun under an earlier attempt.
        """
        planned, results, began = gate.abandon(fault)
        unused = planned - began - repeated
        if not unused:
            return
        await self._journal.return_permits(unused)
        if results and planned == unused | results.keys():
            await self._journal.checkpoint(self._now(complete_batch(batch, results)), self._take_events())

    async def _check_way(self) -> None:
        """See that the framework can go on before any leave is spent."""
        assert self._state.native is not None  # noqa: S101  a batch comes with the state it stopped in
        hindrance = await self._agent.framework.find_hindrance(self._state.native)
        if hindrance is not None:
            raise InvalidInput(hindrance)

    async def _keep(self, batch: Batch) -> None:
        """Save what the calls came to, before the framework does anything with it."""
        fitted, warnings = fit_outputs(batch)
        latency_ms = max((one.latency_ms or 0 for one in results_of(fitted)), default=0)
        self._events += (*warnings, *report_batch(fitted, latency_ms))
        await self._journal.checkpoint(self._now(fitted), self._take_events())

    def _context(self, batch: Batch, index: int, key: str, repeated: frozenset[int]) -> CallContext:
        call_id = next(one.call.call_id for one in batch.calls if one.call.index == index)
        return CallContext(self._run.id, call_id, key, 2 if index in repeated else 1)

    def _answer(self, batch: Batch, outcomes: Mapping[int, Resumption]) -> Batch:
        answered = check_tools(answer_batch(batch, outcomes), self._agent)
        return deny_changed(self._agent, answered, self._policy, self._describe())

    def _describe(self) -> PolicyEvent:
        run = self._run
        return PolicyEvent(
            run_id=run.id,
            thread_id=run.thread_id,
            step=self._state.step,
            agent=run.agent,
            context=run.facts,
            claimed=run.claimed,
        )

    def _deny_model(self, ending: Ending, event: Event) -> FrameworkEnd:
        self._events.append(event)
        return self._stop(ending)

    def _pause(self, batch: Batch) -> FrameworkSuspension:
        return FrameworkSuspension(self._now(batch), batch.drafts, self._take_events())

    def _complete(self, done: Done) -> FrameworkEnd:
        return FrameworkEnd(RunEnd(status=done.status, result=done.result, error=done.error), self._take_events())

    def _stop(self, ending: Ending) -> FrameworkEnd:
        partial: JsonValue = {"reason": ending.reason} if ending.status is RunStatus.DEGRADED else None
        return FrameworkEnd(RunEnd(status=ending.status, result=partial, error=ending.reason), self._take_events())

    def _now(self, batch: Batch) -> FrameworkState:
        return self._state.model_copy(update={"batch": batch})

    def _take_events(self) -> tuple[Event, ...]:
        events = tuple(self._events)
        self._events.clear()
        return events
