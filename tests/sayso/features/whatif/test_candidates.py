"""A candidate judges calls beside the rules in force, and changes nothing about them."""

from typing import Any

from sayso.core.policy.counters.readings import Reading, Readings
from sayso.core.policy.decisions import KEYWORD
from sayso.core.policy.engine import Policy
from sayso.core.policy.external import ExternalCall, evaluate_calls, list_wanted
from sayso.core.policy.rules import Action
from sayso.core.records.events import Event, TrailEntry
from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import RunRef
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.features.whatif.candidates import (
    BROKEN,
    NOT_BESIDE,
    NOT_READ,
    REST_TIMES,
    TOO_SLOW,
    Candidate,
    PolicyBeside,
    list_judged_beside,
)
from sayso.features.whatif.reevaluation import RecordedCall, list_calls
from sayso.runner.judging import judge_turn
from sayso.wire.rulebook import Effect
from tests.sayso.rule_builders import event, policy, rule
from tests.sayso.runners import make_agent, turn
from tests.sayso.samples import T0

RUN = RunRef(id="run_1", agent="bot", owner="bot", thread_id="t", facts={"env": "prod"})
PAY = ToolDefinition(name="pay", parameters={"type": "object"})
QUESTION = ToolDefinition(
    name="pay", parameters={"type": "object", KEYWORD: {"question": "q", "answer": "a"}, "properties": {"a": {}}}
)
LIVE = policy(rule("large", "request_approval", when="args.amount > 100"), default=Action.ALLOW)
STRICT = policy(rule("huge", "deny", when="args.amount > 50"), default=Action.REQUEST_APPROVAL)
TIMED = policy(rule("old", "deny", when="now > timestamp('2000-01-01T00:00:00Z')"), default=Action.ALLOW)


def cap(count: int, rule_id: str = "cap") -> Policy:
    """Return rules that deny calls over a count."""
    return policy(rule(rule_id, over={"limit": {"count": count, "per": 3600}}), default=Action.ALLOW)


def evaluate(
    rules: Policy, *amounts: int, readings: Readings | None = None, definition: ToolDefinition = PAY, known: bool = True
) -> tuple[tuple[ItemDraft, ...], tuple[Event, ...]]:
    """Judge payments of an agent outside."""
    calls = [
        ExternalCall(ToolCall(call_id=f"c{place}", index=place, name="pay", args={"amount": amount}), definition, known)
        for place, amount in enumerate(amounts)
    ]
    return evaluate_calls(rules, RUN, calls, readings=readings or {})


def beside(rules: Policy, candidate: Policy, *amounts: int, **options: Any) -> list[Any]:
    """Return what the events say about the candidate."""
    _, events = evaluate(PolicyBeside.join(rules, Candidate(candidate)), *amounts, **options)
    return [one.data["candidate"] for one in events[1:]]


def test_candidate_is_recorded_and_changes_nothing_else() -> None:
    drafts, events = evaluate(LIVE, 10, 80, 500)
    joined = PolicyBeside.join(LIVE, Candidate(STRICT))
    assert joined.version == LIVE.version
    drafts_beside, events_beside = evaluate(joined, 10, 80, 500)
    assert drafts_beside == drafts
    stripped = [{key: value for key, value in one.data.items() if key != "candidate"} for one in events_beside]
    assert stripped == [one.data for one in events], "without a candidate the events have no trace of one"
    found = [one.data["candidate"] for one in events_beside[1:]]
    assert [(one["rule_version"], one["judged"]["effect"]) for one in found] == [
        (STRICT.version, effect) for effect in ("asked", "denied", "denied")
    ]
    assert found[1]["judged"]["rule_id"] == "huge"


def test_candidate_judges_calls_of_sayso_runner() -> None:
    agent, asked = make_agent([]), turn(("refund", {"order": "A-1", "amount": 80}))
    live = policy(rule("large", "request_approval", tool_name="refund", when="args.amount > 100"), default=Action.ALLOW)
    strict = policy(rule("huge", "deny", tool_name="refund", when="args.amount > 50"), default=Action.ALLOW)
    batch, events = judge_turn(agent, asked, PolicyBeside.join(live, Candidate(strict)), event("any"))
    plain, _ = judge_turn(agent, asked, live, event("any"))
    assert batch == plain
    candidate = events[1].data["candidate"]
    assert isinstance(candidate, dict)
    assert isinstance(candidate["judged"], dict)
    assert candidate["judged"]["effect"] == "denied"


def test_candidate_reads_only_counters_of_the_rules_in_force() -> None:
    readings = {one.counter: Reading(total=4) for one in cap(5).list_wanted(event("pay", amount=5))}
    (same,) = beside(cap(5), cap(4), 5, readings=readings)
    assert same["judged"]["effect"] == "denied", "the counter of the same rule holds 4"
    first, second = beside(cap(9), cap(6), 5, 5, readings={name: Reading(total=5) for name in readings})
    assert [one["judged"]["effect"] for one in (first, second)] == ["allowed", "denied"], "a turn adds up"
    (other,) = beside(cap(5), cap(4, "other"), 5, readings=readings)
    assert other == {"rule_version": cap(4, "other").version, "missing": NOT_READ}
    joined = PolicyBeside.join(LIVE, Candidate(cap(4)))
    assert not list_wanted(joined, [event("pay")]), "nothing is read for a candidate"
    drafts, _ = evaluate(PolicyBeside.join(cap(9), Candidate(cap(6))), 5, readings=readings)
    assert drafts == evaluate(cap(9), 5, readings=readings)[0], "its charges are nobody's"


def test_time_is_read_for_a_candidate_that_needs_it() -> None:
    assert not LIVE.reads_time
    assert PolicyBeside.join(LIVE, Candidate(TIMED)).reads_time
    assert not PolicyBeside.join(LIVE, Candidate(STRICT)).reads_time


def test_question_of_an_unregistered_tool_is_no_question_of_a_candidate() -> None:
    loose = policy(default=Action.ALLOW)
    (known,) = beside(LIVE, loose, 5, definition=QUESTION)
    (unknown,) = beside(LIVE, loose, 5, definition=QUESTION, known=False)
    assert (known["judged"]["effect"], unknown["judged"]["effect"]) == ("asked", "allowed")


class Broken(Policy):
    """Rules whose judging breaks."""

    def judge(self, event: object) -> Any:
        raise RecursionError


def test_candidate_that_breaks_harms_no_call() -> None:
    broken = Broken(default=Action.ALLOW)
    drafts, events = evaluate(PolicyBeside.join(LIVE, Candidate(broken)), 10)
    assert drafts == evaluate(LIVE, 10)[0]
    assert events[1].data["candidate"] == {"rule_version": broken.version, "missing": BROKEN}


def test_slow_candidate_rests_and_says_so() -> None:
    now, spent = [0.0], iter([0.0, 30.0, 30.0, 30.0, 31.0, 31.0, 32.0])
    candidate = Candidate(STRICT, lambda: now[0], lambda: next(spent))
    assert candidate.judge(event("pay", amount=10), PAY).judged is not None
    now[0] = 30.0 * REST_TIMES - 1
    assert candidate.judge(event("pay", amount=10), PAY).missing == TOO_SLOW
    now[0] += 1
    assert candidate.judge(event("pay", amount=10), PAY).judged is not None
    now[0] += 1
    assert candidate.judge(event("pay", amount=10), PAY).judged is not None, "a quick call lets it go on"


def recorded(rules: Policy, *amounts: int) -> list[RecordedCall]:
    """Return payments that rules allowed, as they are read from the audit trail, the last one first."""
    _, events = evaluate(rules, *amounts)
    trail = [TrailEntry(seq=seq, at_ms=T0, type=one.type, data=one.data, hash="") for seq, one in enumerate(events, 1)]
    return list_calls(RUN, trail, {})


def test_what_a_candidate_said_is_read_from_the_trail() -> None:
    joined = PolicyBeside.join(LIVE, Candidate(STRICT))
    calls, judged = list_judged_beside([*recorded(joined, 10, 80), *recorded(LIVE, 10)], STRICT.version)
    assert [one.effect if one is not None else None for one in judged] == [Effect.DENIED, Effect.ASKED, None]
    assert [one.missing for one in calls] == ["", "", NOT_BESIDE]
    assert list_judged_beside(recorded(joined, 10), "another")[1] == [None]
    unread = PolicyBeside.join(LIVE, Candidate(cap(4)))
    assert [one.missing for one in list_judged_beside(recorded(unread, 10), cap(4).version)[0]] == [NOT_READ]
