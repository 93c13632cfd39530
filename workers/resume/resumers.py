"""Resume a leased suspension: drive its agent's run on, or run the approved calls of a client. The table selects it."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

import structlog
from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import monotonic_ms
from sayso.core.records.suspensions import RunEnd, RunStatus, SuspensionRecord
from sayso.errors import Conflict, InvalidInput, OverLimit, TooLarge, Unavailable
from sayso.runner.agents import Agent
from sayso.runner.batches import Batch, complete_batch, fit_outputs, report_batch, results_of
from sayso.runner.execution import run_calls
from sayso.runner.loop import drive
from sayso.runner.protocol import AgentRun, FrameworkAgent, FrameworkState, RunSuspended
from sayso.runner.revalidation import carry_over
from sayso.runner.runs import FrameworkRun, ModelRun
from sayso.runner.transcripts import RunState
from sayso.timeline.external_events import fit_events
from sayso.timeline.merging import SourceFormat
from service.core.policy.evaluations import is_answer
from service.core.store.runs.external_events import ExternalEvent, ExternalEvents
from service.core.store.suspensions.saving import Saved
from service.core.wiring import Wiring
from workers.resume.journals import (
    DeskJournal,
    ReadState,
    RunStates,
    ask_in,
    describe_outcomes,
    find_agent,
    open_journal,
)
from workers.resume.plans import CallPlan, LeasedRun, RunPlan, check_calls, plan_batch, read_batch
from workers.resume.reversals import resume_undo

log = structlog.get_logger()

_MAX_EXTERNAL_EVENTS = 1000  # limit of external events per drive


async def resume_run(wiring: Wiring, agents: Mapping[str, Agent], leased_run: LeasedRun) -> None:
    """Drive the run and save where it stops. Raises the errors that the worker records on the run."""
    leased, fence, record = leased_run.saved, leased_run.fence, leased_run.saved.record
    agent = find_agent(agents, record)
    journal = await open_journal(wiring, leased, fence, leased_run.unclaimed)
    states = leased_run.states or RunStates(wiring.runs)
    plan = leased_run.plan if isinstance(leased_run.plan, RunPlan) else None
    state: RunState | FrameworkState
    if plan is not None:
        state, checked = plan.state, plan.checked
    else:
        state = await _read_state(record, agent, leased_run.state, states)
        checked = await check_calls(wiring, agent, leased, wiring.desk.suspensions.recall)
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


async def resume_calls(wiring: Wiring, agents: Mapping[str, Agent], leased_run: LeasedRun) -> None:
    """Run approved calls and settle the run. Raises the errors that the worker records on the run."""
    record, fence = leased_run.saved.record, leased_run.fence
    agent = find_agent(agents, record)
    journal = await open_journal(wiring, leased_run.saved, fence, leased_run.unclaimed)
    plan, keys = await _begin(wiring, agent, leased_run, journal)
    if plan.checked.again:
        drafts, events = carry_over(record, plan.checked)
        await journal.suspend_again(record, drafts, ask_in(plan.batch, plan.checked), events, record.step)
        return
    batch, ending, began_ms = plan.batch, plan.ending, monotonic_ms()
    if plan.planned:
        results = await run_calls(agent, record.run.id, plan.planned, keys, journal, journal.unfinished())
        batch = complete_batch(batch, results)
    batch, warnings = fit_outputs(batch)
    if batch.drafts:
        await journal.suspend_again(record, batch.drafts, batch, warnings, record.step)
        return
    events = (*warnings, *report_batch(batch, monotonic_ms() - began_ms))
    result: JsonValue = {"calls": [result.model_dump(mode="json") for result in results_of(batch)]}
    status, error = (ending.status, ending.reason) if ending else (RunStatus.COMPLETED, None)
    await journal.settle(RunEnd(status=status, result=result, error=error), events)


async def _begin(
    wiring: Wiring, agent: Agent, leased_run: LeasedRun, journal: DeskJournal
) -> tuple[CallPlan, Mapping[int, str]]:
    """Return the plan, and the keys of its calls, whose permits are then redeemed; judge again over a limit."""
    record, now_ms = leased_run.saved.record, leased_run.saved.now_ms
    plan = leased_run.plan if isinstance(leased_run.plan, CallPlan) else None
    while True:
        if plan is None:
            checked = await check_calls(wiring, agent, leased_run.saved, journal.recall)
            batch = read_batch(record)
            if record.state is not None:  # a suspension about a call in doubt has saved the other results
                batch = Batch.model_validate_json(await wiring.runs.state(record.run.id, record.state))
            plan = plan_batch(agent, record, batch, checked, now_ms, journal.finished(), journal.unfinished())
        if plan.checked.again or not plan.planned:
            return plan, {}
        try:
            return plan, await journal.redeem(plan.planned, (), None)
        except OverLimit:
            plan = None


Resumer = Callable[[Wiring, Mapping[str, Agent], LeasedRun], Coroutine[Any, Any, None]]

FRAMEWORKS = (
    "afk",
    "agent_framework",
    "autogen",
    "crewai",
    "google_adk",
    "langgraph",
    "openai_agents",
    "parsimony",
    "pydantic_ai",
)
"""Frameworks whose agents a worker drives; each has an adapter in `sayso/adapters/`."""

RESUMERS: Mapping[str, Resumer] = {
    "runner": resume_run,
    "calls": resume_calls,
    "undo": resume_undo,
    **dict.fromkeys(FRAMEWORKS, resume_run),
}
"""`resume.resumer` of a suspension -> function that resumes it."""
