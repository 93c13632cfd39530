"""Plan from a suspension's record what comes of its calls: what starts now, what has ended, what is asked again.

A plan is made inside the verb that takes the run up, so that the permits it needs are spent in that very commit; where
more than the record has to be read for it, it is made afterwards.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from sayso.policy.engine import Action, Policy
from sayso.records.items import Doubt, Item, ItemDraft
from sayso.records.revocations import Revocations
from sayso.records.suspensions import Intent, SuspensionRecord
from sayso.records.tool_calls import ToolCall, ToolResult
from sayso.runner.agents import Agent
from sayso.runner.batches import (
    Batch,
    BatchCall,
    Ending,
    PlannedCall,
    answer_batch,
    complete_batch,
    find_ending,
    fit_calls,
    mark_unfinished,
    plan_calls,
    skip_rest,
)
from sayso.runner.execution import plan_intent
from sayso.runner.revalidation import Revalidation, revalidate
from sayso.transitions.execution import Fence
from service.store.suspensions.saving import Saved
from workers.resume.journals import describe_outcomes


class CallPlan(NamedTuple):
    """What is to come of a batch: asked again as `checked` says, ended as `ending` says, or run as far as `planned`."""

    checked: Revalidation
    batch: Batch
    ending: Ending | None = None
    planned: tuple[PlannedCall, ...] = ()


class Known(NamedTuple):
    """What a worker knows before it takes a run up: the agents it has, the rules, and whom to trust no longer."""

    agents: Mapping[str, Agent]
    policy: Policy
    revocations: Revocations


class Taken(NamedTuple):
    """A run that a worker has taken up, by which lease, and the plan that was made of it then, where one was."""

    leased: Saved
    fence: Fence
    plan: CallPlan | None = None


class _Made(NamedTuple):
    version: int
    at_ms: int
    plan: CallPlan


class FirstPlan:
    """What a worker does first with a run that it takes up, planned whenever the verb that takes it is applied."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._made: _Made | None = None

    def plan(self, record: SuspensionRecord, fence: Fence, now_ms: int) -> tuple[Intent, ...]:
        """Return the calls that will start before anything else is done, as far as the record alone tells."""
        self._made = None
        agent = self._known.agents.get(record.run.agent)
        if agent is None or record.resume.resumer != "calls" or record.state is not None or record.journal:
            return ()
        if self._known.revocations.find_withdrawal(record.run) is not None:
            return ()
        checked = revalidate(record, agent, self._known.policy, self._known.revocations)
        plan = plan_batch(agent, record, read_asked(record), checked, now_ms)
        self._made = _Made(record.version, now_ms, plan)
        return tuple(plan_intent(record, fence, one, record.step) for one in plan.planned)

    def find(self, leased: Saved) -> CallPlan | None:
        """Return the plan that the commit rests on which took the run, or None where it rests on none, or another."""
        made, record = self._made, leased.record
        if made is None or (made.version + 1, made.at_ms) != (record.version, record.updated_at_ms):
            return None
        return made.plan


def plan_batch(
    agent: Agent,
    record: SuspensionRecord,
    asked: Batch,
    checked: Revalidation,
    now_ms: int,
    finished: Mapping[int, ToolResult] = MappingProxyType({}),
    unfinished: Mapping[int, Doubt] = MappingProxyType({}),
) -> CallPlan:
    """Return what is to come of the batch that was asked, of which earlier attempts have finished or begun some."""
    if checked.again:
        return CallPlan(checked, asked)
    known = complete_batch(asked, finished)
    fitted = fit_calls(answer_batch(known, describe_outcomes(record, checked, now_ms)), agent)
    batch = mark_unfinished(fitted.batch, unfinished, agent)
    ending = None if batch.drafts else find_ending(batch, record.on_deny)
    if ending is not None:
        batch = skip_rest(batch, ending.reason)
    return CallPlan(checked, batch, ending, plan_calls(batch, agent, fitted.read))


def read_asked(record: SuspensionRecord) -> Batch:
    """Return the batch that a suspension asked about."""
    return Batch(calls=tuple(map(_read_call, record.items)), started_step=record.step)


def _read_call(item: Item) -> BatchCall:
    ask = ItemDraft(kind=item.kind, call_id=item.call_id, index=item.index, tool=item.tool, target_arg=item.target_arg)
    call = ToolCall(
        call_id=item.call_id, index=item.index, name=item.tool.name, args=item.tool.args, subagent=item.subagent
    )
    return BatchCall(call=call, action=Action.REQUEST_APPROVAL, reason=item.prompt.reason or "", ask=ask)
