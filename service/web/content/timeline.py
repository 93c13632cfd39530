"""Tell a run's trail in plain words, one line an event; what is unknown is shown as it is, never dropped."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from sayso.records.events import EventType, TrailEntry
from sayso.text.invisible import UNCHECKED
from service.store.runs.runs import UNREADABLE
from service.web.content.sentences import join_words
from service.web.content.summaries import write_pretty
from service.web.content.times import describe_clock, describe_span


@dataclass(frozen=True)
class Line:
    """One event as it is told: a sentence, what was said with it, and raw data where the words do not carry it all.

    The tone is one of good, bad, wait, plain and quiet. A line that others told names its teller, and how far below the
    first invocation it happened.
    """

    seq: int
    at_ms: int
    kind: str
    tone: str
    text: str
    note: str = ""
    data: str = ""
    teller: str = ""
    depth: int = 0


class Facts:
    """An event's data, read with care: it may have been written by another version."""

    def __init__(self, data: Mapping[str, Any], names: Mapping[str, str]) -> None:
        self._data = data
        self._names = names

    def word(self, key: str, other: str = "") -> str:
        """Return a text, or a number written out."""
        value = self._data.get(key)
        return str(value) if isinstance(value, str | int | float) and value != "" else other

    def true(self, key: str) -> bool:
        """Tell whether a flag is set."""
        return self._data.get(key) is True

    def words(self, key: str) -> list[str]:
        """Return the texts of a list."""
        value = self._data.get(key)
        return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []

    def rows(self, key: str) -> list["Facts"]:
        """Return the objects of a list."""
        value = self._data.get(key)
        return [Facts(one, self._names) for one in value if isinstance(one, dict)] if isinstance(value, list) else []

    def inner(self, key: str) -> "Facts":
        """Return an object inside."""
        value = self._data.get(key)
        return Facts(value if isinstance(value, dict) else {}, self._names)

    def value(self, key: str) -> JsonValue:
        """Return whatever is there."""
        value: JsonValue = self._data.get(key)
        return value

    def count(self, key: str) -> int:
        """Return a whole number, 0 where there is none."""
        value = self._data.get(key)
        return value if isinstance(value, int) else 0

    def moment(self, key: str) -> str:
        """Return a moment in words."""
        return describe_clock(self.count(key)) if self.count(key) else "an unknown moment"

    @property
    def item(self) -> str:
        """The tool of the item that is meant, as far as the trail has told it, else the item's id."""
        item_id = self.word("item_id", "an item")
        return self._names.get(f"{self.word('suspension_id')}/{item_id}", item_id)


Told = tuple[str, str, str]
"""Tone, sentence, note."""


def describe_trail(entries: Iterable[TrailEntry]) -> list[Line]:
    """Return a line for every entry, in order."""
    names: dict[str, str] = {}
    lines: list[Line] = []
    suspension_id = ""
    for entry in entries:
        if entry.type == EventType.RUN_PAUSED:
            payload = Facts(entry.data, {}).inner("payload")
            suspension_id = payload.word("suspension_id")
            for asked in payload.rows("items"):
                names[f"{suspension_id}/{asked.word('item_id')}"] = asked.word("tool_name")
        lines.append(_tell(entry, Facts({"suspension_id": suspension_id, **entry.data}, names)))
    return lines


def _tell(entry: TrailEntry, facts: Facts) -> Line:
    tell = TELLERS.get(entry.type)
    if tell is None:
        return Line(
            seq=entry.seq,
            at_ms=entry.at_ms,
            kind=entry.type,
            tone="plain",
            text=entry.type.replace("_", " ").capitalize(),
            data=write_pretty(entry.data) if entry.data else "",
        )
    tone, text, note = tell(facts)
    data = ""
    if entry.type in (EventType.TOOL_COMPLETED, EventType.OUTCOME_REPORTED) and facts.value("output") is not None:
        data = write_pretty(facts.value("output"))
    return Line(entry.seq, entry.at_ms, entry.type, tone, text, note, data)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _run_started(facts: Facts) -> Told:
    title = facts.word("claimed_title") or facts.word("title")
    note = f"{UNCHECKED}: {title}" if title else ""
    return "plain", f"{facts.word('owner', 'Somebody')} started {facts.word('agent', 'an agent')}", note


def _llm_completed(facts: Facts) -> Told:
    calls = facts.count("tool_call_count")
    return (
        "plain",
        f"The model asked for {_count(calls, 'call')}" if calls else "The model answered",
        facts.word("text"),
    )


def _batch_started(facts: Facts) -> Told:
    return "quiet", f"Judging {_count(facts.count('tool_call_count'), 'call')}", join_words(facts.words("tool_names"))


_ACTIONS = {
    "allow": ("quiet", "is allowed"),
    "deny": ("bad", "is denied by the rules"),
    "request_approval": ("wait", "needs approval"),
    "defer": ("wait", "needs approval"),
    "request_user_input": ("wait", "needs a value"),
}


def _policy_decision(facts: Facts) -> Told:
    tone, words = _ACTIONS.get(facts.word("action"), ("plain", f"was judged: {facts.word('action', 'unknown')}"))
    error = f" (judging failed: {facts.word('error')})" if facts.word("error") else ""
    what = "Asking the model" if facts.word("event_type") == "llm_before_execute" else "A call"
    return tone, f"{facts.word('tool_name', what)} {words}", facts.word("reason") + error


def _run_paused(facts: Facts) -> Told:
    asked = [row.word("tool_name") for row in facts.inner("payload").rows("items")]
    return "wait", f"Waiting for people: {join_words(asked) or facts.word('tool_name', 'a call')}", facts.word("reason")


_SAID = {"approve": "approved", "deny": "denied", "value": "gave a value for", "fail": "failed"}


def _decision_recorded(facts: Facts) -> Told:
    action = facts.word("action")
    who = facts.inner("by").word("id", "Somebody")
    edited = " with other arguments" if facts.true("edited") else ""
    short = "" if facts.word("verdict") else "; it takes more"
    tone = "bad" if action in ("deny", "fail") else "good"
    return tone, f"{who} {_SAID.get(action, action)} {facts.item}{edited}{short}", facts.word("message")


def _decided(facts: Facts) -> Told:
    closed = facts.words("closed_with_it")
    also = "One answer was enough; the others are closed" if closed else "Everything asked is decided"
    return "plain", f"{also}; the run can go on", ""


def _timed_out(facts: Facts) -> Told:
    good = facts.word("verdict") in ("approved", "answered")
    text = f"Nobody answered in time: {facts.item} {facts.word('verdict', 'decided')} by its fallback"
    return "good" if good else "bad", text, ""


def _escalated(facts: Facts) -> Told:
    people = join_words(facts.words("reviewers")) or "more reviewers"
    return "wait", f"Nobody answered in time: {people} asked too", f"until {facts.moment('deadline_at_ms')}"


def _deadline_extended(facts: Facts) -> Told:
    who = facts.inner("by").word("id", "Somebody")
    return "plain", f"{who} gave more time for {facts.item}", f"until {facts.moment('deadline_at_ms')}"


def _item_seen(facts: Facts) -> Told:
    return "quiet", f"{facts.inner('by').word('id', 'Somebody')} saw {facts.item}", ""


def _asked_again(facts: Facts) -> Told:
    return "wait", f"{facts.item} is asked again", facts.word("reason")


def _deadlines_moved(facts: Facts) -> Told:
    span = describe_span(max((row.count("by_ms") for row in facts.rows("items")), default=0))
    people = join_words(sorted({who for row in facts.rows("freezes") if (who := row.word("unfrozen_by"))}))
    return "plain", f"No longer frozen: every deadline moved by {span}", f"lifted by {people}" if people else ""


def _result_reported(facts: Facts) -> Told:
    return "good", f"The worker that had begun {facts.item} reported its result after all", ""


def _run_released(facts: Facts) -> Told:
    return "quiet", "The worker put the run back for another one", facts.word("reason")


def _run_revived(facts: Facts) -> Told:
    return "plain", f"{facts.inner('by').word('id', 'Somebody')} had the run taken up once more", ""


def _run_resuming(facts: Facts) -> Told:
    attempt = facts.count("attempt")
    return "quiet", "A worker took the run up" + (f" (attempt {attempt})" if attempt > 1 else ""), ""


def _run_resumed(facts: Facts) -> Told:
    return "plain", "The run went on" + ("" if facts.true("approved") else ", with a denial"), ""


def _tool_completed(facts: Facts) -> Told:
    name = facts.word("tool_name", "A call")
    if not facts.true("success"):
        return "bad", f"{name} did not succeed", facts.word("error")
    latency = facts.value("latency_ms")
    took = f" in {latency:.0f} ms" if isinstance(latency, int | float) else ""
    return "good", f"{name} ran{took}", ""


def _permit_lapsed(facts: Facts) -> Told:
    name = facts.word("tool_name", "A call")
    if facts.true("started"):
        return "bad", f"Nobody reported what came of {name}; it may have run", ""
    return "bad", f"Nobody started {name} in time; its leave ended", ""


def _batch_completed(facts: Facts) -> Told:
    failures = facts.count("failure_count")
    return (
        "quiet",
        f"{_count(facts.count('tool_call_count'), 'call')} done"
        + (f", {failures} without success" if failures else ""),
        "",
    )


def _run_postponed(facts: Facts) -> Told:
    text = f"Attempt {facts.count('attempt')} could not go on; again at {facts.moment('again_at_ms')}"
    return "bad", text, facts.word("error")


def _ended(tone: str, text: str) -> Callable[[Facts], Told]:
    def tell(facts: Facts) -> Told:
        return tone, text, facts.word("error")

    return tell


def _run_cancelled(facts: Facts) -> Told:
    who = facts.inner("by").word("id", "The agent itself")
    begun = len(facts.words("calls_in_flight"))
    calls = "a call was" if begun == 1 else f"{begun} calls were"
    meanwhile = f" while {calls} under way, which may have run" if begun else ""
    return "bad", f"{who} cancelled the run{meanwhile}", facts.word("reason") or facts.word("error")


TELLERS: Mapping[str, Callable[[Facts], Told]] = {
    EventType.RUN_STARTED: _run_started,
    EventType.LLM_COMPLETED: _llm_completed,
    EventType.TOOL_BATCH_STARTED: _batch_started,
    EventType.POLICY_DECISION: _policy_decision,
    EventType.RUN_PAUSED: _run_paused,
    EventType.DECISION_RECORDED: _decision_recorded,
    EventType.DECIDED: _decided,
    EventType.TIMED_OUT: _timed_out,
    EventType.REVIEWER_REMINDED: lambda facts: ("plain", f"Reviewers were reminded of {facts.item}", ""),
    EventType.ESCALATED: _escalated,
    EventType.DEADLINE_EXTENDED: _deadline_extended,
    EventType.ITEM_SEEN: _item_seen,
    EventType.ASKED_AGAIN: _asked_again,
    EventType.DEADLINES_MOVED: _deadlines_moved,
    EventType.RESULT_REPORTED: _result_reported,
    EventType.RUN_RELEASED: _run_released,
    EventType.RUN_REVIVED: _run_revived,
    EventType.RUN_RESUMING: _run_resuming,
    EventType.RUN_RESUMED: _run_resumed,
    EventType.PERMIT_REDEEMED: lambda facts: ("quiet", f"The leave to run {facts.item} was spent", ""),
    EventType.PERMIT_LAPSED: _permit_lapsed,
    EventType.PERMIT_RETURNED: lambda facts: ("quiet", f"{facts.item} did not start; its permit counts again", ""),
    EventType.OUTCOME_REPORTED: _tool_completed,
    EventType.TOOL_COMPLETED: _tool_completed,
    EventType.TOOL_BATCH_COMPLETED: _batch_completed,
    EventType.WARNING: lambda facts: ("wait", facts.word("message", "Warning"), ""),
    EventType.RUN_POSTPONED: _run_postponed,
    EventType.RUN_COMPLETED: _ended("good", "The run is complete"),
    EventType.RUN_DEGRADED: _ended("wait", "The run ended early"),
    EventType.RUN_FAILED: _ended("bad", "The run failed"),
    EventType.RUN_CANCELLED: _run_cancelled,
    UNREADABLE: lambda _facts: ("bad", "An event that cannot be read: it is damaged in the store", ""),
}
