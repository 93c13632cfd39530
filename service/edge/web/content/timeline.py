"""A run's audit trail in sentences, one line per event; unknown events are shown as raw data."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import DecisionAction, Verdict
from sayso.core.records.events import EventType, TrailEntry
from sayso.core.records.proofs import Ending
from sayso.core.rendering.renderers import render_call
from sayso.core.rendering.views import View
from sayso.core.sentences import join_words, name_reviewers
from sayso.core.sentences.deadlines import describe_span
from sayso.core.sentences.deliveries import name_recipient
from sayso.core.sentences.outcomes import describe_maker
from sayso.core.text.invisible import UNCHECKED
from sayso.core.text.language import _, mark, ngettext
from sayso.core.text.summaries import write_pretty
from sayso.core.urls import is_plain_https
from service.core.store.runs.runs import UNREADABLE
from service.edge.web.content.facts import Facts


class Line(NamedTuple):
    """One event as a sentence, a note and further data; the tone is good, bad, wait, plain or quiet.

    `until_ms` is the time until which the event holds, if it has one. `lists` are lists of objects, which the page
    shows as tables, and `link` is a URL that the agent asks its user to open.
    """

    seq: int
    at_ms: int
    kind: str
    tone: str
    text: str
    note: str = ""
    data: str = ""
    source: str = ""
    depth: int = 0
    until_ms: int = 0
    lists: JsonObject | None = None
    link: str = ""

    @property
    def view(self) -> View | None:
        """The lists as the page shows them."""
        return render_call("result", self.lists) if self.lists else None

    @property
    def is_safe(self) -> bool:
        """Whether the page makes the link one to follow: https, and nothing in it that hides where it leads."""
        return is_plain_https(self.link)

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
VOICES = {"sayso": "Sayso", "rules": mark("Rules"), "agent": mark("Agent")}  # the names of the voices in a timeline
_UNTIL: Mapping[str, str] = {
    EventType.ESCALATED: "deadline_at_ms",
    EventType.STAGE_STARTED: "deadline_at_ms",
    EventType.DEADLINE_EXTENDED: "deadline_at_ms",
    EventType.ITEM_CLAIMED: "until_ms",
}

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
    note = note if entry.erased_by is None else _("Contents erased")
    has_output = entry.type in (EventType.TOOL_COMPLETED, EventType.OUTCOME_REPORTED)
    data = write_pretty(facts.value("output")) if has_output and facts.value("output") is not None else ""
    until_ms = facts.number(_UNTIL.get(entry.type, ""))
    return Line(entry.seq, entry.at_ms, entry.type, tone, text, note, data, until_ms=until_ms)


def _llm_completed(facts: Facts) -> Sentence:
    calls = facts.number("tool_call_count")
    text = _("The model answered")
    if calls:
        text = ngettext("The model requested %(num)s call", "The model requested %(num)s calls", calls)
    return "plain", text, facts.text("text")


_POLICY_ACTIONS = {
    "allow": ("quiet", mark("%(call)s is allowed")),
    "deny": ("bad", mark("%(call)s is denied by the rules")),
    "request_approval": ("wait", mark("%(call)s needs approval")),
    "defer": ("wait", mark("%(call)s needs approval")),
    "request_user_input": ("wait", mark("%(call)s needs a value")),
}


def _policy_decision(facts: Facts) -> Sentence:
    unknown = ("plain", mark("%(call)s was evaluated: %(action)s"))
    tone, sentence = _POLICY_ACTIONS.get(facts.text("action"), unknown)
    error = _(" (evaluation failed: %(error)s)", error=facts.text("error")) if facts.text("error") else ""
    subject = _("The model request") if facts.text("event_type") == "llm_before_execute" else _("A call")
    named = {"call": facts.text("tool_name", subject), "action": facts.text("action", _("unknown"))}
    return tone, _(sentence) % named, facts.text("reason") + error


def _run_suspended(facts: Facts) -> Sentence:
    tools = join_words([row.text("tool_name") for row in facts.object("payload").objects("items")])
    call = tools or facts.text("tool_name", _("a call"))
    return "wait", _("Waiting for a decision on %(call)s", call=call), facts.text("reason")


_DECISIONS: Mapping[str, str] = {
    DecisionAction.APPROVE: mark("%(who)s approved %(item)s"),
    DecisionAction.DENY: mark("%(who)s denied %(item)s"),
    DecisionAction.VALUE: mark("%(who)s gave a value for %(item)s"),
    DecisionAction.FAIL: mark("%(who)s failed %(item)s"),
}


def _decision_recorded(facts: Facts) -> Sentence:
    action = facts.text("action")
    named = {"who": facts.actor, "item": facts.item, "action": action}
    text = _(_DECISIONS.get(action, "%(who)s %(action)s %(item)s")) % named
    if facts.object("changes").number("round"):
        text = _("%(who)s requested changes of %(item)s", **named)
    text += describe_maker(facts.object("by").text("counts_as"))
    if facts.flag("edited"):
        text = _("%(decision)s with edited arguments", decision=text)
    if facts.text("grant_id"):
        text = _("%(decision)s, with grant %(grant)s", decision=text, grant=facts.text("grant_id"))
    if grants := join_words(facts.texts("suspends")):
        text = _("%(decision)s, which suspends grant %(grant)s", decision=text, grant=grants)
    if passkey := facts.object("proof").text("name"):
        text = _("%(decision)s, signed with passkey “%(name)s”", decision=text, name=passkey)
    elif facts.flag("code_used"):
        text = _("%(decision)s, with a code of their app", decision=text)
    if inviter := facts.object("invited").text("by"):
        text = _("%(decision)s, invited by %(inviter)s and proven by a mailed code", decision=text, inviter=inviter)
    if stage := facts.number("stage"):
        text = _("%(decision)s in stage %(stage)s", decision=text, stage=stage)
    if not facts.text("verdict"):
        text = _("%(decision)s; more decisions are needed", decision=text)
    return "bad" if action in ("deny", "fail") else "good", text, facts.text("message")


def _confirmation_recorded(facts: Facts) -> Sentence:
    named = {"who": facts.actor, "item": facts.item}
    if not facts.flag("confirmed"):
        return "bad", _("%(who)s declined %(item)s, made for them", **named), facts.text("message")
    text = _("%(who)s confirmed %(item)s, made for them", **named)
    return "good", text if facts.text("verdict") else _("%(decision)s; more decisions are needed", decision=text), ""


def _second_look(facts: Facts) -> Sentence:
    named = {"who": facts.actor, "call": facts.text("tool_name", _("a call"))}
    if facts.flag("agrees"):
        return "good", _("%(who)s agreed with %(call)s on a second look", **named), facts.text("reason")
    return "bad", _("%(who)s disagreed with %(call)s on a second look", **named), facts.text("reason")


_TIMED_OUT: Mapping[str, str] = {
    Verdict.APPROVED: mark("%(item)s was approved by itself: nobody answered in time"),
    Verdict.DENIED: mark("%(item)s was denied: nobody answered in time"),
    Verdict.ANSWERED: mark("The fallback’s value was used for %(item)s: nobody answered in time"),
    Verdict.FAILED: mark("%(item)s failed: nobody answered in time"),
}


def _timed_out(facts: Facts) -> Sentence:
    verdict = facts.text("verdict")
    unknown = mark("%(item)s was decided by its fallback: nobody answered in time")
    text = _(_TIMED_OUT.get(verdict, unknown)) % {"item": facts.item}
    return "wait" if verdict in ("approved", "answered") else "bad", text, ""


def _deadlines_moved(facts: Facts) -> Sentence:
    span = describe_span(max((row.number("by_ms") for row in facts.objects("items")), default=0))
    people = join_words(sorted({name for row in facts.objects("freezes") if (name := row.text("unfrozen_by"))}))
    note = _("unfrozen by %(people)s", people=people) if people else ""
    return "plain", _("No longer frozen: every deadline moved by %(span)s", span=span), note


def _card(tone: str, sentence: str, facts: Facts) -> Sentence:
    who = name_recipient(facts.text("person"))
    text = _(sentence) % {"who": who, "item": facts.item, "channel": facts.text("channel")}
    return tone, text, facts.text("reason")


def _tool_completed(facts: Facts) -> Sentence:
    name = facts.text("tool_name", _("A call"))
    if not facts.flag("success"):
        return "bad", _("%(call)s failed", call=name), facts.text("error")
    return "good", _("%(call)s ran%(latency)s", call=name, latency=facts.latency()), ""


def _permit_lapsed(facts: Facts) -> Sentence:
    name = facts.text("tool_name", _("a call"))
    if facts.flag("started"):
        return "bad", _("No result was reported for %(call)s; it may have run", call=name), ""
    return "bad", _("The permit for %(call)s expired before the call started", call=name), ""


def _run_cancelled(facts: Facts) -> Sentence:
    by = facts.object("by").text("id", _("The agent"))
    text = _("%(who)s cancelled the run", who=by)
    if running := len(facts.texts("calls_in_flight")):
        text = ngettext(
            "%(who)s cancelled the run while %(num)s call may have been running",
            "%(who)s cancelled the run while %(num)s calls may have been running",
            running,
            who=by,
        )
    return "bad", text, facts.text("reason") or facts.text("error")


def _unchecked(text: str) -> str:
    return f"{_(UNCHECKED)}: {text}" if text else ""


def _run_started(facts: Facts) -> Sentence:
    who, agent = facts.text("owner", _("Somebody")), facts.text("agent", _("an agent"))
    claimed = facts.text("claimed_title") or facts.text("title")
    return "plain", _("%(who)s started %(agent)s", who=who, agent=agent), _unchecked(claimed)


def _run_resuming(facts: Facts) -> Sentence:
    attempt = facts.number("attempt")
    text = _("A worker has the run (attempt %(attempt)s)", attempt=attempt)
    return "quiet", text if attempt > 1 else _("A worker has the run"), ""


def _batch_completed(facts: Facts) -> Sentence:
    text = ngettext("%(num)s call finished", "%(num)s calls finished", facts.number("tool_call_count"))
    failures = facts.number("failure_count")
    return "quiet", _("%(calls)s, %(failures)s failed", calls=text, failures=failures) if failures else text, ""


_PLAIN: Mapping[str, tuple[str, str, str]] = {
    EventType.REVIEWER_REMINDED: ("plain", mark("Reviewers were reminded of %(item)s"), ""),
    EventType.DEADLINE_EXTENDED: ("plain", mark("%(who)s extended the deadline of %(item)s"), ""),
    EventType.DECISION_DEFERRED: ("wait", mark("%(who)s decided on %(item)s, and can undo it"), ""),
    EventType.DECISION_RETRACTED: ("wait", mark("%(who)s took their decision on %(item)s back"), ""),
    EventType.ITEM_CLAIMED: ("plain", mark("%(who)s claimed %(item)s"), ""),
    EventType.ITEM_FORWARDED: ("plain", mark("%(who)s forwarded %(item)s to %(to)s"), "note"),
    EventType.CLAIM_RELEASED: ("quiet", mark("%(who)s released %(item)s"), ""),
    EventType.ITEM_SEEN: ("quiet", mark("%(who)s opened %(item)s"), ""),
    EventType.CARD_MOVED: (
        "plain",
        mark("The card of %(item)s goes to %(delegate)s, because %(person)s is absent"),
        "",
    ),
    EventType.REQUESTER_ASKED: ("wait", mark("%(who)s asked the requester about %(item)s"), "text"),
    EventType.PREVIEW_REQUESTED: ("plain", mark("%(who)s asked what %(item)s would do"), ""),
    EventType.PREVIEW_STORED: ("quiet", mark("The tool said what %(item)s would do"), "error"),
    EventType.OUTSIDER_INVITED: ("plain", mark("%(who)s invited %(address)s to decide on %(item)s"), "note"),
    EventType.OUTSIDER_CODE_SENT: ("quiet", mark("A code for %(item)s was mailed to %(address)s"), ""),
    EventType.OUTSIDER_PROVEN: ("quiet", mark("%(who)s entered the mailed code and saw %(item)s"), ""),
    EventType.NOTE_WRITTEN: ("plain", mark("%(who)s wrote to the agent"), "text"),
    EventType.UNDO_OFFERED: ("wait", mark("A call ran at once, and can be undone"), "tool_name"),
    EventType.CALL_UNDONE: ("plain", mark("%(who)s had a call undone"), "error"),
    EventType.NOTE_DELIVERED: ("quiet", mark("The agent got the note of %(who)s"), ""),
    EventType.ASKED_AGAIN: ("wait", mark("%(item)s needs a new decision"), "reason"),
    EventType.RESULT_REPORTED: ("good", mark("The worker that started %(item)s reported its result"), ""),
    EventType.RUN_RELEASED: ("quiet", mark("The worker released the run"), "reason"),
    EventType.RUN_REVIVED: ("plain", mark("%(who)s retried the run"), ""),
    EventType.PERMIT_REDEEMED: ("quiet", mark("%(item)s was started"), ""),
    EventType.PERMIT_RETURNED: ("quiet", mark("%(item)s did not start; its permit is valid again"), ""),
    EventType.RUN_COMPLETED: ("good", mark("The run completed"), "error"),
    EventType.RUN_DEGRADED: ("wait", mark("The run ended early"), "error"),
    EventType.RUN_FAILED: ("bad", mark("The run failed"), "error"),
    EventType.CONTENTS_ERASED: ("plain", mark("%(who)s erased the contents"), "reason"),
    UNREADABLE: ("bad", mark("This event is damaged in the store and cannot be read"), ""),
}
"""Events of one sentence each: its tone, the sentence, and the fact that is its note."""


def _decision_voided(facts: Facts) -> Sentence:
    sentence = _("%(who)s was deactivated: their decision on %(item)s does not count")
    if facts.flag("outdated"):
        sentence = _("The decision of %(who)s on %(item)s does not count: what it would do has changed")
    return "wait", sentence % {"who": facts.actor, "item": facts.item}, ""


def _describe_plain(kind: str, facts: Facts) -> Sentence:
    tone, sentence, note = _PLAIN[kind]
    named = {name: facts.text(name) for name in ("delegate", "person", "address")}
    named["to"] = name_reviewers([facts.text("to")])
    return tone, _(sentence) % {**named, "who": facts.actor, "item": facts.item}, facts.text(note)


def _invitation_closed(facts: Facts) -> Sentence:
    sentence = _("%(who)s revoked the invitation of %(address)s to %(item)s")
    if facts.text("ending") == Ending.GUESSED:
        sentence = _("Too many wrong codes closed the invitation of %(address)s to %(item)s")
    return "wait", sentence % {"who": facts.actor, "address": facts.text("address"), "item": facts.item}, ""


DESCRIBERS: Mapping[str, Callable[[Facts], Sentence]] = {
    **{kind: partial(_describe_plain, kind) for kind in _PLAIN},
    EventType.RUN_STARTED: _run_started,
    EventType.DECISION_VOIDED: _decision_voided,
    EventType.INVITATION_CLOSED: _invitation_closed,
    EventType.LLM_COMPLETED: _llm_completed,
    EventType.TOOL_BATCH_STARTED: lambda facts: (
        "quiet",
        ngettext("The rules checked %(num)s call", "The rules checked %(num)s calls", facts.number("tool_call_count")),
        join_words(facts.texts("tool_names")),
    ),
    EventType.POLICY_DECISION: _policy_decision,
    EventType.RUN_PAUSED: _run_suspended,
    EventType.DECISION_RECORDED: _decision_recorded,
    EventType.DECIDED: lambda facts: (
        "plain",
        _("One decision was enough; the other items are closed") if facts.texts("closed_with_it") else _("All decided"),
        "",
    ),
    EventType.TIMED_OUT: _timed_out,
    EventType.STAGE_STARTED: lambda facts: (
        "wait",
        _(
            "%(item)s reached stage %(stage)s of %(stages)s: %(reviewers)s",
            item=facts.item,
            stage=facts.number("stage"),
            stages=facts.number("stages"),
            reviewers=name_reviewers(facts.texts("reviewers"), "or"),
        ),
        "",
    ),
    EventType.ESCALATED: lambda facts: (
        "wait",
        _(
            "%(item)s was escalated to %(reviewers)s",
            item=facts.item,
            reviewers=name_reviewers(facts.texts("reviewers")) or _("more reviewers"),
        ),
        "",
    ),
    EventType.REQUESTER_ANSWERED: lambda facts: (
        "plain",
        _("%(who)s answered about %(item)s", who=facts.actor, item=facts.item),
        _unchecked(facts.text("text")),
    ),
    EventType.CARD_SENT: lambda facts: _card("quiet", mark("%(who)s was notified of %(item)s over %(channel)s"), facts),
    EventType.CARD_FAILED: lambda facts: _card(
        "bad", mark("%(who)s was not notified of %(item)s over %(channel)s"), facts
    ),
    EventType.DEADLINES_MOVED: _deadlines_moved,
    EventType.CONFIRMATION_RECORDED: _confirmation_recorded,
    EventType.SECOND_LOOK_TAKEN: _second_look,
    EventType.RUN_RESUMING: _run_resuming,
    EventType.RUN_RESUMED: lambda facts: (
        "plain",
        _("The run resumed") if facts.flag("approved") else _("The run resumed after a denial"),
        "",
    ),
    EventType.PERMIT_LAPSED: _permit_lapsed,
    EventType.OUTCOME_REPORTED: _tool_completed,
    EventType.TOOL_COMPLETED: _tool_completed,
    EventType.TOOL_BATCH_COMPLETED: _batch_completed,
    EventType.WARNING: lambda facts: ("wait", facts.text("message", _("Warning")), ""),
    EventType.RUN_POSTPONED: lambda facts: (
        "bad",
        _(
            "Attempt %(attempt)s failed; the next is at %(when)s",
            attempt=facts.number("attempt"),
            when=facts.clock("again_at_ms"),
        ),
        facts.text("error"),
    ),
    EventType.RUN_CANCELLED: _run_cancelled,
}
