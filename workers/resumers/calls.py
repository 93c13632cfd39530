"""Resume a suspension of calls without a run loop: approved calls run here and their results end the run."""

from collections.abc import Mapping

from pydantic import JsonValue

from sayso.core.clock import monotonic_ms
from sayso.core.records.suspensions import RunEnd, RunStatus
from sayso.errors import OverLimit
from sayso.runner.agents import Agent
from sayso.runner.batches import Batch, complete_batch, fit_outputs, report_batch, results_of
from sayso.runner.execution import run_calls
from sayso.runner.revalidation import carry_over
from service.core.wiring import Wiring
from workers.resume.journals import DeskJournal, ask_in, find_agent, open_journal
from workers.resume.plans import CallPlan, LeasedRun, check_calls, plan_batch, read_batch


async def resume(wiring: Wiring, agents: Mapping[str, Agent], leased_run: LeasedRun) -> None:
    """Run approved calls and settle the run. Raises the errors that the worker records on the run."""
    record, fence = leased_run.saved.record, leased_run.fence
    agent = find_agent(agents, record)
    journal = await open_journal(wiring, leased_run.saved, fence, leased_run.unclaimed)
    plan, keys = await _begin(wiring, agent, leased_run, journal)
    if plan.checked.again:
        drafts, events = carry_over(record, plan.checked)
        batch = ask_in(plan.batch, plan.checked)
        await journal.suspend_again(record, drafts, batch, events, record.step)
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
    plan = leased_run.plan if isinstance(leased_run.plan, CallPlan) else None
    while True:
        plan = plan or await _plan(wiring, agent, leased_run, journal)
        if plan.checked.again or not plan.planned:
            return plan, {}
        try:
            return plan, await journal.redeem(plan.planned, (), None)
        except OverLimit:
            plan = None


async def _plan(wiring: Wiring, agent: Agent, leased_run: LeasedRun, journal: DeskJournal) -> CallPlan:
    record, now_ms = leased_run.saved.record, leased_run.saved.now_ms
    checked = await check_calls(wiring, agent, leased_run.saved, journal.recall)
    batch = read_batch(record)
    if record.state is not None:  # a suspension about a call in doubt has saved the other results
        batch = Batch.model_validate_json(await wiring.runs.state(record.run.id, record.state))
    return plan_batch(agent, record, batch, checked, now_ms, journal.finished(), journal.unfinished())
