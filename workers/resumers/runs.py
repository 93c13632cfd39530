"""Resume a run of an agent: drive it to its next suspension or its end."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import structlog

from sayso.core.canonical_json import JsonObject
from sayso.core.records.suspensions import SuspensionRecord
from sayso.errors import Conflict, InvalidInput, TooLarge, Unavailable
from sayso.runner.agents import Agent
from sayso.runner.loop import drive
from sayso.runner.protocol import AgentRun, FrameworkAgent, FrameworkState, RunSuspended
from sayso.runner.revalidation import Revalidation, carry_over
from sayso.runner.runs import FrameworkRun, ModelRun
from sayso.runner.transcripts import RunState
from sayso.timeline.external_events import fit_events
from sayso.timeline.merging import SourceFormat
from service.core.policy.evaluations import is_answer
from service.core.store.runs.external_events import ExternalEvent, ExternalEvents
from service.core.store.suspensions.saving import Saved
from service.core.wiring import Wiring
from workers.resume.journals import ReadState, RunStates, ask_in, describe_outcomes, find_agent, open_journal
from workers.resume.plans import LeasedRun, RunPlan, check_calls, read_batch

log = structlog.get_logger()

_MAX_EXTERNAL_EVENTS = 1000
"""Limit of external events per drive."""


async def resume(wiring: Wiring, agents: Mapping[str, Agent], leased_run: LeasedRun) -> None:
    """Drive the run and save where it stops. Raises the errors that the worker records on the run."""
    leased, fence, record = leased_run.saved, leased_run.fence, leased_run.saved.record
    agent = find_agent(agents, record)
    journal = await open_journal(wiring, leased, fence, leased_run.unclaimed)
    states = leased_run.states or RunStates(wiring.runs)
    plan = leased_run.plan if isinstance(leased_run.plan, RunPlan) else None
    state, checked = (plan.state, plan.checked) if plan else await _check(wiring, agent, leased_run, states)
    if checked.again and state.batch is not None and state.batch.drafts:
        drafts, events = carry_over(record, checked)
        waiting = state.model_copy(update={"batch": ask_in(state.batch, checked)})
        states.keep(await journal.suspend_again(record, drafts, waiting, events, record.step))
        return
    reached = await drive(
        _open_run(agent, record, state),
        policy=wiring.rules.policy(),
        journal=journal,
        outcomes=plan.outcomes if plan else describe_outcomes(record, checked, leased.now_ms),
        fits=is_answer,
        now_ms=leased.estimate_ms,
        answered=plan.answered if plan else None,
        settle=partial(wiring.desk.evaluations.judge, caller=record.id),
    )
    await _save_external(wiring, leased, reached.external_events)
    if isinstance(reached, RunSuspended):
        facts = {**record.run.facts, **agent.context}  # rules read them again if a reviewer edits the arguments
        update = {"run": record.run.model_copy(update={"facts": facts}), "progress": reached.state.progress}
        suspended = record.model_copy(update=update)
        states.keep(
            await journal.suspend_again(suspended, reached.drafts, reached.state, reached.events, reached.state.step)
        )
    else:
        await journal.settle(reached.end, reached.events)


async def _check(
    wiring: Wiring, agent: Agent, leased_run: LeasedRun, states: RunStates
) -> tuple[RunState | FrameworkState, Revalidation]:
    """Return the state of a run that has no plan yet, and its revalidated calls."""
    record = leased_run.saved.record
    state = await _read_state(record, agent, leased_run.state, states)
    return state, await check_calls(wiring, agent, leased_run.saved, wiring.desk.suspensions.recall)


def _open_run(agent: Agent, record: SuspensionRecord, state: RunState | FrameworkState) -> AgentRun[Any]:
    if isinstance(state, RunState):
        return ModelRun(agent, state, record.run)
    assert isinstance(agent, FrameworkAgent)  # noqa: S101  checked when its state was read
    return FrameworkRun(agent, record.run, state)


async def _read_state(
    record: SuspensionRecord, agent: Agent, read: ReadState | None, states: RunStates
) -> RunState | FrameworkState:
    """Return the saved state. A framework's run of its own process takes the suspension's items as its batch."""
    is_framework = record.resume.resumer != "runner"
    if is_framework and not isinstance(agent, FrameworkAgent):
        raise InvalidInput(f"{agent.name!r} is no agent of {record.origin.framework} here. Register the one that was.")
    raw = (read if read is not None and read.ref == record.state else await states.read(record)).raw
    if not is_framework:
        return RunState.model_validate_json(raw)
    state = FrameworkState.model_validate_json(raw)
    if state.native is None or state.batch is not None:
        return state
    return state.model_copy(update={"batch": read_batch(record)})


async def _save_external(wiring: Wiring, leased: Saved, events: Sequence[JsonObject]) -> None:
    """Add external events to the timeline, or log why not. Numbers derive from the lease's time, so they grow."""
    record, framework = leased.record, leased.record.origin.framework
    if not events or framework not in set(SourceFormat):
        return
    first = leased.now_ms * _MAX_EXTERNAL_EVENTS
    external_events = [
        ExternalEvent(first + place, None, event)
        for place, event in enumerate(fit_events(events[:_MAX_EXTERNAL_EVENTS]))
    ]
    try:
        await wiring.part(ExternalEvents).add(record.run.id, framework, framework, external_events)
    except (Conflict, TooLarge, Unavailable) as refusal:
        log.warning("external_events_not_saved", run=record.run.id, why=refusal.message)
