"""Gather what an item's page shows beside the call itself: why, whose words, and what became of the decision."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.records.decisions import Decision, DecisionAction
from sayso.records.events import EventType, TrailEntry
from sayso.records.items import Item
from sayso.records.suspensions import Status, SuspensionRecord
from sayso.transitions.closing import args_of
from sayso.transitions.item_states import ItemState, find_item_state
from service.web.content.summaries import find_leaves
from service.web.content.timeline import Facts

_MORE_MS = tuple(minutes * 60_000 for minutes in (15, 60, 240, 1440))
"""By how much a deadline is put off in one go."""


@dataclass(frozen=True)
class Why:
    """Why an item was asked: the rule that decided, all that matched, and what went wrong while judging."""

    reason: str
    rule_id: str
    rule_version: str
    matched: tuple[str, ...]
    error: str


@dataclass(frozen=True)
class Result:
    """How the item's call ended."""

    success: bool
    output: JsonValue
    error: str
    latency_ms: float | None
    at_ms: int


@dataclass(frozen=True)
class Stage:
    """One step on the way from a decision to its effect; a stage without a moment is still to come."""

    text: str
    at_ms: int | None
    tone: str = "plain"


@dataclass(frozen=True)
class Changed:
    """One leaf of the arguments that are to run, beside what was asked: same, changed, added or removed."""

    path: str
    before: str
    after: str
    state: str


def find_why(item: Item, suspension_id: str, trail: Sequence[TrailEntry]) -> Why:
    """Return why the item was asked, from its terms and from the judgement in the trail."""
    judged = Facts({}, {})
    for entry in trail[: _pause_place(suspension_id, trail)]:
        facts = Facts(entry.data, {})
        if entry.type == EventType.POLICY_DECISION and facts.value("index") == item.index:
            judged = facts
    return Why(
        reason=item.prompt.reason or "",
        rule_id=item.terms.rule_id or "",
        rule_version=item.terms.rule_version,
        matched=tuple(judged.words("matched_rules")),
        error=judged.word("error"),
    )


def find_own_words(suspension_id: str, trail: Sequence[TrailEntry]) -> str:
    """Return what the model said in the turn that asked for the call."""
    for entry in reversed(trail[: _pause_place(suspension_id, trail)]):
        if entry.type == EventType.LLM_COMPLETED:
            return Facts(entry.data, {}).word("text")
    return ""


def find_result(item: Item, suspension_id: str, trail: Sequence[TrailEntry]) -> Result | None:
    """Return how the item's call ended, or None while it has not."""
    for entry in trail[_pause_place(suspension_id, trail) :]:
        facts = Facts(entry.data, {})
        if entry.type == EventType.RUN_PAUSED and facts.inner("payload").word("suspension_id") != suspension_id:
            return None
        if entry.type in (EventType.TOOL_COMPLETED, EventType.OUTCOME_REPORTED) and _is_about(item, facts):
            latency = facts.value("latency_ms")
            return Result(
                success=facts.true("success"),
                output=facts.value("output"),
                error=facts.word("error"),
                latency_ms=latency if isinstance(latency, int | float) else None,
                at_ms=entry.at_ms,
            )
    return None


def find_stages(record: SuspensionRecord, item: Item, result: Result | None) -> list[Stage]:
    """Return the way from the item's decision to its effect, as far as it is known."""
    if item.outcome is None:
        return []
    receipt = record.receipt
    stages = [Stage("Decided", item.outcome.at_ms)]
    waiting = sum(1 for other in record.items if other.open)
    if record.status is Status.CANCELLED:
        return [*stages, Stage("The run was cancelled", record.updated_at_ms, "bad")]
    if waiting:
        others = "another item" if waiting == 1 else f"{waiting} other items"
        return [*stages, Stage(f"The run waits for {others}", None, "wait")]
    stages += _find_worker_stages(record, item)
    if result is not None:
        took = f" in {result.latency_ms:.0f} ms" if result.latency_ms is not None else ""
        ran = f"{item.tool.name} ran{took}" if result.success else f"{item.tool.name} did not succeed"
        stages.append(Stage(ran, result.at_ms, "good" if result.success else "bad"))
    elif find_item_state(record, item) is ItemState.IN_DOUBT and record.resume.mode != "poll":
        stages.append(Stage("Nobody said how it ended", None, "bad"))
    elif record.end is not None and record.resume.mode == "poll":
        what = "Nobody reported what came of it" if item.permit is not None else "Nobody started it in time"
        stages += [Stage(what, None, "bad")] if item.outcome.may_run else []
    elif item.outcome.may_run and record.status is not Status.FAILED:
        stages.append(Stage(f"{item.tool.name} runs", None))
    if receipt.settled_at_ms is not None:
        stages.append(Stage("All of this pause is settled", receipt.settled_at_ms))
    return stages


def _find_worker_stages(record: SuspensionRecord, item: Item) -> list[Stage]:
    receipt, lease = record.receipt, record.lease
    if record.resume.mode == "poll":
        return [_find_own_stage(record, item)] if item.outcome is not None and item.outcome.may_run else []
    again = f" (again: {receipt.redrives})" if receipt.redrives else ""
    job = f", in job {receipt.job_id}" if receipt.job_id else ""
    who = f" by {lease.holder}, attempt {lease.attempt}{job}" if lease is not None else " by a worker"
    stages = [
        Stage(f"Put before the workers{again}", receipt.enqueued_at_ms),
        Stage(f"Taken up{who}", receipt.leased_at_ms),
    ]
    if record.status is Status.FAILED and record.end is not None:
        stages.append(Stage(f"Given up: {record.end.error}", record.updated_at_ms, "bad"))
    elif receipt.resumed_at_ms is not None or receipt.error is None:
        stages.append(Stage("The run went on", receipt.resumed_at_ms))
    else:
        stages.append(Stage(f"Decided, not yet resumed: {receipt.error}", None, "bad"))
    if item.permit is not None:
        stages.append(Stage("The leave to run was spent", item.permit.redeemed_at_ms))
    return stages


def _find_own_stage(record: SuspensionRecord, item: Item) -> Stage:
    if item.permit is None:
        return Stage(f"{record.run.owner} is to start it", None)
    return Stage(f"{record.run.owner} spent the leave to run", item.permit.redeemed_at_ms)


def find_extensions(item: Item) -> list[int]:
    """Return the moments to which an open item's deadline may be put off: some, and the last one there is."""
    deadline_ms, limit_ms = item.terms.deadline_at_ms, item.terms.extend_until_ms
    if not item.open or limit_ms <= deadline_ms:
        return []
    return [*(deadline_ms + by_ms for by_ms in _MORE_MS if deadline_ms + by_ms < limit_ms), limit_ms]


def compare_args(asked: JsonObject, decided: JsonObject) -> list[Changed]:
    """Return every leaf of both, and what became of it."""
    before = {leaf.path: leaf.text for leaf in find_leaves(asked)} if asked else {}
    after = {leaf.path: leaf.text for leaf in find_leaves(decided)} if decided else {}
    rows = []
    for path in dict.fromkeys((*before, *after)):
        old, new = before.get(path), after.get(path)
        state = "same" if old == new else "added" if old is None else "removed" if new is None else "changed"
        rows.append(Changed(path, old or "", new or "", state))
    return rows


def find_changes(item: Item, decision: Decision) -> list[Changed]:
    """Return what one reviewer's word makes of the arguments, so that others can see whether they agree."""
    if decision.args is None and decision.action is not DecisionAction.VALUE:
        return []
    return [row for row in compare_args(item.tool.args, args_of(item, decision)) if row.state != "same"]


def _pause_place(suspension_id: str, trail: Sequence[TrailEntry]) -> int:
    """Where in the trail the suspension began; its end when it is not told."""
    for place, entry in enumerate(trail):
        paused = entry.type == EventType.RUN_PAUSED
        if paused and Facts(entry.data, {}).inner("payload").word("suspension_id") == suspension_id:
            return place
    return len(trail)


def _is_about(item: Item, facts: Facts) -> bool:
    """Whether a result is this item's: by its place in the batch, for the model's own ids may be empty or repeated."""
    if isinstance(facts.value("index"), int):
        return facts.value("index") == item.index and facts.word("tool_name") == item.tool.name
    return bool(item.call_id) and facts.word("tool_call_id") == item.call_id
