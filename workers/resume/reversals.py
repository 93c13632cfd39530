"""Undo a call that ran under a veto, once a person has pressed for it: under a lease and a permit, as any call runs."""

from collections.abc import Mapping
from types import MappingProxyType

import structlog
from pydantic import JsonValue

from sayso.core.clock import monotonic_ms
from sayso.core.policy.rules import Action
from sayso.core.records.events import Event
from sayso.core.records.items import Item, ItemDraft
from sayso.core.records.suspensions import RunEnd, RunStatus, SuspensionRecord
from sayso.core.records.tools import ToolCall
from sayso.core.records.undoing import UndoneCall
from sayso.core.transitions.freezing import check_start
from sayso.core.transitions.second_look import Undone
from sayso.errors import NotFound
from sayso.runner.agents import Agent
from sayso.runner.batches import Batch, BatchCall, complete_batch, fit_outputs, report_batch
from sayso.runner.execution import run_calls
from sayso.runner.revalidation import Revalidation
from sayso.runner.reversals import make_undoing
from service.core.wiring import Wiring
from workers.resume.journals import DeskJournal, RunStates, find_agent, open_journal
from workers.resume.outages import through_outages
from workers.resume.plans import LeasedRun, plan_batch

log = structlog.get_logger()

_UNCHECKED = Revalidation(MappingProxyType({}), MappingProxyType({}), MappingProxyType({}))
_BY_HAND = "Undo it by hand."


async def resume_undo(wiring: Wiring, agents: Mapping[str, Agent], leased_run: LeasedRun) -> None:
    """Undo the call if a person decided so, and settle the run. Raises the errors that the worker records on it."""
    leased, record = leased_run.saved, leased_run.saved.record
    item = record.items[0]
    reversal = item.reverses
    if reversal is None:
        raise NotFound("This suspension names no call to undo.")
    undoing = make_undoing(find_agent(agents, record), reversal)
    journal = await open_journal(wiring, leased, leased_run.fence, leased_run.unclaimed)
    exact = UndoneCall.model_validate_json((await (leased_run.states or RunStates(wiring.runs)).read(record)).raw)
    finished, unfinished = journal.finished(), journal.unfinished()
    plan = plan_batch(undoing, record, _read_batch(record), _UNCHECKED, leased.now_ms, finished, unfinished)
    batch, began_ms = plan.batch, monotonic_ms()
    if plan.planned:
        check_start(await wiring.freezes.known(), record, item.tools, leased.now_ms)
        keys = await journal.redeem(plan.planned, (), None)
        args = exact.model_dump(mode="json")
        planned = [entry._replace(call=entry.call.model_copy(update={"args": args})) for entry in plan.planned]
        batch = complete_batch(batch, await run_calls(undoing, record.run.id, planned, keys, journal, unfinished))
    batch, warnings = fit_outputs(batch)
    if batch.drafts:
        wanted = reversal.model_copy(update={"by": item.outcome.by}) if item.outcome is not None else reversal
        drafts = tuple(draft.model_copy(update={"reverses": wanted}) for draft in batch.drafts)
        await journal.suspend_again(record, drafts, exact, warnings, record.step)
        return
    await _settle(wiring, journal, record, batch, (*warnings, *report_batch(batch, monotonic_ms() - began_ms)))


async def _settle(
    wiring: Wiring, journal: DeskJournal, record: SuspensionRecord, batch: Batch, events: tuple[Event, ...]
) -> None:
    """Save how the undo ended, first on the run of its call, so that a worker lost in between does the same again."""
    entry, item = batch.calls[0], record.items[0]
    undone = _describe(record, item, entry)
    if undone is not None:
        if entry.result is not None and entry.result.latency_ms is not None:
            await journal.note_results({entry.call.index: entry.result})
        try:
            await through_outages(lambda: wiring.desk.note_undone(undone))
        except NotFound as gone:
            log.info("undone_run_gone", suspension=record.id, why=gone.message)
    await journal.settle(_end(undone), events)


def _describe(record: SuspensionRecord, item: Item, entry: BatchCall) -> Undone | None:
    """Return how the undo ended; None if nobody wanted the call undone."""
    outcome, result, reversal = item.outcome, entry.result, item.reverses
    if outcome is None or result is None or reversal is None or not (outcome.may_run or item.doubt is not None):
        return None
    unknown = item.doubt is not None and result.latency_ms is None and not result.success
    return Undone(reversal, None if unknown else result.success, result.error, reversal.by or outcome.by, record.id)


def _read_batch(record: SuspensionRecord) -> Batch:
    item = record.items[0]
    draft = ItemDraft(kind=item.kind, call_id=item.call_id, index=item.index, tool=item.tool, doubt=item.doubt)
    call = ToolCall(call_id=item.call_id, index=item.index, name=item.tool.name, args=item.tool.args)
    entry = BatchCall(call=call, action=Action.REQUEST_APPROVAL, reason=item.prompt.reason or "", ask=draft)
    return Batch(calls=(entry,), started_step=record.step)


def _end(undone: Undone | None) -> RunEnd:
    if undone is None:
        return RunEnd(status=RunStatus.COMPLETED, result={"undone": False})
    result: JsonValue = {"undone": undone.success}
    if undone.success:
        return RunEnd(status=RunStatus.COMPLETED, result=result)
    why = f"The undo failed. {_BY_HAND}" if undone.success is False else f"It may have been undone or not. {_BY_HAND}"
    return RunEnd(status=RunStatus.FAILED, result=result, error=f"{why} {undone.error or ''}".strip())
