"""Approved calls are revalidated with what rules remember, and carry what they add to counters."""

import pytest

from sayso.core.policy.counters.readings import Reading
from sayso.core.policy.engine import Policy
from sayso.core.policy.external import describe_item
from sayso.core.records.decisions import Actor, ActorKind, Verdict
from sayso.core.records.freezes import Revocations
from sayso.core.records.items import Doubt, PresetOutcome
from sayso.core.records.judgements import Charge
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolCall
from sayso.core.transitions.deciding import decide
from sayso.core.transitions.permits import put_in_doubt
from sayso.errors import Unavailable
from sayso.runner.revalidation import Revalidation, list_judged, list_wanted, revalidate
from tests.sayso.rule_builders import policy, rule
from tests.sayso.runner.test_revalidation import AGENT, approved, asking
from tests.sayso.samples import T0, pending, word

LIMIT = {"count": 5, "per": 3600}
ASKS = rule("refunds", "request_approval", tool_name="refund", priority=1)
LETS = policy(rule("lets", "allow", tool_name="refund", limit=LIMIT), ASKS)
STOPS = policy(rule("stops", tool_name="refund", over={"limit": LIMIT}), ASKS)
ALLOWED = PresetOutcome(verdict=Verdict.APPROVED, by=Actor(id="policy", kind=ActorKind.POLICY))
CHARGE = Charge(counter="c", per_s=3600)


def allowed(*charges: Charge) -> SuspensionRecord:
    """A call that the rules allowed, with these charges held."""
    return pending(asking().model_copy(update={"preset": ALLOWED, "charges": charges}))


def check(record: SuspensionRecord, rules: Policy, total: int = 0) -> Revalidation:
    """Revalidate where each counter holds `total`."""
    wanted = list_wanted(record, list_judged(record), rules, T0)
    return revalidate(record, AGENT, rules, Revocations(), T0, {one.counter: Reading(total=total) for one in wanted})


def test_approved_call_carries_its_charges() -> None:
    checked = check(approved(), STOPS, 4)
    assert (checked.denied, checked.again) == ({}, {})
    assert [(one.amount, one.most) for one in checked.charges[0]] == [(1, 5)]


def test_approved_call_is_denied_over_a_limit_under_the_same_rules() -> None:
    record = approved()
    terms = record.items[0].terms.model_copy(update={"rule_version": STOPS.version})
    record = record.model_copy(update={"items": (record.items[0].model_copy(update={"terms": terms}),)})
    assert check(record, STOPS, 5).denied == {0: "Denied by policy: Rule stops says deny."}


def test_approved_call_is_not_asked_again_when_an_allowance_is_used_up() -> None:
    checked = check(approved(), LETS, 5)
    assert (checked.again, checked.denied, checked.charges) == ({}, {}, {0: ()})


@pytest.mark.parametrize("total", [4, 5])
def test_allowed_call_without_charges_is_judged_anew(total: int) -> None:
    checked = check(allowed(), LETS, total)
    assert checked.reasons == ({0: "It no longer fits what the rules allow."} if total == 5 else {})
    assert len(checked.charges[0]) == (total == 4)


def test_allowed_call_with_charges_starts() -> None:
    assert check(allowed(CHARGE), LETS, 5).again == {}


def test_allowed_call_starts_under_rules_that_ask_without_memory() -> None:
    asks = policy(ASKS)
    assert check(allowed(), asks).again == {}
    asks = policy(ASKS, rule("other", tool_name="other", over={"limit": LIMIT}))
    assert check(allowed(), asks).again == {}


def test_call_under_unchanged_rules_without_memory_is_not_judged() -> None:
    asks = policy(ASKS)
    same = pending(asking().model_copy(update={"preset": ALLOWED, "rule_version": asks.version}))
    checked = check(same, asks)
    assert (checked.again, checked.charges) == ({}, {})


@pytest.mark.parametrize("total", [5, 6])
def test_second_start_in_doubt_does_not_count_against_itself(total: int) -> None:
    hard = policy(rule("hard", absolute=True, over={"limit": LIMIT}), ASKS)
    (wanted,) = hard.list_wanted(describe_item(pending(), pending().items[0], {}))
    charges = (Charge(counter=wanted.counter, per_s=3600),)
    doubt = Doubt(begun_at_ms=T0, holder="w1", attempt=1, idempotency_key="k", charges=charges)
    call = ToolCall(call_id="c", index=0, name="refund", args={})
    waiting = pending(put_in_doubt(call, "d" * 64, doubt))
    record = decide(waiting, word(waiting, "value", value={"choice": "run_again"}), T0).record
    wanted_again = list_wanted(record, list_judged(record), hard, T0)
    readings = {one.counter: Reading(total=total) for one in wanted_again}
    checked = revalidate(record, AGENT, hard, Revocations(), T0, readings)
    assert bool(checked.denied) == (total > 5), "5 with this call is within the limit"


def test_nothing_starts_on_counters_that_were_not_read() -> None:
    with pytest.raises(Unavailable, match="nothing was started"):
        revalidate(approved(), AGENT, STOPS, Revocations(), T0)
