"""Faults of trails and of exchanges with clients."""

from sayso.core.records.decisions import Verdict
from sayso.core.records.events import EventType, TrailEntry
from sayso.core.records.suspensions import RunStatus
from tests.chaos.checking.history import index_trail
from tests.chaos.checking.tampering import (
    Evidence,
    completed,
    drop,
    twice,
    was_approved,
    was_decided,
    was_denied,
    with_data,
)
from tests.chaos.evidence.client_log import Exchange
from tests.chaos.evidence.freezes import FreezeLine
from tests.chaos.workload.plans import TOOLS


def lost_decision(evidence: Evidence) -> None:
    place, _ = evidence.find(was_decided)
    evidence.rewrite(place, drop(EventType.DECISION_RECORDED))


def lost_start(evidence: Evidence) -> None:
    place, _ = evidence.find(completed)
    evidence.effects = [line for line in evidence.effects if line.run_id != evidence.trails[place].run_id]
    del evidence.trails[place]


def lost_cancel(evidence: Evidence) -> None:
    place, _ = evidence.find(lambda trail, _: trail.status is RunStatus.CANCELLED)
    evidence.rewrite(place, drop(EventType.RUN_CANCELLED))


def late_decision(evidence: Evidence) -> None:
    place, index = evidence.find(was_decided)
    (item,) = index.items.values()

    def delay(entry: TrailEntry) -> list[TrailEntry]:
        moved = {EventType.DECISION_RECORDED, EventType.DECIDED}
        return [entry.model_copy(update={"at_ms": item.deadline_at_ms}) if entry.type in moved else entry]

    evidence.rewrite(place, delay)


def early_timeout(evidence: Evidence) -> None:
    place, _ = evidence.find(lambda _, index: any(one.decision is None for of in index.closings.values() for one in of))

    def hurry(entry: TrailEntry) -> list[TrailEntry]:
        early = entry.model_copy(update={"at_ms": entry.at_ms - 1500})
        return [early if entry.type == EventType.TIMED_OUT else entry]

    evidence.rewrite(place, hurry)


def gap_in_trail(evidence: Evidence) -> None:
    place, _ = evidence.find(completed)
    trail = evidence.trails[place]
    evidence.trails[place] = trail.model_copy(update={"entries": (*trail.entries[:2], *trail.entries[3:])})


def altered_entry(evidence: Evidence) -> None:
    place, _ = evidence.find(was_decided)
    trail = evidence.trails[place]
    forged = [
        with_data(entry, message="forged") if entry.type == EventType.LLM_COMPLETED else entry
        for entry in trail.entries
    ]
    evidence.trails[place] = trail.model_copy(update={"entries": tuple(forged)})


def args_before_the_edit(evidence: Evidence) -> None:
    edits = {(one.suspension_id, one.item_id): place for place, one in enumerate(evidence.exchanges) if _edits(one)}
    for trail in evidence.trails:
        for decision in index_trail(trail.entries).decisions:
            place = edits.get((decision.suspension_id, decision.item_id))
            if place is not None and decision.verdict and evidence.exchanges[place].body["message"] == decision.message:
                body = {name: value for name, value in evidence.exchanges[place].body.items() if name != "args"}
                evidence.exchanges[place] = evidence.exchanges[place].model_copy(update={"body": body})
                return
    raise LookupError("nobody edited anything")


def _edits(exchange: Exchange) -> bool:
    return exchange.kind == "decide" and exchange.confirmed and "args" in exchange.body


def second_outcome(evidence: Evidence) -> None:
    place, _ = evidence.find(was_decided)
    evidence.rewrite(place, twice(EventType.DECISION_RECORDED))


def reversed_outcome(evidence: Evidence) -> None:
    place, _ = evidence.find(was_approved)

    def turn(entry: TrailEntry) -> list[TrailEntry]:
        if entry.type == EventType.DECISION_RECORDED:
            return [with_data(entry, verdict=Verdict.DENIED)]
        return [entry]

    evidence.rewrite(place, turn)


def invented_decision(evidence: Evidence) -> None:
    place, _ = evidence.find(was_decided)

    def rename(entry: TrailEntry) -> list[TrailEntry]:
        if entry.type != EventType.DECISION_RECORDED:
            return [entry]
        return [with_data(entry, decision_id="dec_0", by={"id": "eve", "kind": "human", "channel": "api"})]

    evidence.rewrite(place, rename)


def suspension_never_resumed(evidence: Evidence) -> None:
    evidence.rewrite(evidence.find(was_decided)[0], drop(EventType.RUN_RESUMED))


def resumed_with_another_verdict(evidence: Evidence) -> None:
    def turn(entry: TrailEntry) -> list[TrailEntry]:
        if entry.type == EventType.RUN_RESUMED:
            return [with_data(entry, verdicts=dict.fromkeys(entry.data["verdicts"], Verdict.APPROVED))]
        return [entry]

    evidence.rewrite(evidence.find(was_denied)[0], turn)


def illegal_step(evidence: Evidence) -> None:
    evidence.rewrite(evidence.find(was_decided)[0], drop(EventType.RUN_RESUMING))


def run_never_ended(evidence: Evidence) -> None:
    place, _ = evidence.find(completed)
    evidence.rewrite(place, drop(EventType.RUN_COMPLETED))
    evidence.trails[place] = evidence.trails[place].model_copy(update={"status": RunStatus.RUNNING})


def requester_decides(evidence: Evidence) -> None:
    place, index = evidence.find(was_decided)
    name = index.decisions[0].by
    evidence.rewrite(
        place, lambda entry: [with_data(entry, owner=name) if entry.type == EventType.RUN_STARTED else entry]
    )


def one_approver_of_two(evidence: Evidence) -> None:
    place, index = evidence.find(
        lambda _, index: any(decision.verdict is None and decision.action == "approve" for decision in index.decisions)
    )
    first = next(decision for decision in index.decisions if decision.verdict is None)
    evidence.rewrite(place, lambda entry: [] if entry.seq == first.entry.seq else [entry])


def repeat_started_second_run(evidence: Evidence) -> None:
    start = next(one for one in evidence.exchanges if one.kind == "start" and one.confirmed)
    evidence.exchanges.append(start.model_copy(update={"answer": {"id": "run_other"}}))


def repeat_was_refused(evidence: Evidence) -> None:
    decided = next(one for one in evidence.exchanges if one.kind == "decide" and one.confirmed)
    evidence.exchanges.append(
        decided.model_copy(update={"status": 409, "answer": {"type": "/problems/already-decided"}})
    )


def deadline_moved_without_freeze(evidence: Evidence) -> None:
    place, index = evidence.find(was_decided)
    (item,) = index.items.values()
    moved = {"item_id": item.item_id, "by_ms": 5, "deadline_at_ms": item.deadline_at_ms + 5}
    data = {"suspension_id": item.suspension_id, "items": [moved]}

    def move(entry: TrailEntry) -> list[TrailEntry]:
        if entry.type != EventType.DECISION_RECORDED:
            return [entry]
        return [entry.model_copy(update={"type": EventType.DEADLINES_MOVED, "data": data}), entry]

    evidence.rewrite(place, move)


def late_decision_after_other_freeze(evidence: Evidence) -> None:
    late_decision(evidence)
    _, index = evidence.find(was_decided)
    (item,) = index.items.values()
    other = next(name for name in TOOLS if name != item.tool)
    at_ms, until_ms = item.deadline_at_ms - 5_000, item.deadline_at_ms
    freeze = FreezeLine(scope=f"tool:{other}", at_ms=at_ms, acknowledged_at_ms=at_ms, unfrozen_at_ms=until_ms)
    evidence.freezes.append(freeze)
