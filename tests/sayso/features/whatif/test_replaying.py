"""Recorded calls are judged again by the engine that judges live calls."""

from typing import Any

from sayso.core.policy.counters.readings import Reading
from sayso.core.policy.decisions import KEYWORD, describe_judged
from sayso.core.policy.engine import Policy
from sayso.core.policy.external import ExternalCall, evaluate_calls
from sayso.core.policy.rules import Action
from sayso.core.records.events import Event, EventType, TrailEntry
from sayso.core.records.suspensions import RunRef
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.core.transitions.deciding import decide, suspend
from sayso.features.whatif.reevaluation import (
    MASKED,
    NOT_COUNTED,
    NOT_KEPT,
    Changed,
    Comparison,
    RecordedCall,
    compare,
    list_calls,
    rejudge,
)
from sayso.wire.rulebook import Effect
from service.core.desk.changes import draft_suspension
from tests.sayso.rule_builders import event, policy, rule
from tests.sayso.samples import T0, ask, word

RUN = RunRef(id="run_1", agent="bot", owner="bot", thread_id="t", facts={"env": "prod"})
PAY = ToolDefinition(
    name="pay",
    parameters={
        "type": "object",
        "properties": {"amount": {"type": "number"}, "pin": {"type": "string", "writeOnly": True}},
        "additionalProperties": False,
    },
)
LIVE = policy(
    rule("large", "request_approval", priority=300, when="args.amount > 100"),
    rule("huge", "deny", priority=400, when="args.amount > 1000"),
    default=Action.ALLOW,
)


def recorded(action: str = "allow", missing: str = "", verdict: str = "", **args: Any) -> RecordedCall:
    return RecordedCall(event=event("pay", **args), action=Action(action), missing=missing, verdict=verdict)


def replay(rules: Policy, *calls: RecordedCall, **tools: list[ToolDefinition]) -> Comparison:
    return compare(calls, list(rejudge(rules, calls, tools)))


def test_call_is_judged_again_with_what_rules_remembered() -> None:
    def cap(count: int, rule_id: str = "cap") -> Policy:
        return policy(rule(rule_id, over={"limit": {"count": count, "per": 3600}}), default=Action.ALLOW)

    call = ToolCall(call_id="c", index=0, name="pay", args={"amount": 5})
    readings = {one.counter: Reading(total=4) for one in cap(5).list_wanted(event("pay", amount=5))}
    drafts, judged = evaluate_calls(cap(5), RUN, [ExternalCall(call, PAY)], readings=readings)
    trail = [TrailEntry(seq=seq, at_ms=T0, type=one.type, data=one.data, hash="") for seq, one in enumerate(judged, 1)]
    (found,) = list_calls(RUN, trail, {})
    assert found.event.readings == readings
    assert [one.effect for one in rejudge(cap(5), [found], {}) if one] == [Effect.ALLOWED]
    assert [one.effect for one in rejudge(cap(4), [found], {}) if one] == [Effect.DENIED]
    assert list(rejudge(cap(4, "other"), [found], {})) == [None]
    assert set(replay(cap(4, "other"), found).missing) == {NOT_COUNTED}
    assert drafts[0].preset is not None


def record_calls(*calls: dict[str, Any], kept: bool = True) -> list[RecordedCall]:
    """Return the recorded calls of a suspension, the last one first; unless `kept`, only its trail is left."""
    asked = [
        ExternalCall(ToolCall(call_id=f"c{index}", index=index, name="pay", args=args, subagent="helper"), PAY)
        for index, args in enumerate(calls)
    ]
    drafts, judged = evaluate_calls(LIVE, RUN, asked, step=3)
    change = suspend(draft_suspension("default", RUN, state=None, step=3), drafts, T0)
    record = change.record
    for item in record.items:
        if item.open:
            record = decide(record, word(record, "deny", item_id=item.item_id), T0).record
    trail = [
        TrailEntry(seq=seq, at_ms=T0, type=one.type, data=one.data, hash="")
        for seq, one in enumerate((*judged, *change.events), start=1)
    ]
    return list_calls(RUN, trail, {record.id: record} if kept else {})


def test_recorded_calls_have_the_facts_of_the_live_judgement() -> None:
    denied, asked, allowed = record_calls({"amount": 7}, {"amount": 250, "pin": "4711"}, {"amount": 5000})
    assert (allowed.verdict, denied.verdict) == ("", ""), "nobody was asked"
    assert [one.action for one in (allowed, asked, denied)] == ["allow", "request_approval", "deny"]
    assert allowed.event == denied.event.model_copy(update={"tool_args": {"amount": 7}})
    assert asked.event.tool_args == {"amount": 250, "pin": "4711"}
    assert (asked.rule_id, asked.verdict, asked.item_id, asked.secrets) == ("large", "denied", "i2", ("pin",))
    judged = denied.event
    assert (judged.agent, judged.subagent_name, judged.step, judged.context) == ("bot", "helper", 3, {"env": "prod"})


def test_the_same_rules_decide_recorded_calls_alike() -> None:
    calls = record_calls({"amount": 7}, {"amount": 250}, {"amount": 5000}, {})
    found = replay(LIVE, *calls)
    assert (found.changed, found.missing, found.same.total()) == ({}, {}, 4)


def test_compare_counts_each_change_with_its_calls() -> None:
    calls = record_calls({"amount": 7}, {"amount": 250}, {"amount": 5000})
    found = replay(policy(rule("all", "allow")), *calls)
    assert {pair: len(one) for pair, one in found.changed.items()} == {
        (Effect.ASKED, Effect.ALLOWED): 1,
        (Effect.DENIED, Effect.ALLOWED): 1,
    }
    (change,) = found.changed[Effect.ASKED, Effect.ALLOWED]
    assert isinstance(change, Changed)
    assert (change.call.verdict, change.now.rule_id) == ("denied", "all")
    assert found.same == {Effect.ALLOWED: 1}


def test_calls_with_missing_facts_are_not_judged_again() -> None:
    assert record_calls({"amount": 7, "pin": "4711"})[0].missing == ""
    (masked,) = record_calls({"amount": 7, "pin": "4711"}, kept=False)
    assert masked.missing == MASKED
    assert record_calls({"amount": 250}, kept=False)[0].missing == NOT_KEPT
    found = replay(policy(rule("all", "deny")), masked, recorded(missing=NOT_KEPT), recorded())
    assert {fact: len(calls) for fact, calls in found.missing.items()} == {MASKED: 1, NOT_KEPT: 1}
    assert found.changed.keys() == {(Effect.ALLOWED, Effect.DENIED)}


def test_rejudge_asks_questions_and_denies_misplaced_values() -> None:
    asks = ToolDefinition(name="pay", parameters={KEYWORD: {"question": "text", "answer": "reply"}})
    (now,) = rejudge(policy(rule("all", "allow")), [recorded(text="Why?")], {"support": [asks]})
    assert now is not None
    assert now.effect is Effect.ASKED
    value = policy(rule("code", "request_user_input", request_payload={"target_arg": "code"}))
    (now,) = rejudge(value, [recorded(amount=7)], {"support": [PAY]})
    assert now is not None
    assert now.effect is Effect.DENIED
    assert "does not take" in now.reason


def test_list_calls_skips_what_no_rule_judged() -> None:
    call = ToolCall(call_id="c", index=0, name="pay", args={"amount": 7})
    judged = describe_judged(call, LIVE.judge(event("pay", amount=7)), PAY)
    refused = Event(EventType.POLICY_DECISION, {"tool_name": "none", "action": "deny", "index": 0})
    model = Event(EventType.POLICY_DECISION, {"action": "deny", "rule_version": "1"})
    odd = Event(EventType.POLICY_DECISION, {**judged.data, "action": "sing"})
    lost = Event(EventType.POLICY_DECISION, {**judged.data, "action": "request_approval", "args": None})
    trail = [
        TrailEntry(seq=seq, at_ms=seq, type=one.type, data=one.data, hash="")
        for seq, one in enumerate((judged, refused, model, odd, lost), start=1)
    ]
    assert [(one.at_ms, one.missing) for one in list_calls(RUN, trail, {})] == [(5, NOT_KEPT), (1, "")]


def test_an_earlier_batch_takes_no_arguments_from_a_later_suspension() -> None:
    change = suspend(draft_suspension("default", RUN, state=None), (ask(),), T0)
    item = change.record.items[0]
    begun = Event(EventType.TOOL_BATCH_STARTED, {"step": 1})
    about = {"tool_name": item.tool.name, "index": item.index, "rule_version": "1", "action": "request_approval"}
    judged = Event(EventType.POLICY_DECISION, about)
    trail = [
        TrailEntry(seq=seq, at_ms=T0, type=one.type, data=one.data, hash="")
        for seq, one in enumerate((begun, judged, begun, judged, *change.events), start=1)
    ]
    later, earlier = list_calls(RUN, trail, {change.record.id: change.record})
    assert (later.item_id, later.missing) == (item.item_id, "")
    assert (earlier.item_id, earlier.missing) == ("", NOT_KEPT)
