"""Batches: all calls of one model turn, from judgement to result. Nothing changes a call that has its result."""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from pydantic import BaseModel, Field, JsonValue

from sayso.core.canonical_json import Around, JsonObject, check_json
from sayso.core.policy.rules import Action
from sayso.core.records.base import Immutable, is_empty
from sayso.core.records.decisions import COVERED, ActorKind, Outcome, Verdict
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Doubt, ItemDraft
from sayso.core.records.judgements import Charge
from sayso.core.records.suspensions import RunStatus
from sayso.core.records.terms import RuleTerms
from sayso.core.records.tools import ToolCall, ToolResult
from sayso.core.transitions.permits import Choice, put_in_doubt, read_choice
from sayso.errors import TooLarge
from sayso.runner.agents import Agent, DenialPolicy
from sayso.runner.models import ChatMessage
from sayso.runner.tools import Tool

MAX_OUTPUT_BYTES = 256 * 1024
MAX_BATCH_OUTPUT_BYTES = 1024 * 1024
"""Limit of all outputs of a batch together, so that the run's state can be saved."""

_LEAST_OUTPUT_BYTES = 1024
_SMALL_OUTPUT_BYTES = 32 * 1024
_STATE = Around(depth=3, values=103)
"""The state around an output counts towards the same limits."""


class Stop(StrEnum):
    """Ways in which a call can end its run."""

    DENIED = "denied"
    FAILED = "failed"
    UNKNOWN = "unknown"


class VetoTerms(Immutable):
    """Under which terms of a rule people can undo a call that runs at once; `rule_version` is that of the rules."""

    terms: RuleTerms
    rule_version: str


class BatchCall(Immutable):
    """One call of a batch: judged, then decided, then with its result. A grant allowed one that is `granted`.

    `veto` is set until people are offered to undo the call.
    """

    call: ToolCall
    action: Action
    reason: str
    rule_id: str | None = None
    ask: ItemDraft | None = None
    decided: bool = False
    item_id: str | None = None
    key: str | None = None
    charges: tuple[Charge, ...] = ()
    granted: bool = False
    veto: VetoTerms | None = Field(None, exclude_if=is_empty)
    stop: Stop | None = None
    result: ToolResult | None = None

    @property
    def waits(self) -> bool:
        """Whether people still have to decide on the call."""
        return self.ask is not None and not self.decided and self.result is None

    @property
    def may_run(self) -> bool:
        """Whether the call was allowed or approved and has no result."""
        return not self.waits and self.result is None

    @property
    def offers_undo(self) -> bool:
        """Whether the call has run under a veto, and nobody was offered to undo it."""
        return self.veto is not None and self.result is not None and self.result.success


class Batch(Immutable):
    """All calls of one model turn, in the model's order."""

    calls: tuple[BatchCall, ...]
    started_step: int

    @property
    def drafts(self) -> tuple[ItemDraft, ...]:
        return tuple(entry.ask for entry in self.calls if entry.ask is not None and entry.waits)


class Resumption(NamedTuple):
    """The outcome of one item, with the arguments decided on; without charges those of the first judgement apply."""

    item_id: str | None
    outcome: Outcome
    args: JsonObject
    charges: tuple[Charge, ...] | None = None


class PlannedCall(NamedTuple):
    """A call about to start, with its item if it has a permit, the key of an earlier start, and parsed arguments."""

    item_id: str | None
    call: ToolCall
    idempotent: bool
    key: str | None = None
    read: BaseModel | None = None
    charges: tuple[Charge, ...] = ()


class Fitted(NamedTuple):
    """A batch without calls that cannot run, and the parsed arguments of those that can, by index."""

    batch: Batch
    read: Mapping[int, BaseModel]


class Ending(NamedTuple):
    """Status and reason with which a batch ends its run."""

    status: RunStatus
    reason: str


def answer_batch(batch: Batch, outcomes: Mapping[int, Resumption]) -> Batch:
    """Apply outcomes: each call that waited may now run, or has ended."""
    calls = [_answer(entry, outcomes.get(entry.call.index)) if entry.waits else entry for entry in batch.calls]
    return _replace(batch, calls)


def warn_of_timeouts(batch: Batch, outcomes: Mapping[int, Resumption]) -> tuple[Event, ...]:
    """Return a warning for every call that its fallback decided after the deadline."""
    return tuple(
        Event(
            type=EventType.WARNING,
            data={"message": f"Nobody decided on {entry.call.name} in time, so its fallback did.", **_about(entry)},
        )
        for entry in batch.calls
        if entry.call.index in outcomes and outcomes[entry.call.index].outcome.by.kind is ActorKind.TIMEOUT
    )


def mark_unfinished(batch: Batch, unfinished: Mapping[int, Doubt], agent: Agent) -> Batch:
    """Mark calls in doubt that an earlier attempt started, unless idempotent. A headless agent's call ends."""
    tools = agent.tools_by_name

    def mark(entry: BatchCall) -> BatchCall:
        doubt = unfinished.get(entry.call.index)
        if entry.result is not None or doubt is None or _idempotent(tools, entry):
            return entry
        if agent.interaction == "headless":
            return end_call(entry, _unknown(entry), Stop.UNKNOWN)
        definition = tools[entry.call.name].definition.digest if entry.call.name in tools else ""
        asked = put_in_doubt(entry.call, definition, doubt, entry.ask.terms.secrets if entry.ask is not None else ())
        return entry.model_copy(update={"ask": asked, "decided": False, "charges": ()})  # it is counted already

    return _replace(batch, [mark(entry) for entry in batch.calls])


def fit_calls(batch: Batch, agent: Agent) -> Fitted:
    """End each call that can no longer run, since it waited for days or was edited. Parse arguments of the others."""
    calls, parsed = [], {}
    for entry in batch.calls:
        tool = agent.tools_by_name.get(entry.call.name)
        read = tool.read(entry.call.args) if tool is not None and entry.may_run else None
        fault = _find_fault(entry, tool, read) if entry.may_run else None
        calls.append(end_call(entry, fault) if fault else entry)
        if read is not None:
            parsed[entry.call.index] = read
    return Fitted(_replace(batch, calls), parsed)


def find_ending(batch: Batch, denial_policy: DenialPolicy) -> Ending | None:
    """Return how the batch ends its run, or None if the run continues."""
    for entry in batch.calls:
        if entry.stop is Stop.UNKNOWN:
            return Ending(RunStatus.FAILED, _unknown(entry))
        if entry.stop is Stop.FAILED:
            reason = entry.result.error if entry.result else entry.reason
            return Ending(RunStatus.FAILED, f"{entry.call.name}: {reason}")
    denied = next((entry for entry in batch.calls if entry.stop is Stop.DENIED), None)
    if denied is None or denial_policy == "continue":
        return None
    status = RunStatus.DEGRADED if denial_policy == "degrade" else RunStatus.FAILED
    return Ending(status, f"{denied.call.name} was denied, and the agent's approval_denial_policy is {denial_policy}.")


def skip_rest(batch: Batch, reason: str) -> Batch:
    """End every call that has no result."""
    skipped = f"Skipped: {reason}"
    return _replace(batch, [entry if entry.result is not None else end_call(entry, skipped) for entry in batch.calls])


def plan_calls(
    batch: Batch, agent: Agent, read: Mapping[int, BaseModel] = MappingProxyType({})
) -> tuple[PlannedCall, ...]:
    """Return the calls to start together; `read` holds parsed arguments by index."""
    tools = agent.tools_by_name
    return tuple(
        PlannedCall(
            entry.item_id, entry.call, _idempotent(tools, entry), entry.key, read.get(entry.call.index), entry.charges
        )
        for entry in batch.calls
        if entry.may_run
    )


def complete_batch(batch: Batch, results: Mapping[int, ToolResult]) -> Batch:
    """Add the results of calls that ran."""
    ran = [entry.model_copy(update={"result": results.get(entry.call.index, entry.result)}) for entry in batch.calls]
    return _replace(batch, ran)


def fit_outputs(batch: Batch) -> tuple[Batch, tuple[Event, ...]]:
    """Cut every output that is too large to save; return a warning for each."""
    limit = max(_LEAST_OUTPUT_BYTES, min(MAX_OUTPUT_BYTES, MAX_BATCH_OUTPUT_BYTES // max(1, len(batch.calls))))
    fitted: list[BatchCall] = []
    warnings: list[Event] = []
    for entry in batch.calls:
        cut = _cut_output(entry.result.output, limit) if entry.result is not None else None
        if entry.result is None or cut is None:
            fitted.append(entry)
            continue
        fitted.append(entry.model_copy(update={"result": entry.result.model_copy(update={"output": cut})}))
        message = f"The output of {entry.call.name} is too large; at most {limit} bytes of it are kept."
        warnings.append(Event(type=EventType.WARNING, data={"message": message, **_about(entry)}))
    return _replace(batch, fitted), tuple(warnings)


def is_small(result: ToolResult) -> bool:
    """Return whether a result is small enough for the suspension's own record."""
    return _cut_output(result.output, _SMALL_OUTPUT_BYTES) is None


def report_batch(batch: Batch, latency_ms: float) -> tuple[Event, ...]:
    """Return the events of a completed batch: one per call, in order, and one for the batch."""
    results = results_of(batch)
    completed = [
        Event(
            type=EventType.TOOL_COMPLETED,
            data={
                "tool_name": result.tool_name,
                "success": result.success,
                "output": result.output,
                "error": result.error,
                "tool_call_id": result.call_id,
                "index": index,
                "latency_ms": result.latency_ms,
            },
        )
        for index, result in enumerate(results)
    ]
    failures = sum(not result.success for result in results)
    data = {"tool_call_count": len(results), "failure_count": failures, "latency_ms": round(latency_ms, 3)}
    return (*completed, Event(type=EventType.TOOL_BATCH_COMPLETED, data=data))


def results_of(batch: Batch) -> tuple[ToolResult, ...]:
    """Return the results of the calls, in order."""
    return tuple(entry.result for entry in batch.calls if entry.result is not None)


def describe_model(results: Sequence[ToolResult]) -> tuple[ChatMessage, ...]:
    """Return the results as messages for the model, in its order."""
    return tuple(
        {"role": "tool", "tool_call_id": result.call_id, "content": json.dumps(result.tool_message, ensure_ascii=False)}
        for result in results
    )


def end_call(entry: BatchCall, error: str, stop: Stop | None = None) -> BatchCall:
    """End a call without running it."""
    result = ToolResult(call_id=entry.call.call_id, tool_name=entry.call.name, success=False, error=error)
    return entry.model_copy(update={"result": result, "stop": stop})


def _answer(entry: BatchCall, decided: Resumption | None) -> BatchCall:
    if decided is None:
        return end_call(entry, "Denied: no decision came for this call.", Stop.DENIED)
    if decided.outcome.verdict is Verdict.FAILED:
        return end_call(entry, decided.outcome.message or "The call's fallback failed the run.", Stop.FAILED)
    if not decided.outcome.may_run:
        by = "reviewer" if decided.outcome.by.kind is ActorKind.HUMAN else "policy"
        unneeded = decided.outcome.by == COVERED
        stop = Stop.DENIED if decided.outcome.refuses and not unneeded else None
        return end_call(entry, decided.outcome.message or f"Denied by {by}", stop)
    if entry.ask is not None and entry.ask.doubt is not None:
        return _settle_doubt(entry, entry.ask.doubt, decided)
    call = entry.call.model_copy(update={"args": decided.args})
    charges = entry.charges if decided.charges is None else decided.charges
    return entry.model_copy(update={"call": call, "decided": True, "item_id": decided.item_id, "charges": charges})


def _settle_doubt(entry: BatchCall, doubt: Doubt, decided: Resumption) -> BatchCall:
    answer = read_choice(decided.outcome.value)
    by = decided.outcome.by.id
    if answer.choice is Choice.RUN_AGAIN:
        return entry.model_copy(update={"decided": True, "item_id": decided.item_id, "key": doubt.idempotency_key})
    if answer.choice is Choice.FAIL:
        return end_call(entry, f"{by} failed the run: nobody knows whether the call had run.", Stop.FAILED)
    if answer.choice is Choice.REPORTED:
        return entry.model_copy(update={"result": ToolResult.model_validate(answer.result)})
    if answer.result is None:
        return end_call(entry, f"Skipped by {by}: the call may already have run, and its result is not known.")
    result = ToolResult(call_id=entry.call.call_id, tool_name=entry.call.name, success=True, output=answer.result)
    return entry.model_copy(update={"result": result})


def _find_fault(entry: BatchCall, tool: Tool | None, read: BaseModel | None) -> str | None:
    if tool is None:
        return f"The agent no longer has the tool {entry.call.name}."
    if entry.ask is not None and tool.digest != entry.ask.tool.definition:
        return f"The tool {entry.call.name} is no longer the one that was approved. Ask again."
    fault = tool.find_fault(entry.call.args) if read is None else None
    return f"The arguments do not fit {entry.call.name}: {fault}" if fault else None


def _replace(batch: Batch, calls: Sequence[BatchCall]) -> Batch:
    return batch.model_copy(update={"calls": tuple(calls)})


def _idempotent(tools: Mapping[str, Tool], entry: BatchCall) -> bool:
    tool = tools.get(entry.call.name)
    return tool is not None and tool.idempotent


def _unknown(entry: BatchCall) -> str:
    return f"{entry.call.name} may already have run before its worker was lost; nobody knows its result."


def _about(entry: BatchCall) -> JsonObject:
    return {"tool_name": entry.call.name, "tool_call_id": entry.call.call_id, "index": entry.call.index}


def _cut_output(output: JsonValue, limit: int) -> str | None:
    """Return the beginning of an output over the limit as text, or None if it fits."""
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        try:
            if isinstance(output, dict | list):
                check_json(output, around=_STATE)
            return None
        except TooLarge:
            pass
    return f"{raw[:limit].decode('utf-8', 'ignore')}… [cut: {len(raw)} bytes in all]"
