"""Compare the executions of tools with the permits of the trail: how often, with which arguments and key."""

from collections import defaultdict
from collections.abc import Iterator

from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.clock import iso_utc
from sayso.core.records.decisions import Verdict
from tests.chaos.checking.history import History, ItemKey, TrailItem
from tests.chaos.evidence.client_log import parse_ms
from tests.chaos.evidence.effects import EffectLine
from tests.chaos.evidence.freezes import overlap_ms
from tests.chaos.workload.plans import TOOLS

SLACK_MS = 5
"""Two processes read the clock at slightly different times."""

HOLDS_WITHIN_MS = 1_000
"""A freeze holds everywhere within this time, as documented."""

BEGINS_WITHIN_MS = 4_000
"""Time between redeeming a permit and starting the call; the worker may be stopped in between."""


def find_repeated_starts(history: History) -> Iterator[str]:
    """A call of a tool that is not idempotent starts once, and once more per decision to run it again."""
    for call_id, starts in _by_call(history.starts).items():
        allowed = 1 + _count_run_again(history, call_id)
        if not TOOLS[starts[0].tool].idempotent and len(starts) > allowed:
            yield f"{starts[0].tool} of call {call_id} started {len(starts)} times; {allowed} were allowed"


def find_foreign_keys(history: History) -> Iterator[str]:
    """All executions of a call share one idempotency key, and no other call has it."""
    calls_of: dict[str, set[str]] = defaultdict(set)
    for call_id, starts in _by_call(history.starts).items():
        keys = {start.key for start in starts}
        if len(keys) > 1:
            yield f"the call {call_id} was started under {len(keys)} keys: {sorted(keys)}"
        for key in keys:
            calls_of[key].add(call_id)
    for key, calls in calls_of.items():
        if len(calls) > 1:
            yield f"the calls {sorted(calls)} share the key {key}"


def find_early_starts(history: History) -> Iterator[str]:
    """A call starts after the rules allow it or its permit is redeemed."""
    index = history.index
    for start in history.starts:
        allowed = [entry for entry in index.evaluated.get(start.call_id, ()) if entry.data["action"] == "allow"]
        permitted_at_ms = [entry.at_ms for entry in (*allowed, *index.permits.get(start.call_id, ()))]
        if not permitted_at_ms:
            yield f"{start.tool} of call {start.call_id} started at {iso_utc(start.at_ms)} without a permit"
        elif start.at_ms + SLACK_MS < min(permitted_at_ms):
            yield f"{start.tool} of call {start.call_id} started at {iso_utc(start.at_ms)}, before its permit"


def find_late_permits(history: History) -> Iterator[str]:
    """A permit is redeemed before the time that the reviewer saw. Later permits of repeated calls do not count."""
    index, limits = history.index, _start_limits(history)
    for item in index.items.values():
        limit, permits = limits.get((item.suspension_id, item.item_id)), index.permits.get(item.call_id, [])
        if limit is None or item.is_in_doubt:
            continue
        in_doubt = any(one.is_in_doubt for one in index.items_of(item.call_id))
        for permit in permits[:1] if in_doubt or TOOLS[item.tool].idempotent else permits:
            if permit.at_ms - _frozen_ms(history, item, permit.at_ms) >= limit:
                yield f"{item.tool} of call {item.call_id} redeemed its permit at {iso_utc(permit.at_ms)}, too late"


def _frozen_ms(history: History, item: TrailItem, to_ms: int) -> int:
    """Return for how long the call was frozen since its decision; its limit moves by as much."""
    closing = history.index.closing_of(item)
    return overlap_ms(history.freezes_of(item.tool), closing.entry.at_ms, to_ms) if closing is not None else 0


def find_frozen_starts(history: History) -> Iterator[str]:
    """No permit is redeemed and no call starts while its tool, its agent or everything is frozen."""
    spans = {tool: history.freezes_of(tool) for tool in TOOLS}
    for call_id, permits in history.index.permits.items():
        tool = history.plan.calls[call_id].tool
        for permit in permits:
            if any(one.acknowledged_at_ms + HOLDS_WITHIN_MS < permit.at_ms < one.unfrozen_at_ms for one in spans[tool]):
                yield f"{tool} of call {call_id} redeemed its permit at {iso_utc(permit.at_ms)} while it was frozen"
    for start in history.starts:
        within_ms = HOLDS_WITHIN_MS + BEGINS_WITHIN_MS
        if any(one.acknowledged_at_ms + within_ms < start.at_ms < one.unfrozen_at_ms for one in spans[start.tool]):
            yield f"{start.tool} of call {start.call_id} started at {iso_utc(start.at_ms)} while it was frozen"


def _start_limits(history: History) -> dict[ItemKey, int]:
    """Return the latest start of approved calls, from the answers to reviewers."""
    limits: dict[ItemKey, int] = {}
    for exchange in history.exchanges:
        if exchange.kind != "decide" or not exchange.confirmed:
            continue
        outcome = exchange.answer.get("outcome") if isinstance(exchange.answer, dict) else None
        if isinstance(outcome, dict) and outcome.get("start_by"):
            limits[str(exchange.suspension_id), str(exchange.item_id)] = parse_ms(str(outcome["start_by"]))
    return limits


def find_altered_args(history: History) -> Iterator[str]:
    """A call runs with the planned arguments, as edited or completed by its decision."""
    for start in history.starts:
        planned = history.plan.calls.get(start.call_id)
        if planned is None or planned.tool != start.tool:
            yield f"{start.tool} ran for the call {start.call_id}, which is not in the plan"
        elif start.digest != digest_json(_decided_args(history, start.call_id, planned.args)):
            yield f"{start.tool} of call {start.call_id} ran with arguments that nobody decided"


def find_forbidden_starts(history: History) -> Iterator[str]:
    """A call that was denied, timed out or cancelled before its start never starts."""
    index = history.index
    for start in history.starts:
        denied = [entry for entry in index.evaluated.get(start.call_id, ()) if entry.data["action"] == "deny"]
        if denied:
            yield f"the rules denied the call {start.call_id}, but {start.tool} started"
        for item in index.items_of(start.call_id):
            closing = index.closing_of(item)
            if closing is not None and not closing.may_run and not item.is_in_doubt:
                yield f"the call {start.call_id} was {closing.verdict}, but {start.tool} started"
        cancelled = index.cancelled
        late = cancelled is not None and start.at_ms > cancelled.at_ms + SLACK_MS
        if cancelled is not None and late and start.call_id not in cancelled.data["calls_in_flight"]:
            yield f"the run was cancelled, but {start.tool} of call {start.call_id} started after that"


def find_untrue_results(history: History) -> Iterator[str]:
    """A call with a successful result ran to its end, or a reviewer gave the result."""
    ends = {(line.call_id, line.effect) for line in history.effects if line.what == "end"}
    for call_id, entries in history.index.completed.items():
        for entry in entries:
            output = entry.data["output"]
            if not entry.data["success"] or output in _given_results(history, call_id):
                continue
            effect = output.get("effect") if isinstance(output, dict) else None
            if (call_id, effect) not in ends:
                yield f"the call {call_id} succeeded with {output}, but no tool returned that"


def _by_call(starts: list[EffectLine]) -> dict[str, list[EffectLine]]:
    by_call: dict[str, list[EffectLine]] = defaultdict(list)
    for start in starts:
        by_call[start.call_id].append(start)
    return by_call


def _count_run_again(history: History, call_id: str) -> int:
    return sum(choice.get("choice") == "run_again" for choice in _choices(history, call_id))


def _given_results(history: History, call_id: str) -> list[object]:
    return [choice["result"] for choice in _choices(history, call_id) if "result" in choice]


def _choices(history: History, call_id: str) -> list[JsonObject]:
    """Return the decisions about a call in doubt."""
    found: list[JsonObject] = []
    for item in history.index.items_of(call_id):
        value = _value(history, item) if item.is_in_doubt else None
        if isinstance(value, dict):
            found.append(value)
    return found


def _decided_args(history: History, call_id: str, planned: JsonObject) -> JsonObject:
    for item in history.index.items_of(call_id):
        closing = history.index.closing_of(item)
        if item.is_in_doubt or closing is None:
            continue
        if closing.verdict == Verdict.ANSWERED:
            view = history.views.get((item.suspension_id, item.item_id), {})
            return {**planned, str(view.get("target_arg", "day")): _value(history, item)}  # type: ignore[dict-item]
        request = history.request_of(closing.decision) if closing.decision is not None else None
        edited = request.body.get("args") if request is not None else None
        return edited if isinstance(edited, dict) else planned
    return planned


def _value(history: History, item: TrailItem) -> object:
    """Return the value of an item: a reviewer's, or its fallback's."""
    closing = history.index.closing_of(item)
    if closing is None:
        return None
    if closing.decision is None:
        return FALLBACK_VALUE
    request = history.request_of(closing.decision)
    return request.body.get("value") if request is not None else None


FALLBACK_VALUE = "2027-12-31"
"""The fallback value in policy.yaml."""
