"""Resume a run of an agent: drive it to its next suspension or its end."""

from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from sayso.canonical_json import JsonObject
from sayso.errors import Conflict, InvalidInput, TooLarge, Unavailable
from sayso.records.suspensions import SuspensionRecord
from sayso.runner.agents import Agent
from sayso.runner.loop import drive
from sayso.runner.protocol import AgentRun, FrameworkAgent, FrameworkState, RunSuspended
from sayso.runner.revalidation import carry_over, list_judged, list_wanted, revalidate
from sayso.runner.runs import FrameworkRun, ModelRun
from sayso.runner.transcripts import RunState
from sayso.timeline.limits import fit_events
from sayso.timeline.sources import SourceFormat
from service.policy.schemas import is_answer
from service.store.runs.external_events import ExternalEvent
from service.store.suspensions.saving import Saved
from service.wiring import Wiring
from workers.resume.journals import ask_in, describe_outcomes, find_agent, open_journal, suspend_again
from workers.resume.plans import LeasedRun, read_batch

log = structlog.get_logger()

_MAX_EXTERNAL_EVENTS = 1000
"""Limit of external events per drive."""


async def resume(wiring: Wiring, agents: Mapping[str, Agent], leased_run: LeasedRun) -> None:
    """Drive the run and save where it stops. Raises the errors that the worker records on the run."""
    leased, fence, record = leased_run.saved, leased_run.fence, leased_run.saved.record
    agent = find_agent(agents, record)
    journal = await open_journal(wiring, leased, fence, leased_run.unclaimed)
    state = await _read_state(wiring, record, agent)
    policy = wiring.rules.policy()
    readings = await wiring.desk.suspensions.recall(list_wanted(record, list_judged(record), policy, leased.now_ms))
    checked = revalidate(record, agent, policy, await wiring.revocation_cache.find(), leased.now_ms, readings)
    if checked.again and state.batch is not None and state.batch.drafts:
        await journal.return_unclaimed()
        drafts, events = carry_over(record, checked)
        waiting = state.model_copy(update={"batch": ask_in(state.batch, checked)})
        await suspend_again(wiring, record, fence, drafts, waiting, events, record.step)
        return
    outcomes = describe_outcomes(record, checked, leased.now_ms)
    reached = await drive(
        _open_run(agent, record, state),
        policy=policy,
        journal=journal,
        outcomes=outcomes,
        fits=is_answer,
        now_ms=leased.estimate_ms,
    )
    await _save_external(wiring, leased, reached.external_events)
    if isinstance(reached, RunSuspended):
        facts = {**record.run.facts, **agent.context}  # rules read them again if a reviewer edits the arguments
        drafts, state, events = reached.drafts, reached.state, reached.events
        update = {"run": record.run.model_copy(update={"facts": facts}), "progress": state.progress}
        suspended = record.model_copy(update=update)
        await suspend_again(wiring, suspended, fence, drafts, state, events, state.step)
    else:
        await journal.settle(reached.end, reached.events)


def _open_run(agent: Agent, record: SuspensionRecord, state: RunState | FrameworkState) -> AgentRun[Any]:
    if isinstance(state, RunState):
        return ModelRun(agent, state, record.run)
    assert isinstance(agent, FrameworkAgent)  # noqa: S101  checked when its state was read
    return FrameworkRun(agent, record.run, state)


async def _read_state(wiring: Wiring, record: SuspensionRecord, agent: Agent) -> RunState | FrameworkState:
    """Return the saved state. A framework's run of its own process takes the suspension's items as its batch."""
    assert record.state is not None  # noqa: S101  always saved with its state
    is_framework = record.resume.resumer != "runner"
    if is_framework and not isinstance(agent, FrameworkAgent):
        raise InvalidInput(f"{agent.name!r} is no agent of {record.origin.framework} here. Register the one that was.")
    raw = await wiring.runs.state(record.run.id, record.state)
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
        await wiring.external_events.add(record.run.id, framework, framework, external_events)
    except (Conflict, TooLarge, Unavailable) as refusal:
        log.warning("external_events_not_saved", run=record.run.id, why=refusal.message)
