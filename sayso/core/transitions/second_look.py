"""Transitions about calls that ran: the second look of another person, and the undoing of one."""

from typing import NamedTuple

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import RUNNING, Actor
from sayso.core.records.events import Event, EventType, TrailEntry
from sayso.core.records.suspensions import Change, OperatorNote, Status, SuspensionRecord
from sayso.core.records.terms import GROUP_PREFIX
from sayso.core.records.undoing import Reversal
from sayso.core.transitions.decision_checks import check_person
from sayso.core.transitions.legal import check_step
from sayso.errors import AlreadyDecided, InvalidInput, NotAllowed, SelfApproval

LONGEST_REASON = 2000
_GOING_ON = (Status.PENDING, Status.DECIDED, Status.RESUMING)


class Opinion(NamedTuple):
    """What a person thinks of the call; without agreement it needs a reason."""

    agrees: bool
    reason: str = ""


class Seen(NamedTuple):
    """The call of a second look: the trail event that allowed or decided it, and who decided it, if people did."""

    seq: int
    tool: str
    rule_id: str | None
    verdict: str
    reviewers: tuple[str, ...]
    deciders: tuple[str, ...]

    @property
    def ran(self) -> bool:
        return self.verdict == "allowed" or self.verdict in RUNNING


def read_seen(entry: TrailEntry, deciders: tuple[str, ...] = ()) -> Seen:
    """Return the call that a trail event allowed or decided; `deciders` decided the same item earlier."""
    data = entry.data
    by = data.get("by")
    people = (*deciders, str(by["id"])) if isinstance(by, dict) and "id" in by else deciders
    named = data.get("reviewers")
    return Seen(
        seq=entry.seq,
        tool=str(data.get("tool_name", "")),
        rule_id=data.get("policy_id") or data.get("rule_id"),
        verdict=str(data.get("verdict") or "allowed"),
        reviewers=tuple(map(str, named)) if isinstance(named, list) else (),
        deciders=tuple(dict.fromkeys(people)),
    )


def check_second_looker(record: SuspensionRecord, seen: Seen, by: Actor) -> None:
    """Raise for somebody who decided, is behind the run, or is none of the reviewers that the rule names."""
    check_person(by)
    if by.id in record.run.requesters:
        raise SelfApproval(owner=by.id)
    if by.id in seen.deciders:
        raise AlreadyDecided("You decided this call. Its second look needs somebody else.", decided_by=by.id)
    if seen.reviewers and {by.id, *(f"{GROUP_PREFIX}{group}" for group in by.groups)}.isdisjoint(seen.reviewers):
        raise NotAllowed(
            f"Only {', '.join(seen.reviewers)} can take this second look. Ask one of them.",
            reviewers=list(seen.reviewers),
        )


def take_second_look(record: SuspensionRecord, seen: Seen, opinion: Opinion, by: Actor, now_ms: int) -> Change:
    """Record whether a person agrees; raises `InvalidInput` without a reason, or as `check_second_looker`."""
    check_step(record, "take_second_look")
    check_second_looker(record, seen, by)
    reason = opinion.reason.strip()
    if len(reason) > LONGEST_REASON:
        raise InvalidInput(f"The reason has {len(reason)} characters. Shorten it to {LONGEST_REASON}.")
    if not opinion.agrees and not reason:
        raise InvalidInput("A disagreement needs a reason. Add what was wrong with this call.")
    data: JsonObject = {
        "seen": seen.seq,
        "tool_name": seen.tool,
        "rule_id": seen.rule_id,
        "verdict": seen.verdict,
        "ran": seen.ran,
        "agrees": opinion.agrees,
        "reason": reason,
        "by": by.model_dump(mode="json", include={"id", "kind", "channel"}),
    }
    updated = record.model_copy(update={"updated_at_ms": max(now_ms, record.updated_at_ms)})
    return Change(updated, (Event(EventType.SECOND_LOOK_TAKEN, data),))


class Undone(NamedTuple):
    """How the undo of a call ended; without `success` it is not known whether it had its effect."""

    call: Reversal
    success: bool | None
    error: str | None
    by: Actor
    offer_id: str

    @property
    def text(self) -> str:
        """What the agent gets to know of it."""
        named = f"your call {self.call.tool} ({self.call.call_id})"
        if self.success:
            return f"I had {named} undone. Its effect no longer holds."
        if self.success is None:
            return f"I had {named} undone, and nobody knows whether that worked. Check before you rely on it."
        return f"I wanted {named} undone, and that failed. Its effect may still hold, in part or whole."


def note_undone(record: SuspensionRecord, undone: Undone, now_ms: int) -> Change:
    """Record on a run how the undo of one of its calls ended, and write it to an agent that goes on."""
    check_step(record, "note_undone")
    by = Actor(id=undone.by.id, kind=undone.by.kind, channel=undone.by.channel)
    data: JsonObject = {
        "tool_name": undone.call.tool,
        "call_id": undone.call.call_id,
        "suspension_id": undone.offer_id,
        "success": undone.success,
        "error": undone.error,
        "by": by.model_dump(mode="json", include={"id", "kind", "channel"}),
    }
    update: dict[str, object] = {"updated_at_ms": max(now_ms, record.updated_at_ms)}
    if record.end is None and record.status in _GOING_ON:
        note = OperatorNote(id=f"undo_{undone.offer_id}", by=by, text=undone.text, at_ms=now_ms)
        update["notes"] = (*record.notes, note)
    return Change(record.model_copy(update=update), (Event(EventType.CALL_UNDONE, data),))
