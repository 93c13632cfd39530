"""Say what must hold of every run, whatever was killed: one function an invariant, over one run's history.

Each yields a sentence for everything that contradicts it. They read what clients, trail and tools say and compare; none
of them calls anything of Sayso's but the table of legal steps, the trail's hash chain and the canonical digest.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping

from sayso.clock import iso_utc
from sayso.records.decisions import ActorKind, DecisionAction, Verdict
from sayso.records.events import EventType, find_break
from tests.chaos.executions import (
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
from tests.chaos.histories import Asked, History, decision_id_of
from tests.chaos.logs import Said
from tests.chaos.steps import find_illegal_step

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


def one_outcome(history: History) -> Iterator[str]:
    """One outcome an item, told once, and no word after it."""
    for key, closings in history.reading.closings.items():
        if len(closings) > 1:
            yield f"item {key} got {len(closings)} outcomes: {[closing.verdict for closing in closings]}"
        late = [word for word in history.reading.words if (word.suspension_id, word.item_id) == key]
        for word in late:
            if word.entry.seq > closings[0].entry.seq:
                yield f"item {key} took the word {word.decision_id} of {word.by} after its outcome"
    repeated = Counter(word.decision_id for word in history.reading.words)
    for decision_id, times in repeated.items():
        if times > 1:
            yield f"the decision {decision_id} is in the trail {times} times"


def ended(history: History) -> Iterator[str]:
    """Every run comes to an end, and trail and status agree on which."""
    kind = _ENDS.get(history.trail.status)
    if kind is None:
        yield f"the run never ended; it is {history.trail.status}"
    elif not history.entries or history.entries[-1].type != kind:
        last = history.entries[-1].type if history.entries else "nothing"
        yield f"the run is {history.trail.status}, but the last event of its trail is {last}"


def acknowledged(history: History) -> Iterator[str]:
    """What was answered with success is in the trail, and the outcome is the one that was answered."""
    reading = history.reading
    for said in filter(lambda said: said.done, history.said):
        if said.kind == "start" and (not history.entries or history.entries[0].type != EventType.RUN_STARTED):
            yield f"the start of the run was confirmed to {said.actor}, but the trail does not begin with it"
        if said.kind == "cancel" and reading.cancelled is None:
            yield f"the cancelling was confirmed to {said.actor}, but the trail does not have it"
        if said.kind == "decide":
            yield from _find_lost(history, said)


def _find_lost(history: History, said: Said) -> Iterator[str]:
    decision_id = decision_id_of(said)
    words = [word for word in history.reading.words if word.decision_id == decision_id]
    about = f"the word {said.body['action']} of {said.actor} on {said.suspension_id}/{said.item_id}"
    if not words:
        yield f"{about} was confirmed at {iso_utc(said.done_ms)}, but the trail does not have it"
        return
    told = (words[0].suspension_id, words[0].item_id, words[0].action, words[0].by)
    if told != (said.suspension_id, said.item_id, said.body["action"], said.actor):
        yield f"{about} was confirmed, but the trail has another under its id: {told}"
    outcome = said.answer.get("outcome") if isinstance(said.answer, dict) else None
    closings = history.reading.closings.get((str(said.suspension_id), str(said.item_id)), [])
    if isinstance(outcome, dict) and (not closings or closings[0].verdict != outcome["verdict"]):
        yield f"{about} was answered with the outcome {outcome['verdict']}, but the trail has another"


def nothing_invented(history: History) -> Iterator[str]:
    """Every decision in the trail was sent by the person it names, and its outcome is what was said."""
    for word in history.reading.words:
        said = history.request_of(word)
        if said is None or (said.actor, said.body["action"]) != (word.by, word.action):
            yield f"the trail has a decision {word.decision_id} of {word.by} that nobody sent"
        elif word.verdict is not None and word.verdict != _VERDICTS[DecisionAction(word.action)]:
            yield f"{word.by} said {word.action}, but the outcome is {word.verdict}"


def chained(history: History) -> Iterator[str]:
    """The trail is numbered from 1 without gaps, each entry chained to the one before."""
    broken = find_break(list(history.entries))
    if broken is not None:
        yield f"the trail breaks at entry {broken}"
    if history.trail.fault is not None:
        yield f"the trail does not end where the record says: {history.trail.fault}"


def legal(history: History) -> Iterator[str]:
    """The kinds of event are a path through the table of legal steps."""
    yield from find_illegal_step(history.entries)


def in_time(history: History) -> Iterator[str]:
    """Nobody decides at or after the deadline, and the fallback never before it."""
    reading = history.reading
    for word in reading.words:
        asked = reading.asked.get((word.suspension_id, word.item_id))
        if asked is not None and word.entry.at_ms >= _deadline_at_ms(history, asked, word.entry.at_ms):
            deadline = iso_utc(_deadline_at_ms(history, asked, word.entry.at_ms))
            yield f"{word.by} decided at {iso_utc(word.entry.at_ms)}, after the deadline {deadline}"
    for key, closings in reading.closings.items():
        for closing in closings:
            at_ms = closing.entry.at_ms
            deadline_at_ms = _known_deadline_at_ms(history, reading.asked[key], at_ms)
            if closing.entry.type == EventType.TIMED_OUT and at_ms < deadline_at_ms:
                yield f"item {key} timed out at {iso_utc(at_ms)}, before its deadline"


def moved_right(history: History) -> Iterator[str]:
    """An open item's deadline moves by as long as it was frozen; what is decided may only start later."""
    for entry in history.reading.moved:
        for item in entry.data["items"]:
            asked = history.reading.asked[entry.data["suspension_id"], item["item_id"]]
            closing = history.reading.closing_of(asked)
            closed = closing is not None and closing.entry.seq < entry.seq
            wanted_ms = _deadline_at_ms(history, asked, entry.at_ms)
            known_ms = _known_deadline_at_ms(history, asked, entry.at_ms)
            if not known_ms <= item["deadline_at_ms"] <= wanted_ms and not closed:
                told = iso_utc(item["deadline_at_ms"])
                yield f"the deadline of {asked.item_id} moved to {told}, but should have to {iso_utc(wanted_ms)}"


def _deadline_at_ms(history: History, asked: Asked, at_ms: int) -> int:
    """Return the deadline as it stands at a moment: later by as long as the item was frozen up to then."""
    return asked.deadline_at_ms + history.frozen_ms(asked, at_ms)


def _known_deadline_at_ms(history: History, asked: Asked, at_ms: int) -> int:
    """Return the same as everybody must know it: a freeze takes a moment to hold everywhere, and is made up later."""
    return asked.deadline_at_ms + history.frozen_ms(asked, at_ms, at_ms - HOLDS_WITHIN_MS)


def fit_people(history: History) -> Iterator[str]:
    """Only people decide, never the one who asked, nobody twice, and as many as the quorum wants."""
    reading = history.reading
    voices: dict[tuple[str, str], list[str]] = defaultdict(list)
    approvers: dict[tuple[str, str], set[str]] = defaultdict(set)
    for word in reading.words:
        key = word.suspension_id, word.item_id
        if word.by_kind != ActorKind.HUMAN or word.by == reading.owner:
            yield f"{word.by_kind} {word.by} decided on item {key} of a run that {reading.owner} asked for"
        if word.by in voices[key]:
            yield f"{word.by} has two voices on item {key}"
        voices[key].append(word.by)
        if word.action == DecisionAction.APPROVE:
            approvers[key].add(word.by)
    for key, item in history.seen.items():
        needed = item["terms"]["quorum"]["approve"]
        approved = any(
            one.word is not None and one.verdict == Verdict.APPROVED for one in reading.closings.get(key, ())
        )
        if approved and len(approvers[key]) < needed:
            yield f"item {key} was approved by {sorted(approvers[key])}, but needs {needed} people"


def completed_once(history: History) -> Iterator[str]:
    """A call is judged once and told once how it ended; in a run that went to its end none is left out."""
    reading = history.reading
    for call_id, entries in reading.judged.items():
        if len(entries) > 1:
            yield f"the call {call_id} was judged {len(entries)} times"
        if not reading.completed.get(call_id) and history.trail.status in ("completed", "degraded"):
            yield f"the run is {history.trail.status}, but nothing tells how the call {call_id} ended"
    for call_id, entries in reading.completed.items():
        if len(entries) > 1:
            yield f"the call {call_id} was told as completed {len(entries)} times"
    missing = set(history.plan.calls) - set(reading.judged)
    if missing and history.trail.status == "completed":
        yield f"the run completed, but the calls {sorted(missing)} of its plan were never judged"


def resumed_once(history: History) -> Iterator[str]:
    """Each pause is followed by one going on, with the verdicts that were given; only the last may lack it."""
    reading = history.reading
    for suspension_id in reading.paused:
        entries = reading.resumed.get(suspension_id, [])
        cut_off = history.trail.status in ("cancelled", "failed") and suspension_id == reading.paused[-1]
        if len(entries) > 1 or (not entries and not cut_off):
            yield f"the pause {suspension_id} was followed by {len(entries)} times going on"
        for entry in entries:
            for item_id, verdict in entry.data["verdicts"].items():
                closings = reading.closings.get((suspension_id, item_id), [])
                if [closing.verdict for closing in closings] != [verdict]:
                    yield f"the run went on with {item_id} {verdict}, but the outcomes are {closings}"
    for suspension_id in set(reading.resumed) - set(reading.paused):
        yield f"the run went on from {suspension_id}, where it never paused"


def repeated_alike(history: History) -> Iterator[str]:
    """A request that is sent again with its key gets what the first one got."""
    for group in _same_requests(history.said):
        done = [said for said in group if said.done]
        refused = [said for said in group if said.refused]
        about = f"{group[0].kind} of {group[0].actor} with the key {group[0].key}"
        if done and refused:
            yield f"the same {about} was answered {done[0].status} and {refused[0].status}"
        if len({_gist(said) for said in done}) > 1:
            yield f"the same {about} was confirmed with different results: {sorted(map(_gist, done))}"
        broken = [said for said in group if said.status == 500]
        if broken:
            yield f"{about} was answered 500: {broken[0].answer}"
        if refused and not done and group[0].kind == "decide" and _in_trail(history, group[0]):
            yield f"{about} was refused with {refused[0].status}, but the trail has it"


def _same_requests(all_said: list[Said]) -> list[list[Said]]:
    groups: dict[str, list[Said]] = defaultdict(list)
    for said in all_said:
        if said.key is not None:
            groups[f"{said.kind} {said.actor} {said.key} {said.body}"].append(said)
    return [*groups.values()]


def _gist(said: Said) -> str:
    """What a confirmation says for good: which run was made, or which decision; an outcome may still come."""
    answer = said.answer if isinstance(said.answer, dict) else {}
    decision = answer.get("decision")
    return str(decision["id"] if isinstance(decision, dict) else answer.get("id"))


def _in_trail(history: History, said: Said) -> bool:
    return any(
        (word.decision_id, word.message) == (decision_id_of(said), said.body.get("message"))
        for word in history.reading.words
    )


INVARIANTS: Mapping[str, Invariant] = {
    "I1 one outcome an item": one_outcome,
    "I2 every run ends": ended,
    "I3 at most once, unless a person said so": find_repeated_starts,
    "I3 one key a call": find_foreign_keys,
    "I4 no call without leave": find_early_starts,
    "I4 what runs is what was decided": find_altered_args,
    "I5 leave is used in time": find_late_permits,
    "I6 nothing confirmed is lost": acknowledged,
    "I6 nothing is invented": nothing_invented,
    "I7 the trail is whole": chained,
    "I7 every step is legal": legal,
    "I8 the deadline holds": in_time,
    "I8 a deadline moves by what was frozen": moved_right,
    "I9 the right people": fit_people,
    "I10 every call ends once": completed_once,
    "I10 every pause goes on once": resumed_once,
    "I10 a result is of a call that ran": find_untrue_results,
    "I11 what was denied never runs": find_forbidden_starts,
    "I12 what is frozen does not start": find_frozen_starts,
    "I13 the same request, the same answer": repeated_alike,
}
"""Every invariant by its name; the numbers are those of the reliability model."""
