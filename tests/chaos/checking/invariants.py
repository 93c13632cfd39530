"""The invariants of every run: one function per invariant, over the history of one run.

Each yields a sentence per contradiction. They compare evidence and call nothing of Sayso except the table of legal
transitions, the check of the hash chain and the canonical digest.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping

from sayso.core.clock import iso_utc
from sayso.core.records.chain import find_break
from sayso.core.records.decisions import ActorKind, DecisionAction, Verdict
from sayso.core.records.events import EventType
from tests.chaos.checking.cards import (
    find_armed_cards,
    find_lost_cards,
    find_silent_refusals,
    find_unpressed_decisions,
)
from tests.chaos.checking.executions import (
    HOLDS_WITHIN_MS,
    find_altered_args,
    find_early_starts,
    find_forbidden_starts,
    find_foreign_keys,
    find_frozen_starts,
    find_late_permits,
    find_repeated_starts,
    find_untrue_results,
)
from tests.chaos.checking.history import History, TrailItem, decision_id_of
from tests.chaos.checking.steps import find_illegal_step
from tests.chaos.evidence.client_log import Exchange
from tests.chaos.evidence.provider_log import CHANNEL

Invariant = Callable[[History], Iterator[str]]

_VERDICTS = {
    DecisionAction.APPROVE: Verdict.APPROVED,
    DecisionAction.DENY: Verdict.DENIED,
    DecisionAction.VALUE: Verdict.ANSWERED,
}
_ENDS = {
    "completed": EventType.RUN_COMPLETED,
    "degraded": EventType.RUN_DEGRADED,
    "failed": EventType.RUN_FAILED,
    "cancelled": EventType.RUN_CANCELLED,
}


def one_outcome_per_item(history: History) -> Iterator[str]:
    """An item has one outcome, and no decision follows it."""
    for key, closings in history.index.closings.items():
        if len(closings) > 1:
            yield f"item {key} got {len(closings)} outcomes: {[closing.verdict for closing in closings]}"
        late = [decision for decision in history.index.decisions if (decision.suspension_id, decision.item_id) == key]
        for decision in late:
            if decision.entry.seq > closings[0].entry.seq:
                yield f"item {key} accepted the decision {decision.decision_id} of {decision.by} after its outcome"
    repeated = Counter(decision.decision_id for decision in history.index.decisions)
    for decision_id, times in repeated.items():
        if times > 1:
            yield f"the decision {decision_id} is in the trail {times} times"


def run_ended(history: History) -> Iterator[str]:
    """A run ends, and its trail and status agree how."""
    kind = _ENDS.get(history.trail.status)
    if kind is None:
        yield f"the run never ended; it is {history.trail.status}"
    elif not history.entries or history.entries[-1].type != kind:
        last = history.entries[-1].type if history.entries else "nothing"
        yield f"the run is {history.trail.status}, but the last event of its trail is {last}"


def confirmed_writes_kept(history: History) -> Iterator[str]:
    """A confirmed request is in the trail, with the confirmed outcome."""
    index = history.index
    for exchange in filter(lambda exchange: exchange.confirmed, history.exchanges):
        if exchange.kind == "start" and (not history.entries or history.entries[0].type != EventType.RUN_STARTED):
            yield f"the start of the run was confirmed to {exchange.actor}, but the trail does not begin with it"
        if exchange.kind == "cancel" and index.cancelled is None:
            yield f"the cancellation was confirmed to {exchange.actor}, but the trail does not have it"
        if exchange.kind == "decide":
            yield from _find_lost_decision(history, exchange)


def _find_lost_decision(history: History, exchange: Exchange) -> Iterator[str]:
    decision_id = decision_id_of(exchange)
    decisions = [decision for decision in history.index.decisions if decision.decision_id == decision_id]
    about = f"the decision {exchange.body['action']} of {exchange.actor} on {exchange.suspension_id}/{exchange.item_id}"
    if not decisions:
        yield f"{about} was confirmed at {iso_utc(exchange.done_ms)}, but the trail does not have it"
        return
    recorded = (decisions[0].suspension_id, decisions[0].item_id, decisions[0].action, decisions[0].by)
    if recorded != (exchange.suspension_id, exchange.item_id, exchange.body["action"], exchange.actor):
        yield f"{about} was confirmed, but the trail has another under its id: {recorded}"
    outcome = exchange.answer.get("outcome") if isinstance(exchange.answer, dict) else None
    closings = history.index.closings.get((str(exchange.suspension_id), str(exchange.item_id)), [])
    if isinstance(outcome, dict) and (not closings or closings[0].verdict != outcome["verdict"]):
        yield f"{about} was answered with the outcome {outcome['verdict']}, but the trail has another"


def nothing_invented(history: History) -> Iterator[str]:
    """A decision of the trail was sent by its reviewer, and its outcome follows from it. I16 has those of presses."""
    for decision in history.index.decisions:
        exchange = history.request_of(decision)
        sent = (exchange.actor, exchange.body["action"]) if exchange is not None else None
        if decision.channel != CHANNEL and sent != (decision.by, decision.action):
            yield f"the trail has a decision {decision.decision_id} of {decision.by} that nobody sent"
        elif decision.verdict is not None and decision.verdict != _VERDICTS[DecisionAction(decision.action)]:
            yield f"{decision.by} sent {decision.action}, but the outcome is {decision.verdict}"


def trail_is_chained(history: History) -> Iterator[str]:
    """The trail is numbered from 1 without gaps, and each entry is chained to the previous one."""
    broken = find_break(list(history.entries))
    if broken is not None:
        yield f"the trail breaks at entry {broken}"
    if history.trail.fault is not None:
        yield f"the trail does not end where the record says: {history.trail.fault}"


def steps_are_legal(history: History) -> Iterator[str]:
    """The events are a path through the table of legal transitions."""
    yield from find_illegal_step(history.entries)


def deadlines_hold(history: History) -> Iterator[str]:
    """No decision follows the deadline, and no fallback precedes it."""
    index = history.index
    for decision in index.decisions:
        item = index.items.get((decision.suspension_id, decision.item_id))
        if item is not None and decision.entry.at_ms >= _deadline_at_ms(history, item, decision.entry.at_ms):
            deadline = iso_utc(_deadline_at_ms(history, item, decision.entry.at_ms))
            yield f"{decision.by} decided at {iso_utc(decision.entry.at_ms)}, after the deadline {deadline}"
    for key, closings in index.closings.items():
        for closing in closings:
            at_ms = closing.entry.at_ms
            deadline_at_ms = _known_deadline_at_ms(history, index.items[key], at_ms)
            if closing.entry.type == EventType.TIMED_OUT and at_ms < deadline_at_ms:
                yield f"item {key} timed out at {iso_utc(at_ms)}, before its deadline"


def deadlines_moved_by_freezes(history: History) -> Iterator[str]:
    """The deadline of an open item moves by the time it was frozen."""
    for entry in history.index.moved:
        for move in entry.data["items"]:
            item = history.index.items[entry.data["suspension_id"], move["item_id"]]
            closing = history.index.closing_of(item)
            closed = closing is not None and closing.entry.seq < entry.seq
            wanted_ms = _deadline_at_ms(history, item, entry.at_ms)
            known_ms = _known_deadline_at_ms(history, item, entry.at_ms)
            if not known_ms <= move["deadline_at_ms"] <= wanted_ms and not closed:
                moved_to = iso_utc(move["deadline_at_ms"])
                yield f"the deadline of {item.item_id} moved to {moved_to} instead of {iso_utc(wanted_ms)}"


def _deadline_at_ms(history: History, item: TrailItem, at_ms: int) -> int:
    """Return the deadline at a time: later by the time that the item was frozen until then."""
    return item.deadline_at_ms + history.frozen_ms(item, at_ms)


def _known_deadline_at_ms(history: History, item: TrailItem, at_ms: int) -> int:
    """Return the deadline without freezes that may not hold everywhere yet."""
    return item.deadline_at_ms + history.frozen_ms(item, at_ms, at_ms - HOLDS_WITHIN_MS)


def reviewers_are_eligible(history: History) -> Iterator[str]:
    """Only people decide, never the owner, nobody twice, and as many as the quorum needs."""
    index = history.index
    decided_by: dict[tuple[str, str], list[str]] = defaultdict(list)
    approvers: dict[tuple[str, str], set[str]] = defaultdict(set)
    for decision in index.decisions:
        key = decision.suspension_id, decision.item_id
        if decision.by_kind != ActorKind.HUMAN or decision.by == index.owner:
            yield f"{decision.by_kind} {decision.by} decided on item {key} of a run of {index.owner}"
        if decision.by in decided_by[key]:
            yield f"{decision.by} decided twice on item {key}"
        decided_by[key].append(decision.by)
        if decision.action == DecisionAction.APPROVE:
            approvers[key].add(decision.by)
    for key, item in history.views.items():
        needed = item["terms"]["quorum"]["approve"]
        approved = any(
            one.decision is not None and one.verdict == Verdict.APPROVED for one in index.closings.get(key, ())
        )
        if approved and len(approvers[key]) < needed:
            yield f"item {key} was approved by {sorted(approvers[key])}, but needs {needed} people"


def calls_completed_once(history: History) -> Iterator[str]:
    """A call is evaluated once and completes once; a run that ended normally misses none."""
    index = history.index
    for call_id, entries in index.evaluated.items():
        if len(entries) > 1:
            yield f"the call {call_id} was evaluated {len(entries)} times"
        if not index.completed.get(call_id) and history.trail.status in ("completed", "degraded"):
            yield f"the run is {history.trail.status}, but the call {call_id} never completed"
    for call_id, entries in index.completed.items():
        if len(entries) > 1:
            yield f"the call {call_id} completed {len(entries)} times"
    missing = set(history.plan.calls) - set(index.evaluated)
    if missing and history.trail.status == "completed":
        yield f"the run completed, but the calls {sorted(missing)} of its plan were never evaluated"


def suspensions_resumed_once(history: History) -> Iterator[str]:
    """A suspension resumes once, with its verdicts; only the last one of a run may not resume."""
    index = history.index
    for suspension_id in index.suspended:
        entries = index.resumed.get(suspension_id, [])
        cut_off = history.trail.status in ("cancelled", "failed") and suspension_id == index.suspended[-1]
        if len(entries) > 1 or (not entries and not cut_off):
            yield f"the suspension {suspension_id} was resumed {len(entries)} times"
        for entry in entries:
            for item_id, verdict in entry.data["verdicts"].items():
                closings = index.closings.get((suspension_id, item_id), [])
                if [closing.verdict for closing in closings] != [verdict]:
                    yield f"the run resumed with {item_id} {verdict}, but the outcomes are {closings}"
    for suspension_id in set(index.resumed) - set(index.suspended):
        yield f"the run resumed from {suspension_id}, where it was never suspended"


def repeats_are_answered_alike(history: History) -> Iterator[str]:
    """A repeated request gets the answer of the first one."""
    for group in _group_by_request(history.exchanges):
        done = [exchange for exchange in group if exchange.confirmed]
        refused = [exchange for exchange in group if exchange.refused]
        about = f"{group[0].kind} of {group[0].actor} with the key {group[0].key}"
        if done and refused:
            yield f"the same {about} was answered {done[0].status} and {refused[0].status}"
        if len({_result_of(exchange) for exchange in done}) > 1:
            yield f"the same {about} was confirmed with different results: {sorted(map(_result_of, done))}"
        broken = [exchange for exchange in group if exchange.status == 500]
        if broken:
            yield f"{about} was answered 500: {broken[0].answer}"
        if refused and not done and group[0].kind == "decide" and _in_trail(history, group[0]):
            yield f"{about} was refused with {refused[0].status}, but the trail has it"


def _group_by_request(exchanges: list[Exchange]) -> list[list[Exchange]]:
    groups: dict[str, list[Exchange]] = defaultdict(list)
    for exchange in exchanges:
        if exchange.key is not None:
            groups[f"{exchange.kind} {exchange.actor} {exchange.key} {exchange.body}"].append(exchange)
    return [*groups.values()]


def _result_of(exchange: Exchange) -> str:
    """Return the permanent part of a confirmation: the id of the run or decision."""
    answer = exchange.answer if isinstance(exchange.answer, dict) else {}
    decision = answer.get("decision")
    return str(decision["id"] if isinstance(decision, dict) else answer.get("id"))


def _in_trail(history: History, exchange: Exchange) -> bool:
    return any(
        (decision.decision_id, decision.message) == (decision_id_of(exchange), exchange.body.get("message"))
        for decision in history.index.decisions
    )


INVARIANTS: Mapping[str, Invariant] = {
    "I1 one outcome per item": one_outcome_per_item,
    "I2 every run ends": run_ended,
    "I3 at most once, unless a reviewer allows more": find_repeated_starts,
    "I3 one key per call": find_foreign_keys,
    "I4 no call without a permit": find_early_starts,
    "I4 calls run as decided": find_altered_args,
    "I5 permits are redeemed in time": find_late_permits,
    "I6 nothing confirmed is lost": confirmed_writes_kept,
    "I6 nothing is invented": nothing_invented,
    "I7 the trail is whole": trail_is_chained,
    "I7 every step is legal": steps_are_legal,
    "I8 deadlines hold": deadlines_hold,
    "I8 freezes move deadlines": deadlines_moved_by_freezes,
    "I9 reviewers are eligible": reviewers_are_eligible,
    "I10 every call ends once": calls_completed_once,
    "I10 every suspension resumes once": suspensions_resumed_once,
    "I10 results come from calls that ran": find_untrue_results,
    "I11 denied calls never run": find_forbidden_starts,
    "I12 nothing frozen starts": find_frozen_starts,
    "I13 same request, same answer": repeats_are_answered_alike,
    "I14 late presses name the first": find_silent_refusals,
    "I15 closed items have no buttons": find_armed_cards,
    "I16 one press per decision": find_unpressed_decisions,
    "I17 no card is lost": find_lost_cards,
}
"""Invariants by name, for reports and the page on chaos tests."""
