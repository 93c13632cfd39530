"""Plans for the calls of a suspension, made in the lease transition: which start, have ended, are asked again."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from pydantic import ValidationError

from sayso.core.policy.budgets import Deferred, Work, working
from sayso.core.policy.counters.charging import NO_READINGS
from sayso.core.policy.counters.readings import Readings, Wanted
from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.rules import Action
from sayso.core.records.freezes import Revocations
from sayso.core.records.items import Doubt, Item, ItemDraft
from sayso.core.records.suspensions import Intent, SuspensionRecord
from sayso.core.records.tools import ToolCall, ToolResult
from sayso.core.transitions.execution import Fence, forget_start
from sayso.core.transitions.permits import shows_effect
from sayso.errors import Unavailable
from sayso.runner import batches
from sayso.runner.agents import Agent
from sayso.runner.batches import Batch, BatchCall, Ending, Fitted, PlannedCall, Resumption
from sayso.runner.execution import plan_intent
from sayso.runner.loop import answer_calls
from sayso.runner.previews import renew_previews
from sayso.runner.revalidation import Revalidation, list_judged, list_starting, list_wanted, revalidate
from sayso.runner.transcripts import RunState, describe_run
from service.core.store.suspensions.saving import Saved
from service.core.wiring import Wiring
from workers.resume.journals import ReadState, RunStates, describe_outcomes


class CallPlan(NamedTuple):
    """The plan of a batch: asked again by `checked`, ended by `ending`, or the `planned` calls run."""

    checked: Revalidation
    batch: Batch
    ending: Ending | None = None
    planned: tuple[PlannedCall, ...] = ()


class RunPlan(NamedTuple):
    """The plan of a run's saved turn: its state, `checked` calls, their `outcomes`, and the batch with these."""

    state: RunState
    checked: Revalidation
    outcomes: Mapping[int, Resumption]
    answered: Fitted


class PlanInputs(NamedTuple):
    """What a plan is made of; without readings or state, calls that need them do not start within the lease."""

    agents: Mapping[str, Agent]
    policy: Policy
    revocations: Revocations
    readings: Readings = NO_READINGS
    state: ReadState | None = None


@dataclass(frozen=True)
class LeasedRun:
    """A leased run, its plan and state, if any; `unclaimed` calls have permits and are not started yet."""

    saved: Saved
    fence: Fence
    plan: CallPlan | RunPlan | None = None
    state: ReadState | None = None
    states: RunStates | None = None
    unclaimed: set[int] = field(default_factory=set)


def list_unclaimed(leased: Saved) -> set[int]:
    """Return the indexes of the calls that the lease's own commit journaled."""
    attempt = leased.record.lease.attempt if leased.record.lease is not None else 0
    return {intent.index for intent in leased.record.journal if intent.attempt == attempt}


class FirstPlan:
    """The plan made within the lease transition, once per application of it."""

    def __init__(self, inputs: PlanInputs) -> None:
        self._inputs = inputs
        self.made: CallPlan | RunPlan | None = None  # the plan that was made last
        self._lease: tuple[int, int] | None = None  # version and time of the record that holds the lease of the plan

    def plan(self, record: SuspensionRecord, fence: Fence, now_ms: int) -> tuple[Intent, ...]:
        """Return journal entries of the calls that start at once, if the record alone determines them."""
        self._lease = None
        agent = self._inputs.agents.get(record.run.agent)
        of_calls = record.resume.resumer == "calls" and record.state is None
        state = self._read_state(record) if record.resume.resumer == "runner" else None
        if agent is None or record.journal or not (of_calls or state):
            return ()
        if any(map(shows_effect, record.items)):  # their previews are renewed first
            return ()
        if self._inputs.revocations.find_withdrawal(record.run) is not None:
            return ()
        inputs = self._inputs
        try:
            with working(Work()):
                checked = revalidate(record, agent, inputs.policy, inputs.revocations, now_ms, inputs.readings)
                if state is None:
                    self.made = call_plan = plan_batch(agent, record, read_batch(record), checked, now_ms)
                    planned = call_plan.planned
                else:
                    self.made = run_plan = plan_run(agent, record, state, checked, inputs.policy, now_ms)
                    planned = list_first(agent, run_plan)
        except (Unavailable, Deferred):
            return ()  # a counter is not read yet, or a condition costs too much within a commit
        self._lease = (record.version + 1, now_ms)
        return tuple(plan_intent(record, fence, call, record.step) for call in planned)

    def _read_state(self, record: SuspensionRecord) -> RunState | None:
        """Return the state of a run that waits with a turn of its model, if it was read; its drive reports a fault."""
        read = self._inputs.state
        if read is None or read.ref != record.state or not record.items:
            return None
        try:
            return RunState.model_validate_json(read.raw)
        except ValidationError:
            return None

    def find(self, leased: Saved) -> CallPlan | RunPlan | None:
        """Return the plan that was committed with the lease, if any."""
        return self.made if self._lease == (leased.record.version, leased.record.updated_at_ms) else None


def confirm_handed(record: SuspensionRecord, inputs: PlanInputs, now_ms: int) -> CallPlan | RunPlan | None:
    """Return the plan of a handed run if all its journaled calls may start now, by this worker's rules and tools."""
    held, first = record.lease, FirstPlan(inputs)
    fence = Fence(held.holder, held.attempt, 0) if held is not None else Fence("", 0, 0)
    intents = first.plan(forget_start(record), fence, now_ms)
    begun = (intent.model_copy(update={"begun_at_ms": 0}) for intent in record.journal)
    return first.made if all(intent in intents for intent in begun) else None


def plan_batch(
    agent: Agent,
    record: SuspensionRecord,
    batch: Batch,
    checked: Revalidation,
    now_ms: int,
    finished: Mapping[int, ToolResult] = MappingProxyType({}),
    unfinished: Mapping[int, Doubt] = MappingProxyType({}),
) -> CallPlan:
    """Plan the suspended batch; earlier attempts have `finished` some of its calls or left them `unfinished`."""
    if checked.again:
        return CallPlan(checked, batch)
    batch = batches.complete_batch(batch, finished)
    fitted = batches.fit_calls(batches.answer_batch(batch, describe_outcomes(record, checked, now_ms)), agent)
    batch = batches.mark_unfinished(fitted.batch, unfinished, agent)
    ending = None if batch.drafts else batches.find_ending(batch, record.on_deny)
    if ending is not None:
        batch = batches.skip_rest(batch, ending.reason)
    return CallPlan(checked, batch, ending, batches.plan_calls(batch, agent, fitted.read))


def plan_run(
    agent: Agent, record: SuspensionRecord, state: RunState, checked: Revalidation, policy: Policy, now_ms: int
) -> RunPlan:
    """Plan the saved turn of a run of our own agent."""
    batch = state.batch or Batch(calls=(), started_step=state.step)
    outcomes = describe_outcomes(record, checked, now_ms)

    def describe() -> PolicyEvent:
        about = describe_run(state, record.run)
        return about.model_copy(update={"at_ms": now_ms}) if policy.reads_time else about

    return RunPlan(state, checked, outcomes, answer_calls(agent, batch, outcomes, policy, describe))


def list_first(agent: Agent, plan: RunPlan) -> tuple[PlannedCall, ...]:
    """Return the calls that `drive` starts first, without another event or judgement before them; none if unsure."""
    batch, read = plan.answered
    judged = plan.checked.again or any(entry.granted and entry.may_run for entry in batch.calls)
    if judged or batch.drafts or batches.warn_of_timeouts(batch, plan.outcomes):
        return ()
    if batches.find_ending(batch, agent.approval_denial_policy) is not None:
        return ()
    return batches.plan_calls(batch, agent, read)


async def check_calls(
    wiring: Wiring, agent: Agent, leased: Saved, recall: Callable[[Collection[Wanted]], Awaitable[Readings]]
) -> Revalidation:
    """Return the calls of a leased run as the rules judge them now."""
    record, now_ms, policy = leased.record, leased.now_ms, wiring.rules.policy()
    judge = partial(wiring.desk.evaluations.judge, caller=record.id)
    readings = await recall(await judge(partial(list_wanted, record, list_judged(record), policy, now_ms)))
    starting = list_starting(record)
    effects = await renew_previews(agent, starting, now_ms) if any(map(shows_effect, starting)) else {}
    about = (record, agent, policy, await wiring.revocation_cache.find(), now_ms, readings, effects)
    return await judge(partial(revalidate, *about))


def read_batch(record: SuspensionRecord) -> Batch:
    """Return the batch of a suspension's items."""
    return Batch(calls=tuple(map(_read_call, record.items)), started_step=record.step)


def _read_call(item: Item) -> BatchCall:
    draft = ItemDraft(
        kind=item.kind,
        call_id=item.call_id,
        index=item.index,
        tool=item.tool,
        target_arg=item.target_arg,
        judged_at_ms=item.judged_at_ms,
    )
    call = ToolCall(
        call_id=item.call_id, index=item.index, name=item.tool.name, args=item.tool.args, subagent=item.subagent
    )
    return BatchCall(call=call, action=Action.REQUEST_APPROVAL, reason=item.prompt.reason or "", ask=draft)
