"""What time and absolute rules mean for an approved call right before it starts."""

from datetime import datetime
from typing import Any

import pytest

from sayso.core.policy.counters.charging import Ledger
from sayso.core.policy.engine import Policy
from sayso.core.records.decisions import Actor, ActorKind, Verdict
from sayso.core.records.freezes import Revocations
from sayso.core.records.items import Doubt, PresetOutcome
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.transitions.deciding import decide
from sayso.runner.revalidation import find_ended_grant, judge_approved, list_judged, revalidate
from tests.sayso.rule_builders import policy, rule
from tests.sayso.runner.test_revalidation import AGENT, asking
from tests.sayso.samples import pending, word

NONE = Revocations()
ASKS = rule("refunds", "request_approval", tool_name="refund")
NIGHTS: dict[str, Any] = {"tool_name": "refund", "outside": {"hours": "08:00-18:00", "zone": "Europe/Zurich"}}


def at(text: str) -> int:
    return round(datetime.fromisoformat(f"{text}+01:00").timestamp() * 1000)


ASKED_MS, APPROVED_MS, STARTED_MS = at("2026-11-23T17:50"), at("2026-11-23T18:10"), at("2026-11-23T18:11")


def approved(judged_at_ms: int | None = ASKED_MS) -> SuspensionRecord:
    record = pending(asking().model_copy(update={"judged_at_ms": judged_at_ms}), now_ms=ASKED_MS)
    return decide(record, word(record, at_ms=ASKED_MS + 1), ASKED_MS + 1).record


def denied(rules: Policy, record: SuspensionRecord, started_ms: int = STARTED_MS) -> dict[int, str]:
    return dict(revalidate(record, AGENT, rules, NONE, started_ms).denied)


@pytest.mark.parametrize("judged_at_ms", [ASKED_MS, None], ids=["recorded", "by the record"])
def test_clock_alone_refuses_no_approved_call(judged_at_ms: int | None) -> None:
    rules = policy(ASKS, rule("nights", priority=900, **NIGHTS))
    assert denied(rules, approved(judged_at_ms)) == {}
    assert denied(rules, approved(STARTED_MS)) == {0: "Denied by policy: Rule nights says deny."}


def test_rule_that_ended_since_does_not_withdraw_the_approval() -> None:
    ends = rule("refunds", "request_approval", tool_name="refund", valid_until="2026-11-23T18:00 Europe/Zurich")
    checked = revalidate(approved(), AGENT, policy(ends), NONE, STARTED_MS)
    assert (checked.again, checked.denied) == ({}, {})


def test_absolute_rule_holds_at_the_start() -> None:
    rules = policy(ASKS, rule("nights", absolute=True, **NIGHTS))
    reason = "Denied by policy: Rule nights says deny. Nobody can lift this."
    assert denied(rules, approved()) == {0: reason}
    assert denied(rules, approved(), at("2026-11-23T17:59")) == {}


def test_absolute_rule_holds_at_the_start_under_unchanged_rules() -> None:
    rules = policy(ASKS, rule("nights", absolute=True, **NIGHTS))
    record = approved()
    terms = record.items[0].terms.model_copy(update={"rule_version": rules.version})
    same = record.model_copy(update={"items": (record.items[0].model_copy(update={"terms": terms}),)})
    assert list(denied(rules, same)) == [0]


def test_absolute_rule_holds_as_of_the_request_too() -> None:
    during = {"hours": "17:00-18:00", "zone": "Europe/Zurich"}
    rules = policy(ASKS, rule("hour", absolute=True, tool_name="refund", during=during))
    assert list(denied(rules, approved())) == [0]


def test_absolute_rule_denies_a_second_start_in_doubt() -> None:
    doubt = Doubt(begun_at_ms=0, holder="w1", attempt=1, idempotency_key="k")
    record = approved()
    item = record.items[0]
    assert item.outcome is not None
    for choice, found in (("run_again", [0]), ("skip", [])):
        outcome = item.outcome.model_copy(update={"value": {"choice": choice}})
        again = item.model_copy(update={"doubt": doubt, "outcome": outcome})
        doubted = record.model_copy(update={"items": (again,)})
        assert list(denied(policy(rule("never", absolute=True, tool_name="refund")), doubted)) == found
        assert denied(policy(rule("no", tool_name="refund")), doubted) == {}


def test_judge_approved_sees_the_time_of_the_request() -> None:
    record = approved()
    judged = judge_approved(record, record.items[0], Ledger(policy(rule("nights", **NIGHTS))), STARTED_MS)
    assert (judged.action, judged.at_ms) == ("allow", ASKED_MS)


def test_denied_item_is_neither_judged_nor_denied_again() -> None:
    record = pending(asking(), now_ms=ASKED_MS)
    record = decide(record, word(record, "deny", at_ms=ASKED_MS + 1), ASKED_MS + 1).record
    assert list_judged(record) == []
    assert denied(policy(rule("never", absolute=True, tool_name="refund")), record) == {}


def test_call_that_the_same_rules_allowed_starts() -> None:
    by_rule = PresetOutcome(verdict=Verdict.APPROVED, by=Actor(id="policy", kind=ActorKind.POLICY))
    rules = policy(rule("refunds", "allow", tool_name="refund"))
    draft = asking().model_copy(update={"preset": by_rule, "rule_version": rules.version})
    record = pending(draft, asking(1), now_ms=ASKED_MS)
    record = decide(record, word(record, item_id="i2", at_ms=ASKED_MS + 1), ASKED_MS + 1).record
    checked = revalidate(record, AGENT, rules, NONE, STARTED_MS)
    assert (dict(checked.again), dict(checked.denied)) == ({}, {})


def test_grant_has_not_ended_where_nothing_was_judged_again() -> None:
    granted = approved().items[0].model_copy(update={"grant_id": "gra_1"})
    assert find_ended_grant(granted, None) is None
