"""Faults to plant into a recorded storm, each with the invariant that it breaks."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sayso.records.decisions import Verdict
from sayso.records.events import Event, EventType, TrailEntry, TrailHead
from sayso.records.suspensions import RunStatus
from tests.chaos.checker import Judgement, check_storm
from tests.chaos.effects import EffectLine, read_effects
from tests.chaos.freezes import FreezeLine, read_freezes
from tests.chaos.histories import Reading, read_trail
from tests.chaos.logs import Said, read_log
from tests.chaos.plans import TOOLS
from tests.chaos.trails import Trail, read_trails
from tests.trails import append_events

RECORDED = Path(__file__).with_name("recorded")


@dataclass
class Evidence:
    """The inputs, ready to be tampered with."""

    said: list[Said]
    trails: list[Trail]
    effects: list[EffectLine]
    freezes: list[FreezeLine]

    def check(self) -> Judgement:
        return check_storm(self.said, self.trails, self.effects, self.freezes)

    def find(self, wanted: Callable[[Trail, Reading], bool]) -> tuple[int, Reading]:
        """Return the place and the reading of the first run that fits."""
        for place, trail in enumerate(self.trails):
            reading = read_trail(trail.entries)
            if wanted(trail, reading):
                return place, reading
        raise LookupError("no recorded run fits")

    def rewrite(self, place: int, change: Callable[[TrailEntry], list[TrailEntry]]) -> None:
        """Change entries of one trail and chain it anew: whoever forges a trail forges its hashes too."""
        trail = self.trails[place]
        head, entries = TrailHead(), []
        for one in [new for old in trail.entries for new in change(old)]:
            head, chained = append_events(head, (Event(EventType(one.type), one.data),), one.at_ms)
            entries += chained
        self.trails[place] = trail.model_copy(update={"entries": tuple(entries)})

    def starts_of(self, run_id: str) -> Iterator[tuple[int, EffectLine]]:
        for place, line in enumerate(self.effects):
            if line.run_id == run_id and line.what == "start":
                yield place, line


def read_evidence() -> Evidence:
    """Return what was recorded, for one test to tamper with."""
    said, trails = list(read_log(RECORDED)), list(read_trails(RECORDED))
    return Evidence(said, trails, list(read_effects(RECORDED)), list(read_freezes(RECORDED)))


def drop(*kinds: EventType) -> Callable[[TrailEntry], list[TrailEntry]]:
    return lambda entry: [] if entry.type in kinds else [entry]


def twice(kind: EventType) -> Callable[[TrailEntry], list[TrailEntry]]:
    return lambda entry: [entry, entry] if entry.type == kind else [entry]


def with_data(entry: TrailEntry, **update: Any) -> TrailEntry:
    return entry.model_copy(update={"data": {**entry.data, **update}})


def completed(trail: Trail, _reading: Reading) -> bool:
    return trail.status is RunStatus.COMPLETED


def was_decided(trail: Trail, reading: Reading) -> bool:
    return completed(trail, reading) and len(reading.words) == 1 and len(reading.asked) == 1


def was_denied(trail: Trail, reading: Reading) -> bool:
    return was_decided(trail, reading) and reading.words[0].action == "deny"


def was_approved(trail: Trail, reading: Reading) -> bool:
    return was_decided(trail, reading) and reading.words[0].action == "approve"


def a_lost_write(evidence: Evidence) -> None:
    place, _ = evidence.find(was_decided)
    evidence.rewrite(place, drop(EventType.DECISION_RECORDED))


def a_lost_start(evidence: Evidence) -> None:
    place, _ = evidence.find(completed)
    evidence.effects = [line for line in evidence.effects if line.run_id != evidence.trails[place].run_id]
    del evidence.trails[place]


def a_lost_cancel(evidence: Evidence) -> None:
    place, _ = evidence.find(lambda trail, _: trail.status is RunStatus.CANCELLED)
    evidence.rewrite(place, drop(EventType.RUN_CANCELLED))


def a_double_call(evidence: Evidence) -> None:
    place, line = next((place, line) for place, line in enumerate(evidence.effects) if not TOOLS[line.tool].idempotent)
    evidence.effects.insert(place + 1, line.model_copy(update={"effect": "eff_again", "at_ms": line.at_ms + 50}))


def a_second_key(evidence: Evidence) -> None:
    place, line = next((place, line) for place, line in enumerate(evidence.effects) if TOOLS[line.tool].idempotent)
    again = {"effect": "eff_again", "at_ms": line.at_ms + 50, "key": f"{line.key}:2"}
    evidence.effects.insert(place + 1, line.model_copy(update=again))


def a_shared_key(evidence: Evidence) -> None:
    first = evidence.effects[0]
    other = next(place for place, line in enumerate(evidence.effects) if line.run_id != first.run_id)
    evidence.effects[other] = evidence.effects[other].model_copy(update={"key": first.key})


def a_late_decision(evidence: Evidence) -> None:
    place, reading = evidence.find(was_decided)
    (asked,) = reading.asked.values()

    def delay(entry: TrailEntry) -> list[TrailEntry]:
        moved = {EventType.DECISION_RECORDED, EventType.DECIDED}
        return [entry.model_copy(update={"at_ms": asked.deadline_at_ms}) if entry.type in moved else entry]

    evidence.rewrite(place, delay)


def an_early_timeout(evidence: Evidence) -> None:
    place, _ = evidence.find(lambda _, reading: any(one.word is None for of in reading.closings.values() for one in of))

    def hurry(entry: TrailEntry) -> list[TrailEntry]:
        early = entry.model_copy(update={"at_ms": entry.at_ms - 1500})
        return [early if entry.type == EventType.TIMED_OUT else entry]

    evidence.rewrite(place, hurry)


def a_gap(evidence: Evidence) -> None:
    place, _ = evidence.find(completed)
    trail = evidence.trails[place]
    evidence.trails[place] = trail.model_copy(update={"entries": (*trail.entries[:2], *trail.entries[3:])})


def an_altered_entry(evidence: Evidence) -> None:
    place, _ = evidence.find(was_decided)
    trail = evidence.trails[place]
    forged = [
        with_data(entry, message="forged") if entry.type == EventType.LLM_COMPLETED else entry
        for entry in trail.entries
    ]
    evidence.trails[place] = trail.model_copy(update={"entries": tuple(forged)})


def altered_args(evidence: Evidence) -> None:
    evidence.effects[0] = evidence.effects[0].model_copy(update={"digest": "0" * 64})


def the_args_before_the_edit(evidence: Evidence) -> None:
    edits = {(one.suspension_id, one.item_id): place for place, one in enumerate(evidence.said) if _edits(one)}
    for trail in evidence.trails:
        for word in read_trail(trail.entries).words:
            place = edits.get((word.suspension_id, word.item_id))
            if place is not None and word.verdict and evidence.said[place].body["message"] == word.message:
                body = {name: value for name, value in evidence.said[place].body.items() if name != "args"}
                evidence.said[place] = evidence.said[place].model_copy(update={"body": body})
                return
    raise LookupError("nobody edited anything")


def _edits(said: Said) -> bool:
    return said.kind == "decide" and said.done and "args" in said.body


def a_second_outcome(evidence: Evidence) -> None:
    place, _ = evidence.find(was_decided)
    evidence.rewrite(place, twice(EventType.DECISION_RECORDED))


def a_turned_outcome(evidence: Evidence) -> None:
    place, _ = evidence.find(was_approved)

    def turn(entry: TrailEntry) -> list[TrailEntry]:
        if entry.type == EventType.DECISION_RECORDED:
            return [with_data(entry, verdict=Verdict.DENIED)]
        return [entry]

    evidence.rewrite(place, turn)


def an_invented_decision(evidence: Evidence) -> None:
    place, _ = evidence.find(was_decided)

    def rename(entry: TrailEntry) -> list[TrailEntry]:
        if entry.type != EventType.DECISION_RECORDED:
            return [entry]
        return [with_data(entry, decision_id="dec_0", by={"id": "eve", "kind": "human", "channel": "api"})]

    evidence.rewrite(place, rename)


def a_call_without_leave(evidence: Evidence) -> None:
    place, _ = evidence.find(was_approved)
    evidence.rewrite(place, drop(EventType.PERMIT_REDEEMED))


def a_call_before_its_leave(evidence: Evidence) -> None:
    place, line = next(evidence.starts_of(evidence.trails[evidence.find(was_approved)[0]].run_id))
    evidence.effects[place] = line.model_copy(update={"at_ms": line.at_ms - 60_000})


def a_permit_after_its_time(evidence: Evidence) -> None:
    place, _ = evidence.find(was_approved)

    def delay(entry: TrailEntry) -> list[TrailEntry]:
        late = entry.model_copy(update={"at_ms": entry.at_ms + 2 * 3_600_000})
        return [late if entry.type == EventType.PERMIT_REDEEMED else entry]

    evidence.rewrite(place, delay)


def a_denied_call_that_ran(evidence: Evidence) -> None:
    place, reading = evidence.find(was_denied)
    (asked,) = reading.asked.values()
    line = evidence.effects[0].model_copy(
        update={"run_id": evidence.trails[place].run_id, "call_id": asked.call_id, "tool": asked.tool, "key": "k"}
    )
    evidence.effects.append(line)


def a_call_after_the_cancel(evidence: Evidence) -> None:
    place, reading = evidence.find(lambda trail, _: trail.status is RunStatus.CANCELLED)
    assert reading.cancelled is not None
    plan = json.loads(
        str(next(one for one in evidence.said if _is_start_of(one, evidence.trails[place])).body["input"])
    )
    call = plan["turns"][0][0]
    update = {"run_id": evidence.trails[place].run_id, "call_id": call["call_id"], "tool": call["tool"]}
    late = {"at_ms": reading.cancelled.at_ms + 100, "key": "k"}
    evidence.effects.append(evidence.effects[0].model_copy(update={**update, **late}))


def _is_start_of(said: Said, trail: Trail) -> bool:
    return said.kind == "start" and isinstance(said.answer, dict) and said.answer.get("id") == trail.run_id


def a_call_told_twice(evidence: Evidence) -> None:
    evidence.rewrite(evidence.find(completed)[0], twice(EventType.TOOL_COMPLETED))


def a_call_never_told(evidence: Evidence) -> None:
    evidence.rewrite(evidence.find(was_decided)[0], drop(EventType.TOOL_COMPLETED))


def an_invented_result(evidence: Evidence) -> None:
    def invent(entry: TrailEntry) -> list[TrailEntry]:
        if entry.type == EventType.TOOL_COMPLETED:
            return [with_data(entry, success=True, output={"effect": "eff_never"})]
        return [entry]

    evidence.rewrite(evidence.find(was_approved)[0], invent)


def a_pause_that_never_went_on(evidence: Evidence) -> None:
    evidence.rewrite(evidence.find(was_decided)[0], drop(EventType.RUN_RESUMED))


def going_on_with_another_verdict(evidence: Evidence) -> None:
    def turn(entry: TrailEntry) -> list[TrailEntry]:
        if entry.type == EventType.RUN_RESUMED:
            return [with_data(entry, verdicts=dict.fromkeys(entry.data["verdicts"], Verdict.APPROVED))]
        return [entry]

    evidence.rewrite(evidence.find(was_denied)[0], turn)


def an_illegal_step(evidence: Evidence) -> None:
    evidence.rewrite(evidence.find(was_decided)[0], drop(EventType.RUN_RESUMING))


def a_run_that_never_ended(evidence: Evidence) -> None:
    place, _ = evidence.find(completed)
    evidence.rewrite(place, drop(EventType.RUN_COMPLETED))
    evidence.trails[place] = evidence.trails[place].model_copy(update={"status": RunStatus.RUNNING})


def the_requester_decides(evidence: Evidence) -> None:
    place, reading = evidence.find(was_decided)
    name = reading.words[0].by
    evidence.rewrite(
        place, lambda entry: [with_data(entry, owner=name) if entry.type == EventType.RUN_STARTED else entry]
    )


def one_person_for_two(evidence: Evidence) -> None:
    place, reading = evidence.find(
        lambda _, reading: any(word.verdict is None and word.action == "approve" for word in reading.words)
    )
    first = next(word for word in reading.words if word.verdict is None)
    evidence.rewrite(place, lambda entry: [] if entry.seq == first.entry.seq else [entry])


def a_repeat_that_made_a_second_run(evidence: Evidence) -> None:
    start = next(one for one in evidence.said if one.kind == "start" and one.done)
    evidence.said.append(start.model_copy(update={"answer": {"id": "run_other"}}))


def a_repeat_that_was_refused(evidence: Evidence) -> None:
    decided = next(one for one in evidence.said if one.kind == "decide" and one.done)
    evidence.said.append(decided.model_copy(update={"status": 409, "answer": {"type": "/problems/already-decided"}}))


def an_effect_of_no_run(evidence: Evidence) -> None:
    evidence.effects.append(evidence.effects[0].model_copy(update={"run_id": "run_unheard_of", "key": "k"}))


def leave_used_while_frozen(evidence: Evidence) -> None:
    place, _ = evidence.find(was_approved)
    permit = next(one for one in evidence.trails[place].entries if one.type == EventType.PERMIT_REDEEMED)
    at_ms = permit.at_ms - 1_500
    evidence.freezes.append(FreezeLine(scope="all", at_ms=at_ms, told_at_ms=at_ms, unfrozen_at_ms=permit.at_ms + 10))


def a_start_while_frozen(evidence: Evidence) -> None:
    line = evidence.effects[0]
    scope, at_ms = f"tool:{line.tool}", line.at_ms - 6_000
    evidence.freezes.append(FreezeLine(scope=scope, at_ms=at_ms, told_at_ms=at_ms, unfrozen_at_ms=line.at_ms + 10))


def a_move_without_a_freeze(evidence: Evidence) -> None:
    place, reading = evidence.find(was_decided)
    (asked,) = reading.asked.values()
    told = {"item_id": asked.item_id, "by_ms": 5, "deadline_at_ms": asked.deadline_at_ms + 5}
    data = {"suspension_id": asked.suspension_id, "items": [told]}

    def move(entry: TrailEntry) -> list[TrailEntry]:
        if entry.type != EventType.DECISION_RECORDED:
            return [entry]
        return [entry.model_copy(update={"type": EventType.DEADLINES_MOVED, "data": data}), entry]

    evidence.rewrite(place, move)


def a_decision_after_a_freeze_of_something_else(evidence: Evidence) -> None:
    a_late_decision(evidence)
    _, reading = evidence.find(was_decided)
    (asked,) = reading.asked.values()
    other = next(name for name in TOOLS if name != asked.tool)
    at_ms, until_ms = asked.deadline_at_ms - 5_000, asked.deadline_at_ms
    freeze = FreezeLine(scope=f"tool:{other}", at_ms=at_ms, told_at_ms=at_ms, unfrozen_at_ms=until_ms)
    evidence.freezes.append(freeze)


PLANTED = {
    leave_used_while_frozen: "I12 what is frozen does not start",
    a_start_while_frozen: "I12 what is frozen does not start",
    a_move_without_a_freeze: "I8 a deadline moves by what was frozen",
    a_decision_after_a_freeze_of_something_else: "I8 the deadline holds",
    a_lost_write: "I6 nothing confirmed is lost",
    a_lost_start: "I6 nothing confirmed is lost",
    a_lost_cancel: "I6 nothing confirmed is lost",
    an_invented_decision: "I6 nothing is invented",
    an_effect_of_no_run: "I6 nothing is invented",
    a_turned_outcome: "I6 nothing is invented",
    a_double_call: "I3 at most once, unless a person said so",
    a_second_key: "I3 one key a call",
    a_shared_key: "I3 one key a call",
    a_late_decision: "I8 the deadline holds",
    an_early_timeout: "I8 the deadline holds",
    a_gap: "I7 the trail is whole",
    an_altered_entry: "I7 the trail is whole",
    an_illegal_step: "I7 every step is legal",
    altered_args: "I4 what runs is what was decided",
    the_args_before_the_edit: "I4 what runs is what was decided",
    a_call_without_leave: "I4 no call without leave",
    a_call_before_its_leave: "I4 no call without leave",
    a_permit_after_its_time: "I5 leave is used in time",
    a_second_outcome: "I1 one outcome an item",
    a_denied_call_that_ran: "I11 what was denied never runs",
    a_call_after_the_cancel: "I11 what was denied never runs",
    a_call_told_twice: "I10 every call ends once",
    a_call_never_told: "I10 every call ends once",
    an_invented_result: "I10 a result is of a call that ran",
    a_pause_that_never_went_on: "I10 every pause goes on once",
    going_on_with_another_verdict: "I10 every pause goes on once",
    a_run_that_never_ended: "I2 every run ends",
    the_requester_decides: "I9 the right people",
    one_person_for_two: "I9 the right people",
    a_repeat_that_made_a_second_run: "I13 the same request, the same answer",
    a_repeat_that_was_refused: "I13 the same request, the same answer",
}
