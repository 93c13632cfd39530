"""A replay sees the mandate that was in force for a recorded call."""

from typing import Any

from sayso.core.policy.counters.readings import Reading, list_mandate_counters, name_scope_of
from sayso.core.policy.external import ExternalCall, evaluate_calls
from sayso.core.policy.rules import Action
from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.events import TrailEntry
from sayso.core.records.permissions import Envelope, Mandate, MandatedTool
from sayso.core.records.suspensions import RunRef
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.features.permissions.grants import digest_rule
from sayso.features.whatif.reevaluation import list_calls, rejudge
from sayso.wire.rulebook import Effect
from tests.sayso.rule_builders import policy, rule
from tests.sayso.samples import T0

RUN = RunRef(id="run_1", agent="bot", owner="desk", thread_id="t1")
PAY, READ = ToolDefinition(name="pay"), ToolDefinition(name="read")
ASKS = rule("payouts", "request_approval", tool_name="pay", mandates={"longest": "1d"})
RULES = policy(ASKS, default=Action.ALLOW)
MANDATE = Mandate(
    id="man_1",
    agent="bot",
    owner="desk",
    thread_id="t1",
    envelope=Envelope(
        for_s=3600,
        count=5,
        tools=(MandatedTool(tool="pay", definition=PAY.digest, free=("args.amount",)),),
        rules={"payouts": digest_rule(ASKS)},
    ),
    at_ms=T0,
    until_ms=T0 + 3_600_000,
    granters=(Actor(id="anna", kind=ActorKind.HUMAN),),
    suspension_id="sus_1",
    item_id="i1",
)


def replay(tool: ToolDefinition, rules: Any, **args: object) -> tuple[str, Effect]:
    """Return what happened to a call under the mandate, and what a replay with other rules says."""
    call = ToolCall(call_id="c", index=0, name=tool.name, args=dict(args))
    readings = {one.counter: Reading() for one in list_mandate_counters(MANDATE, tool.name)}
    readings |= {name_scope_of(MANDATE): Reading(mandates=(MANDATE,))}
    _, judged = evaluate_calls(RULES, RUN, [ExternalCall(call, tool)], readings=readings)
    trail = [TrailEntry(seq=seq, at_ms=T0, type=one.type, data=one.data, hash="") for seq, one in enumerate(judged, 1)]
    (found,) = list_calls(RUN, trail, {})
    event = found.event.model_copy(update={"tool_args": dict(args)})  # those of an asked call are with its item
    found = found.model_copy(update={"missing": "", "event": event})
    (judged_again,) = rejudge(rules, [found], {})
    assert judged_again is not None
    return found.action, judged_again.effect


def test_call_inside_is_allowed_again_only_by_the_rule_that_permitted_it() -> None:
    assert replay(PAY, RULES, amount=5) == ("allow", Effect.ALLOWED)
    changed = policy(ASKS.model_copy(update={"reason": "Ask."}), default=Action.ALLOW)
    assert replay(PAY, changed, amount=5) == ("allow", Effect.ASKED)


def test_call_outside_is_asked_again_while_rules_permit_mandates() -> None:
    assert replay(READ, RULES) == ("request_approval", Effect.ASKED)
    assert replay(READ, policy(default=Action.ALLOW)) == ("request_approval", Effect.ALLOWED)
