"""Compare what the tools did with what the trail gave them leave for: how often, with which arguments and which key."""

from collections import defaultdict
from collections.abc import Iterator

from sayso.canonical_json import JsonObject, digest_json
from sayso.clock import iso_utc
from sayso.records.decisions import Verdict
from tests.chaos.effects import EffectLine
from tests.chaos.freezes import overlap_ms
from tests.chaos.histories import Asked, History, ItemKey
from tests.chaos.logs import read_moment
from tests.chaos.plans import TOOLS

SLACK_MS = 5
"""Two processes read the same clock at slightly different moments."""

HOLDS_WITHIN_MS = 1_000
"""How soon a freeze holds everywhere, as is promised of it."""

BEGINS_WITHIN_MS = 4_000
"""How long a call may take to begin once its leave is used: its worker may be stopped in between."""


def find_repeated_starts(history: History) -> Iterator[str]:
    """A call of a tool that is not idempotent starts once, and once more each time a person said run it again."""
    for call_id, starts in _by_call(history.starts).items():
        allowed = 1 + _count_run_again(history, call_id)
        if not TOOLS[starts[0].tool].idempotent and len(starts) > allowed:
            yield f"{starts[0].tool} of call {call_id} started {len(starts)} times; {allowed} were allowed"


def find_foreign_keys(history: History) -> Iterator[str]:
    """All executions of one call have one idempotency key, and no other call has it."""
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
    """Whatever starts was allowed by the rules or has a permit, and not one moment before."""
    reading = history.reading
    for start in history.starts:
        leaves = [entry.at_ms for entry in reading.judged.get(start.call_id, ()) if entry.data["action"] == "allow"]
        leaves += [entry.at_ms for entry in reading.permits.get(start.call_id, ())]
        if not leaves:
            yield f"{start.tool} of call {start.call_id} started at {iso_utc(start.at_ms)} without any leave"
        elif start.at_ms + SLACK_MS < min(leaves):
            yield f"{start.tool} of call {start.call_id} started at {iso_utc(start.at_ms)}, before its leave"


def find_late_permits(history: History) -> Iterator[str]:
    """Leave to run is used before the moment that the reviewer was told; what may run twice begins once before it."""
    reading, limits = history.reading, _start_limits(history)
    for asked in reading.asked.values():
        limit, permits = limits.get((asked.suspension_id, asked.item_id)), reading.permits.get(asked.call_id, [])
        if limit is None or asked.about_doubt:
            continue
        doubted = any(other.about_doubt for other in reading.items_of(asked.call_id))
        for permit in permits[:1] if doubted or TOOLS[asked.tool].idempotent else permits:
            if permit.at_ms - _frozen_ms(history, asked, permit.at_ms) >= limit:
                yield f"{asked.tool} of call {asked.call_id} used its leave at {iso_utc(permit.at_ms)}, too late"


def _frozen_ms(history: History, asked: Asked, to_ms: int) -> int:
    """For how long it could not start since it was decided: so much later it may."""
    closing = history.reading.closing_of(asked)
    return overlap_ms(history.freezes_of(asked.tool), closing.entry.at_ms, to_ms) if closing is not None else 0


def find_frozen_starts(history: History) -> Iterator[str]:
    """Nothing new starts while its tool, its agent or everything is frozen: no leave is used, no tool begins."""
    spans = {tool: history.freezes_of(tool) for tool in TOOLS}
    for call_id, permits in history.reading.permits.items():
        tool = history.plan.calls[call_id].tool
        for permit in permits:
            if any(one.told_at_ms + HOLDS_WITHIN_MS < permit.at_ms < one.unfrozen_at_ms for one in spans[tool]):
                yield f"{tool} of call {call_id} used its leave at {iso_utc(permit.at_ms)}, while it was frozen"
    for start in history.starts:
        within_ms = HOLDS_WITHIN_MS + BEGINS_WITHIN_MS
        if any(one.told_at_ms + within_ms < start.at_ms < one.unfrozen_at_ms for one in spans[start.tool]):
            yield f"{start.tool} of call {start.call_id} started at {iso_utc(start.at_ms)}, while it was frozen"


def _start_limits(history: History) -> dict[ItemKey, int]:
    """Return until when what was approved could start, by what reviewers were answered."""
    limits: dict[ItemKey, int] = {}
    for said in filter(lambda said: said.kind == "decide" and said.done, history.said):
        outcome = said.answer.get("outcome") if isinstance(said.answer, dict) else None
        if isinstance(outcome, dict) and outcome.get("start_by"):
            limits[str(said.suspension_id), str(said.item_id)] = read_moment(str(outcome["start_by"]))
    return limits


def find_altered_args(history: History) -> Iterator[str]:
    """The arguments that ran are those of the plan, as edited or completed by the decision that counted."""
    for start in history.starts:
        planned = history.plan.calls.get(start.call_id)
        if planned is None or planned.tool != start.tool:
            yield f"{start.tool} ran for the call {start.call_id}, which is not in the plan"
        elif start.digest != digest_json(_decided_args(history, start.call_id, planned.args)):
            yield f"{start.tool} of call {start.call_id} ran with other arguments than were decided"


def find_forbidden_starts(history: History) -> Iterator[str]:
    """What the rules or a person denied, what ran out of time, and what was cancelled before it began, never starts."""
    reading = history.reading
    for start in history.starts:
        denied = [entry for entry in reading.judged.get(start.call_id, ()) if entry.data["action"] == "deny"]
        if denied:
            yield f"the rules denied the call {start.call_id}, but {start.tool} started"
        for asked in reading.items_of(start.call_id):
            closing = reading.closing_of(asked)
            if closing is not None and not closing.may_run and not asked.about_doubt:
                yield f"the call {start.call_id} was {closing.verdict}, but {start.tool} started"
        cancelled = reading.cancelled
        late = cancelled is not None and start.at_ms > cancelled.at_ms + SLACK_MS
        if cancelled is not None and late and start.call_id not in cancelled.data["calls_in_flight"]:
            yield f"the run was cancelled, but {start.tool} of call {start.call_id} started after that"


def find_untrue_results(history: History) -> Iterator[str]:
    """A call told as successful was executed to its end, or somebody gave its result."""
    ends = {(line.call_id, line.effect) for line in history.effects if line.what == "end"}
    for call_id, entries in history.reading.completed.items():
        for entry in entries:
            output = entry.data["output"]
            if not entry.data["success"] or output in _given_results(history, call_id):
                continue
            effect = output.get("effect") if isinstance(output, dict) else None
            if (call_id, effect) not in ends:
                yield f"the call {call_id} was told to have succeeded with {output}, but no tool did that"


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
    """Return what people answered to the questions whether a call has run."""
    found: list[JsonObject] = []
    for asked in history.reading.items_of(call_id):
        value = _value(history, asked) if asked.about_doubt else None
        if isinstance(value, dict):
            found.append(value)
    return found


def _decided_args(history: History, call_id: str, planned: JsonObject) -> JsonObject:
    for asked in history.reading.items_of(call_id):
        closing = history.reading.closing_of(asked)
        if asked.about_doubt or closing is None:
            continue
        if closing.verdict == Verdict.ANSWERED:
            item = history.seen.get((asked.suspension_id, asked.item_id), {})
            return {**planned, str(item.get("target_arg", "day")): _value(history, asked)}  # type: ignore[dict-item]
        request = history.request_of(closing.word) if closing.word is not None else None
        edited = request.body.get("args") if request is not None else None
        return edited if isinstance(edited, dict) else planned
    return planned


def _value(history: History, asked: Asked) -> object:
    """Return the value that an item was answered with: a person's, or that of its fallback."""
    closing = history.reading.closing_of(asked)
    if closing is None:
        return None
    if closing.word is None:
        return FALLBACK_VALUE
    request = history.request_of(closing.word)
    return request.body.get("value") if request is not None else None


FALLBACK_VALUE = "2027-12-31"
"""What the storm's rules say when nobody gives a day."""
