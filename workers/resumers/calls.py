"""Run the calls of a suspension that an agent asked for from outside: what was approved runs here, and that is all.

There is no model to go on with. The run ends with how each call ended.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from sayso.agents import Agent
from sayso.batches import (
    Batch,
    BatchCall,
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
)
from sayso.clock import monotonic_ms
from sayso.policies import Action
from sayso.rechecks import Recheck, carry_over, recheck
from sayso.requests import Ask, Item
from sayso.resumptions import Fence
from sayso.runs import run_calls
from sayso.suspensions import Intent, RunEnd, RunStatus, SuspensionRecord
from sayso.tool_calls import ToolCall
from service.store.suspensions import Saved
from service.wiring import Wiring
from workers.journals import ask_in, find_agent, open_journal, plan_call, seal, tell_outcomes
from workers.outages import next_step, through_outages


async def resume(wiring: Wiring, agents: Mapping[str, Agent], leased: Saved, fence: Fence) -> None:
    """Run what was approved and settle the run. Raises what the worker is to show on the run."""
    record = leased.record
    agent = find_agent(agents, record)
    journal = await open_journal(wiring, leased, fence)
    checked = recheck(record, agent, wiring.rulebook.refresh(), await wiring.standings.find(record.tenant))
    asked = await _read_batch(wiring, record)
    if checked.again:
        asks, told = carry_over(record, checked)
        await wiring.desk.suspend_again(record, fence, asks, seal(ask_in(asked, checked)), told, record.step)
        return
    known = complete_batch(asked, journal.finished())
    answered = check_tools(answer_batch(known, tell_outcomes(record, checked, leased.now_ms)), agent)
    batch = doubt_unfinished(answered, journal.unfinished(), agent)
    ending = None if batch.asks else find_ending(batch, record.on_deny)
    if ending is not None:
        batch = skip_rest(batch, ending.reason)
    planned, began_ms = plan_calls(batch, agent), monotonic_ms()
    if planned:
        keys = await journal.redeem(planned, (), None)
        results = await run_calls(agent, record.run.id, planned, keys, journal, journal.unfinished())
        batch = complete_batch(batch, results)
    batch, warnings = fit_outputs(batch)
    if batch.asks:
        last, sealed = next_step(fence), seal(batch)
        await through_outages(
            lambda: wiring.desk.suspend_again(record, last, batch.asks, sealed, warnings, record.step)
        )
        return
    events = (*warnings, *report_batch(batch, monotonic_ms() - began_ms))
    result: JsonValue = {"calls": [one.model_dump(mode="json") for one in results_of(batch)]}
    status, error = (ending.status, ending.reason) if ending else (RunStatus.COMPLETED, None)
    await journal.settle(RunEnd(status=status, result=result, error=error), events)


def plan_first(
    agent: Agent, checked: Recheck, record: SuspensionRecord, fence: Fence, now_ms: int
) -> tuple[Intent, ...]:
    """Return the calls that the worker will start first: everything approved, unless an earlier attempt began some."""
    if record.state is not None or record.journal or checked.again:
        return ()
    batch = check_tools(answer_batch(_batch_of(record), tell_outcomes(record, checked, now_ms)), agent)
    if find_ending(batch, record.on_deny) is not None:
        return ()
    return tuple(plan_call(record, fence, planned, record.step) for planned in plan_calls(batch, agent))


async def _read_batch(wiring: Wiring, record: SuspensionRecord) -> Batch:
    """Return the batch as it was asked; after a doubt, with what was known already."""
    if record.state is not None:
        return Batch.model_validate_json(await wiring.runs.state(record.tenant, record.run.id, record.state))
    return _batch_of(record)


def _batch_of(record: SuspensionRecord) -> Batch:
    return Batch(calls=tuple(map(_as_call, record.items)), started_step=record.step)


def _as_call(item: Item) -> BatchCall:
    ask = Ask(kind=item.kind, call_id=item.call_id, index=item.index, tool=item.tool, target_arg=item.target_arg)
    call = ToolCall(call_id=item.call_id, index=item.index, name=item.tool.name, args=item.tool.args)
    return BatchCall(call=call, action=Action.REQUEST_APPROVAL, reason=item.prompt.reason or "", ask=ask)
