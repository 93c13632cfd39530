"""A run's audit trail in sentences, one line per event; unknown events are shown as raw data."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sayso.records.events import EventType, TrailEntry
from sayso.sentences.deliveries import name_recipient
from sayso.sentences.names import join_words, name_reviewers
from sayso.sentences.outcomes import ACTIONS, LATE, describe_fallback_verdict
from sayso.sentences.times import describe_span
from sayso.text.invisible import UNCHECKED
from sayso.text.language import mark
from sayso.text.summaries import write_pretty
from service.store.runs.runs import UNREADABLE
from service.web.content.facts import Facts


@dataclass(frozen=True)
class Line:
    """One event as a sentence, a note and further data; the tone is good, bad, wait, plain or quiet."""

    seq: int
    at_ms: int
    kind: str
    tone: str
    text: str
    note: str = ""
    data: str = ""
    source: str = ""
    depth: int = 0

    @property
    def voice(self) -> str:
        """Whose statement this is: that of Sayso, of the rules or of the agent."""
        return "agent" if self.source else _VOICES.get(self.kind, "sayso")


_VOICES: Mapping[str, str] = {
    EventType.POLICY_DECISION: "rules",
    EventType.ASKED_AGAIN: "rules",
    EventType.LLM_COMPLETED: "agent",
    EventType.OUTCOME_REPORTED: "agent",
    EventType.REQUESTER_ANSWERED: "agent",
}
VOICES = {"sayso": "Sayso", "rules": mark("Rules"), "agent": mark("Agent")}
"""The names of the voices in a timeline."""

Sentence = tuple[str, str, str]  # tone, sentence, note


def describe_trail(entries: Iterable[TrailEntry]) -> list[Line]:
    """Return a line for every entry, in order."""
    names: dict[str, str] = {}
    lines: list[Line] = []
    suspension_id = ""
    for entry in entries:
        if entry.type == EventType.RUN_PAUSED:
            payload = Facts(entry.data).object("payload")
            suspension_id = payload.text("suspension_id")
            for item in payload.objects("items"):
                names[f"{suspension_id}/{item.text('item_id')}"] = item.text("tool_name")
        lines.append(_describe(entry, Facts({"suspension_id": suspension_id, **entry.data}, names)))
    return lines


def _describe(entry: TrailEntry, facts: Facts) -> Line:
    describe = DESCRIBERS.get(entry.type)
    if describe is None:
        data = write_pretty(entry.data) if entry.data else ""
        return Line(entry.seq, entry.at_ms, entry.type, "plain", entry.type.replace("_", " ").capitalize(), data=data)
    tone, text, note = describe(facts)
    has_output = entry.type in (EventType.TOOL_COMPLETED, EventType.OUTCOME_REPORTED)
    data = write_pretty(facts.value("output")) if has_output and facts.value("output") is not None else ""
    return Line(entry.seq, entry.at_ms, entry.type, tone, text, note, data)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _llm_completed(facts: Facts) -> Sentence:
    calls = facts.number("tool_call_count")
    text = f"The model requested {_count(calls, 'call')}" if calls else "The model answered"
    return "plain", text, facts.text("text")


_POLICY_ACTIONS = {
    "allow": ("quiet", "is allowed"),
    "deny": ("bad", "is denied by the rules"),
    "request_approval": ("wait", "needs approval"),
    "defer": ("wait", "needs approval"),
    "request_user_input": ("wait", "needs a value"),
}


def _policy_decision(facts: Facts) -> Sentence:
    unknown = ("plain", f"was evaluated: {facts.text('action', 'unknown')}")
    tone, verb = _POLICY_ACTIONS.get(facts.text("action"), unknown)
    error = f" (evaluation failed: {facts.text('error')})" if facts.text("error") else ""
    subject = "The model request" if facts.text("event_type") == "llm_before_execute" else "A call"
    return tone, f"{facts.text('tool_name', subject)} {verb}", facts.text("reason") + error


def _run_suspended(facts: Facts) -> Sentence:
    tools = join_words([row.text("tool_name") for row in facts.object("payload").objects("items")])
    return "wait", f"Waiting for a decision on {tools or facts.text('tool_name', 'a call')}", facts.text("reason")


def _decision_recorded(facts: Facts) -> Sentence:
    action = facts.text("action")
    edited = " with edited arguments" if facts.flag("edited") else ""
    more = "" if facts.text("verdict") else "; more decisions are needed"
    text = f"{facts.actor} {ACTIONS.get(action, action)} {facts.item}{edited}{more}"
    return "bad" if action in ("deny", "fail") else "good", text, facts.text("message")


def _decided(facts: Facts) -> Sentence:
    covered = facts.texts("closed_with_it")
    subject = "One decision was enough and the other items are closed" if covered else "All items are decided"
    return "plain", f"{subject}; the run can continue", ""


def _timed_out(facts: Facts) -> Sentence:
    verdict = facts.text("verdict")
    text = f"{LATE}: {facts.item} was {describe_fallback_verdict(verdict)}"
    return "good" if verdict in ("approved", "answered") else "bad", text, ""


def _until(tone: str, text: str, facts: Facts, key: str = "deadline_at_ms") -> Sentence:
    return tone, text, f"until {facts.clock(key)}"


def _deadlines_moved(facts: Facts) -> Sentence:
    span = describe_span(max((row.number("by_ms") for row in facts.objects("items")), default=0))
    people = join_words(sorted({name for row in facts.objects("freezes") if (name := row.text("unfrozen_by"))}))
    return "plain", f"No longer frozen: every deadline moved by {span}", f"unfrozen by {people}" if people else ""


def _card(tone: str, verb: str, facts: Facts) -> Sentence:
    text = f"{name_recipient(facts.text('person'))} {verb} notified of {facts.item} over {facts.text('channel')}"
    return tone, text, facts.text("reason")


def _tool_completed(facts: Facts) -> Sentence:
    name = facts.text("tool_name", "A call")
    if not facts.flag("success"):
        return "bad", f"{name} failed", facts.text("error")
    return "good", f"{name} ran{facts.latency()}", ""


def _permit_lapsed(facts: Facts) -> Sentence:
    name = facts.text("tool_name", "a call")
    if facts.flag("started"):
        return "bad", f"No result was reported for {name}; it may have run", ""
    return "bad", f"The permit for {name} expired before the call started", ""


def _run_cancelled(facts: Facts) -> Sentence:
    by = facts.object("by").text("id", "The agent")
    running = len(facts.texts("calls_in_flight"))
    meanwhile = f" while {_count(running, 'call')} may have been running" if running else ""
    return "bad", f"{by} cancelled the run{meanwhile}", facts.text("reason") or facts.text("error")


DESCRIBERS: Mapping[str, Callable[[Facts], Sentence]] = {
    EventType.RUN_STARTED: lambda facts: (
        "plain",
        f"{facts.text('owner', 'Somebody')} started {facts.text('agent', 'an agent')}",
        f"{UNCHECKED}: {title}" if (title := facts.text("claimed_title") or facts.text("title")) else "",
    ),
    EventType.LLM_COMPLETED: _llm_completed,
    EventType.TOOL_BATCH_STARTED: lambda facts: (
        "quiet",
        f"Evaluating {_count(facts.number('tool_call_count'), 'call')}",
        join_words(facts.texts("tool_names")),
    ),
    EventType.POLICY_DECISION: _policy_decision,
    EventType.RUN_PAUSED: _run_suspended,
    EventType.DECISION_RECORDED: _decision_recorded,
    EventType.DECIDED: _decided,
    EventType.TIMED_OUT: _timed_out,
    EventType.REVIEWER_REMINDED: lambda facts: ("plain", f"Reviewers were reminded of {facts.item}", ""),
    EventType.ESCALATED: lambda facts: _until(
        "wait", f"{facts.item} was escalated to {name_reviewers(facts.texts('reviewers')) or 'more reviewers'}", facts
    ),
    EventType.DEADLINE_EXTENDED: lambda facts: _until(
        "plain", f"{facts.actor} extended the deadline of {facts.item}", facts
    ),
    EventType.CARD_MOVED: lambda facts: (
        "plain",
        f"The card of {facts.item} goes to {facts.text('delegate')}, because {facts.text('person')} is absent",
        "",
    ),
    EventType.ITEM_CLAIMED: lambda facts: _until("plain", f"{facts.actor} claimed {facts.item}", facts, "until_ms"),
    EventType.CLAIM_RELEASED: lambda facts: ("quiet", f"{facts.actor} released {facts.item}", ""),
    EventType.REQUESTER_ASKED: lambda facts: (
        "wait",
        f"{facts.actor} asked the requester about {facts.item}",
        facts.text("text"),
    ),
    EventType.REQUESTER_ANSWERED: lambda facts: (
        "plain",
        f"{facts.actor} answered about {facts.item}",
        f"{UNCHECKED}: {facts.text('text')}",
    ),
    EventType.ITEM_SEEN: lambda facts: ("quiet", f"{facts.actor} opened {facts.item}", ""),
    EventType.CARD_SENT: lambda facts: _card("quiet", "was", facts),
    EventType.CARD_FAILED: lambda facts: _card("bad", "was not", facts),
    EventType.ASKED_AGAIN: lambda facts: ("wait", f"{facts.item} needs a new decision", facts.text("reason")),
    EventType.DEADLINES_MOVED: _deadlines_moved,
    EventType.RESULT_REPORTED: lambda facts: ("good", f"The worker that started {facts.item} reported its result", ""),
    EventType.RUN_RELEASED: lambda facts: ("quiet", "The worker released the run", facts.text("reason")),
    EventType.RUN_REVIVED: lambda facts: ("plain", f"{facts.actor} retried the run", ""),
    EventType.RUN_RESUMING: lambda facts: (
        "quiet",
        "A worker leased the run" + (f" (attempt {attempt})" if (attempt := facts.number("attempt")) > 1 else ""),
        "",
    ),
    EventType.RUN_RESUMED: lambda facts: (
        "plain",
        "The run resumed" if facts.flag("approved") else "The run resumed after a denial",
        "",
    ),
    EventType.PERMIT_REDEEMED: lambda facts: ("quiet", f"The permit for {facts.item} was redeemed", ""),
    EventType.PERMIT_LAPSED: _permit_lapsed,
    EventType.PERMIT_RETURNED: lambda facts: ("quiet", f"{facts.item} did not start; its permit is valid again", ""),
    EventType.OUTCOME_REPORTED: _tool_completed,
    EventType.TOOL_COMPLETED: _tool_completed,
    EventType.TOOL_BATCH_COMPLETED: lambda facts: (
        "quiet",
        f"{_count(facts.number('tool_call_count'), 'call')} finished"
        + (f", {failures} failed" if (failures := facts.number("failure_count")) else ""),
        "",
    ),
    EventType.WARNING: lambda facts: ("wait", facts.text("message", "Warning"), ""),
    EventType.RUN_POSTPONED: lambda facts: (
        "bad",
        f"Attempt {facts.number('attempt')} failed; the next is at {facts.clock('again_at_ms')}",
        facts.text("error"),
    ),
    EventType.RUN_COMPLETED: lambda facts: ("good", "The run completed", facts.text("error")),
    EventType.RUN_DEGRADED: lambda facts: ("wait", "The run ended early", facts.text("error")),
    EventType.RUN_FAILED: lambda facts: ("bad", "The run failed", facts.text("error")),
    EventType.RUN_CANCELLED: _run_cancelled,
    UNREADABLE: lambda _facts: ("bad", "This event is damaged in the store and cannot be read", ""),
}
