"""Approved calls are revalidated with the mandates that are in force when they start."""

import pytest

from sayso.core.policy.counters.readings import Reading, list_mandate_counters, name_scope_of
from sayso.core.policy.engine import Policy
from sayso.core.records.decisions import Actor, ActorKind, Verdict
from sayso.core.records.freezes import Revocations
from sayso.core.records.items import PresetOutcome
from sayso.core.records.permissions import Envelope, Mandate, MandatedTool
from sayso.core.records.suspensions import SuspensionRecord
from sayso.features.permissions.grants import digest_rule
from sayso.runner.revalidation import Revalidation, list_judged, list_wanted, revalidate
from tests.sayso.rule_builders import policy, rule
from tests.sayso.runner.test_revalidation import AGENT, approved, asking, refund
from tests.sayso.samples import T0, pending

ASKS = policy(rule("refunds", "request_approval", tool_name="refund", mandates={"longest": "1d"}))
LETS = policy(
    rule("lets", "allow", tool_name="refund"),
    rule("refunds", "request_approval", tool_name="refund", priority=1, mandates={"longest": "1d"}),
)
ALLOWED = PresetOutcome(verdict=Verdict.APPROVED, by=Actor(id="policy", kind=ActorKind.POLICY))


def make(*free: str, tool: str = "refund") -> Mandate:
    return Mandate(
        id="man_1",
        agent="support",
        owner="bot",
        thread_id="t1",
        envelope=Envelope(
            for_s=3600,
            count=1,
            tools=(MandatedTool(tool=tool, definition=refund.definition.digest, free=free),),
            rules={"refunds": digest_rule(ASKS.rules[0])},
        ),
        at_ms=T0,
        until_ms=T0 + 3_600_000,
        granters=(Actor(id="anna", kind=ActorKind.HUMAN),),
        suspension_id="sus_1",
        item_id="i1",
    )


def allowed(grant_id: str = "") -> SuspensionRecord:
    """A call that the rules, or the mandate of this id, allowed before."""
    return pending(asking().model_copy(update={"preset": ALLOWED, "grant_id": grant_id}))


def check(record: SuspensionRecord, rules: Policy, mandate: Mandate | None) -> Revalidation:
    readings = {one.counter: Reading() for one in list_wanted(record, list_judged(record), rules, T0)}
    if mandate is not None:
        readings[name_scope_of(mandate)] = Reading(mandates=(mandate,))
        readings |= {one.counter: Reading() for one in list_mandate_counters(mandate, "refund")}
    return revalidate(record, AGENT, rules, Revocations(), T0, readings)


def test_call_that_a_mandate_allowed_starts_while_it_lasts() -> None:
    checked = check(allowed("man_1"), ASKS, make("args"))
    assert (checked.again, checked.denied) == ({}, {})
    assert [one.counter for one in checked.charges[0]] == ["grant.man_1.count"]


@pytest.mark.parametrize("mandate", [None, make("args", tool="other")])
def test_call_is_asked_again_once_its_mandate_does_not_allow_it(mandate: Mandate | None) -> None:
    checked = check(allowed("man_1"), ASKS, mandate)
    assert checked.reasons == {0: "Mandate man_1, which allowed it, no longer does."}
    assert checked.again[0].preset is None


def test_call_that_the_rules_allow_by_now_needs_no_mandate() -> None:
    assert check(allowed("man_1"), LETS, None).again == {}


def test_call_that_the_rules_allowed_asks_outside_a_later_mandate() -> None:
    assert check(allowed(), LETS, None).again == {}
    checked = check(allowed(), LETS, make())
    assert checked.reasons == {0: "It is outside mandate man_1."}
    assert checked.again[0].prompt.reason is not None
    assert checked.again[0].preset is None


def test_call_that_a_person_approved_starts_outside_a_mandate() -> None:
    for rules in (ASKS, LETS):
        assert check(approved(), rules, make()).again == {}


def test_call_that_the_rules_allowed_starts_inside_a_later_mandate() -> None:
    checked = check(allowed(), LETS, make("args"))
    assert checked.again == {}
    assert [one.counter for one in checked.charges[0]] == ["grant.man_1.count"]
