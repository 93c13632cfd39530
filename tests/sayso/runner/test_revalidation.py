"""Approved calls that have not started are revalidated."""

from typing import Any

import pytest

from sayso.core.records.decisions import Actor, ActorKind, Confirmation
from sayso.core.records.envelopes import Offered
from sayso.core.records.freezes import Revocations
from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.transitions.deciding import decide
from sayso.core.transitions.execution import lease, redeem
from sayso.runner.agents import Agent
from sayso.runner.models import ScriptedModel
from sayso.runner.revalidation import carry_over, revalidate
from sayso.runner.tools import tool
from tests.sayso.core.transitions.test_execution import FENCE
from tests.sayso.rule_builders import policy, rule
from tests.sayso.samples import T0, ask, intent, pending, person, word

ASKS = policy(rule("refunds", "request_approval", tool_name="refund"))
SHUT_OUT = Revocations(inactive=frozenset({"ada"}))


@tool(name="refund")
def refund(order: str, amount: float) -> str:
    """Refund an order."""
    return order


AGENT = Agent(name="support", instructions="x", tools=(refund,), model=ScriptedModel([]))


def asking(index: int = 0) -> ItemDraft:
    """A question about the very tool that the agent has."""
    plain = ask(index)
    return plain.model_copy(update={"tool": plain.tool.model_copy(update={"definition": refund.definition.digest})})


def approved(action: str = "approve") -> SuspensionRecord:
    record = pending(asking())
    return decide(record, word(record, action), T0).record


def test_revalidate_keeps_an_approval_that_holds() -> None:
    checked = revalidate(approved(), AGENT, ASKS, Revocations(), T0)
    assert (checked.again, checked.reasons, checked.denied) == ({}, {}, {})


def test_revalidate_skips_unchanged_rules_and_arguments() -> None:
    rules = policy(rule("no", tool_name="refund", reason="closed"))
    record = approved()
    terms = record.items[0].terms.model_copy(update={"rule_version": rules.version})
    asked = record.model_copy(update={"items": (record.items[0].model_copy(update={"terms": terms}),)})
    assert revalidate(asked, AGENT, rules, Revocations(), T0).denied == {}
    outcome = record.items[0].outcome
    assert outcome is not None
    edited = asked.items[0].model_copy(update={"outcome": outcome.model_copy(update={"args": {"order": "B"}})})
    checked = revalidate(asked.model_copy(update={"items": (edited,)}), AGENT, rules, Revocations(), T0)
    assert checked.denied == {0: "Denied by policy: closed"}


def test_revalidate_denies_a_misplaced_argument() -> None:
    parts: dict[str, Any] = {
        "action": "request_user_input",
        "tool_name": "refund",
        "request_payload": {"target_arg": "code"},
    }
    checked = revalidate(approved(), AGENT, policy(rule("codes", **parts)), SHUT_OUT, T0)
    assert checked.again == {}
    assert "'code', which refund does not take" in checked.denied[0]


def test_revalidate_skips_denied_items() -> None:
    checked = revalidate(approved("deny"), AGENT, ASKS, SHUT_OUT, T0)
    assert (checked.again, checked.denied) == ({}, {})
    assert revalidate(approved("deny"), AGENT, policy(rule("no", tool_name="refund")), Revocations(), T0).denied == {}


@pytest.mark.parametrize("left", ["permit", "journal"])
def test_revalidate_skips_started_calls(left: str) -> None:
    taken = lease(approved(), "w1", 30_000, T0).record
    begun = redeem(taken, FENCE, (intent(),), (), T0).record
    begun = begun.model_copy(update={"items": taken.items} if left == "journal" else {"journal": ()})
    assert revalidate(begun, AGENT, ASKS, SHUT_OUT, T0).again == {}
    assert revalidate(begun, AGENT, policy(rule("no", tool_name="refund")), Revocations(), T0).denied == {}


def test_revalidate_denies_by_the_rules_in_force() -> None:
    checked = revalidate(approved(), AGENT, policy(rule("no", tool_name="refund", reason="closed")), SHUT_OUT, T0)
    assert (checked.denied, checked.again) == ({0: "Denied by policy: closed"}, {})
    plain = rule("no", tool_name="refund").model_copy(update={"reason": ""})
    assert revalidate(approved(), AGENT, policy(plain), Revocations(), T0).denied[0].startswith("Denied by policy")


def test_revalidate_asks_again_after_a_reviewer_is_deactivated() -> None:
    checked = revalidate(approved(), AGENT, ASKS, SHUT_OUT, T0)
    assert checked.reasons == {0: "ada, who approved it, is no longer a reviewer."}
    drafts, events = carry_over(approved(), checked)
    assert drafts[0].prompt.reason == f"Asked again. {checked.reasons[0]}"
    assert [event.data["reason"] for event in events] == [checked.reasons[0]]
    assert revalidate(approved(), AGENT, ASKS, Revocations(inactive=frozenset({"ben"})), T0).again == {}


def test_revalidate_asks_again_after_the_acting_user_was_deactivated() -> None:
    (item,) = approved().items
    said = Confirmation(
        id="con_1", confirmed=True, by=person("carla"), at_ms=T0, digest=item.digest, args_digest="d" * 64
    )
    confirmed = approved().model_copy(update={"items": (item.model_copy(update={"confirmation": said}),)})
    checked = revalidate(confirmed, AGENT, ASKS, Revocations(inactive=frozenset({"carla"})), T0)
    assert checked.reasons == {0: "carla, who confirmed it, is no longer active."}
    assert revalidate(confirmed, AGENT, ASKS, Revocations(inactive=frozenset({"ben"})), T0).again == {}


def test_revalidate_denies_calls_of_a_revoked_key() -> None:
    record = approved()
    record = record.model_copy(update={"run": record.run.model_copy(update={"key_id": "key_1"})})
    checked = revalidate(record, AGENT, ASKS, Revocations(revoked=frozenset({"key_1"})), T0)
    assert (checked.again, checked.denied) == ({}, {0: "Key key_1 of bot, which started the run, was revoked."})
    assert revalidate(record, AGENT, ASKS, Revocations(revoked=frozenset({"key_2"})), T0).denied == {}


def test_revalidate_asks_again_after_a_rule_is_withdrawn() -> None:
    assert "withdrawn" in revalidate(approved(), AGENT, policy(), Revocations(), T0).reasons[0]
    off = rule("refunds", "request_approval", tool_name="refund", enabled=False)
    assert "withdrawn" in revalidate(approved(), AGENT, policy(off), Revocations(), T0).reasons[0]
    (item,) = approved().items
    free = item.model_copy(update={"terms": item.terms.model_copy(update={"rule_id": None})})
    assert revalidate(approved().model_copy(update={"items": (free,)}), AGENT, policy(), Revocations(), T0).again == {}


def test_revalidate_asks_again_after_a_tool_changed() -> None:
    (item,) = approved().items
    other = item.model_copy(update={"tool": item.tool.model_copy(update={"definition": "e" * 64})})
    record = approved().model_copy(update={"items": (other,)})
    assert "was changed" in revalidate(record, AGENT, ASKS, Revocations(), T0).reasons[0]


def test_revalidate_does_not_ask_about_a_call_that_cannot_run() -> None:
    none = Agent(name="support", instructions="x", tools=(), model=ScriptedModel([]))
    assert revalidate(approved(), none, ASKS, SHUT_OUT, T0).again == {}
    (item,) = approved().items
    unfit = item.model_copy(update={"tool": item.tool.model_copy(update={"args": {"order": 7}})})
    assert revalidate(approved().model_copy(update={"items": (unfit,)}), AGENT, ASKS, SHUT_OUT, T0).again == {}


def test_revalidate_needs_no_reviewer_for_an_allowed_call() -> None:
    (item,) = approved().items
    assert item.outcome is not None
    by_rule = item.outcome.model_copy(update={"by": Actor(id="refunds", kind=ActorKind.POLICY)})
    record = approved().model_copy(update={"items": (item.model_copy(update={"outcome": by_rule, "decisions": ()}),)})
    assert revalidate(record, AGENT, policy(), Revocations(), T0).again == {}


def test_revalidate_needs_no_reviewer_for_a_fallback() -> None:
    (item,) = approved().items
    assert item.outcome is not None
    by_time = item.outcome.model_copy(update={"by": Actor(id="ada", kind=ActorKind.TIMEOUT)})
    record = approved().model_copy(update={"items": (item.model_copy(update={"outcome": by_time, "decisions": ()}),)})
    assert revalidate(record, AGENT, ASKS, SHUT_OUT, T0).again == {}


def test_revalidate_checks_the_last_decider_of_a_carried_outcome() -> None:
    (item,) = approved().items
    carried = approved().model_copy(update={"items": (item.model_copy(update={"decisions": ()}),)})
    assert revalidate(carried, AGENT, ASKS, SHUT_OUT, T0).again
    earlier = word(pending(asking()), "deny", by="ben")
    mixed = item.model_copy(update={"decisions": (earlier, *item.decisions)})
    shut = Revocations(inactive=frozenset({"ben"}))
    assert revalidate(approved().model_copy(update={"items": (mixed,)}), AGENT, ASKS, shut, T0).again == {}


def test_revalidate_asks_again_even_if_rules_now_allow() -> None:
    allowing = policy(rule("refunds", "allow", tool_name="refund"))
    again = revalidate(approved(), AGENT, allowing, SHUT_OUT, T0).again[0]
    assert again.rule_id is None
    assert revalidate(approved(), AGENT, ASKS, SHUT_OUT, T0).again[0].rule_id == "refunds"


def test_carry_over_keeps_outcomes_as_presets() -> None:
    record = pending(asking(0), asking(1))
    record = decide(record, word(record), T0).record
    record = decide(record, word(record, item_id="i2", by="ben"), T0).record
    checked = revalidate(record, AGENT, ASKS, SHUT_OUT, T0)
    drafts, events = carry_over(record, checked)
    assert [one.preset is None for one in drafts] == [True, False]
    assert drafts[1].preset is not None
    assert (drafts[1].preset.by, drafts[1].preset.verdict) == (person("ben"), "approved")
    assert len(events) == 1


def test_carry_over_keeps_the_offer_of_a_denial() -> None:
    offer = Offered(grant_id="gra_1", until_ms=T0 + 1, constraints=(), text="A refund of 200 passes.")
    record = pending(asking(0), asking(1))
    record = decide(record, word(record), T0).record
    record = decide(record, word(record, "deny", item_id="i2", by="ben", offer=offer), T0).record
    drafts, _ = carry_over(record, revalidate(record, AGENT, ASKS, SHUT_OUT, T0))
    preset = drafts[1].preset
    assert preset is not None
    assert (preset.verdict, preset.offer) == ("denied", offer)
