"""Run the calls of a suspension that an agent asked for from outside: what was approved runs here, and that is all.

There is no model to go on with. The run ends with how each call ended.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from sayso.clock import monotonic_ms
from sayso.records.suspensions import RunEnd, RunStatus, SuspensionRecord
from sayso.runner.agents import Agent
from sayso.runner.batches import Batch, complete_batch, fit_outputs, report_batch, results_of
from sayso.runner.execution import run_calls
from sayso.runner.revalidation import carry_over, revalidate
from service.wiring import Wiring
from workers.resume.journals import DeskJournal, ask_in, find_agent, open_journal, seal
from workers.resume.outages import next_step, through_outages
from workers.resume.plans import CallPlan, Taken, plan_batch, read_asked


async def resume(wiring: Wiring, agents: Mapping[str, Agent], taken: Taken) -> None:
    """Run what was approved and settle the run. Raises what the worker is to show on the run."""
    record, fence = taken.leased.record, taken.fence
    agent = find_agent(agents, record)
    journal = await open_journal(wiring, taken.leased, fence)
    plan = taken.plan or await _plan(wiring, agent, taken, journal)
    if plan.checked.again:
        drafts, told = carry_over(record, plan.checked)
        sealed = seal(ask_in(plan.batch, plan.checked))
        await wiring.desk.suspend_again(record, fence, drafts, sealed, told, record.step)
        return
    batch, ending, began_ms = plan.batch, plan.ending, monotonic_ms()
    if plan.planned:
        keys = await journal.redeem(plan.planned, (), None)
        results = await run_calls(agent, record.run.id, plan.planned, keys, journal, journal.unfinished())
        batch = complete_batch(batch, results)
    batch, warnings = fit_outputs(batch)
    if batch.drafts:
        last, sealed = next_step(fence), seal(batch)
        await through_outages(
            lambda: wiring.desk.suspend_again(record, last, batch.drafts, sealed, warnings, record.step)
        )
        return
    events = (*warnings, *report_batch(batch, monotonic_ms() - began_ms))
    result: JsonValue = {"calls": [one.model_dump(mode="json") for one in results_of(batch)]}
    status, error = (ending.status, ending.reason) if ending else (RunStatus.COMPLETED, None)
    await journal.settle(RunEnd(status=status, result=result, error=error), events)


async def _plan(wiring: Wiring, agent: Agent, taken: Taken, journal: DeskJournal) -> CallPlan:
    """Return the plan of a run of which more is to be known than its record tells."""
    record, now_ms = taken.leased.record, taken.leased.now_ms
    checked = revalidate(record, agent, wiring.rules.policy(), await wiring.revocation_cache.find())
    asked = await _read_batch(wiring, record)
    return plan_batch(agent, record, asked, checked, now_ms, journal.finished(), journal.unfinished())


async def _read_batch(wiring: Wiring, record: SuspensionRecord) -> Batch:
    """Return the batch as it was asked; after a doubt, with what was known already."""
    if record.state is not None:
        return Batch.model_validate_json(await wiring.runs.state(record.run.id, record.state))
    return read_asked(record)
