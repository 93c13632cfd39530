"""At its deadline an item is decided by its fallback; reminders and escalations come before it."""

import pytest

from sayso.core.records.decisions import ActorKind, Verdict
from sayso.core.records.items import ItemKind
from sayso.core.transitions.deadlines import expire, keep_time, see
from sayso.core.transitions.deciding import extend
from sayso.errors import (
    DeadlinePassed,
    InvalidInput,
    SelfApproval,
)
from tests.sayso.samples import T0, ask, pending, person, types_of

DEADLINE = T0 + 300_000
ASKED = {"order": "A-0", "amount": 250.5}


@pytest.mark.parametrize(
    ("fallback", "kind", "verdict"),
    [
        ({"action": "deny"}, ItemKind.APPROVAL, Verdict.DENIED),
        ({"action": "approve"}, ItemKind.APPROVAL, Verdict.APPROVED),
        ({"action": "value", "value": 7}, ItemKind.INPUT, Verdict.ANSWERED),
        ({"action": "fail"}, ItemKind.APPROVAL, Verdict.FAILED),
    ],
)
def test_the_fallback_decides_at_the_deadline(fallback: dict[str, object], kind: ItemKind, verdict: Verdict) -> None:
    record = see(pending(ask(kind=kind, fallback=fallback, unattended_approval=True)), "i1", person("ada"), T0).record
    assert expire(record, DEADLINE - 1).record is record
    change = expire(record, DEADLINE)
    outcome = change.record.items[0].outcome
    assert outcome is not None
    assert (outcome.verdict, outcome.by.kind) == (verdict, ActorKind.TIMEOUT)
    assert types_of(change) == ["timed_out", "decided"]
    assert change.ready


def test_only_the_item_whose_time_is_over_expires() -> None:
    record = pending(ask(0, timeout_s=60), ask(1, timeout_s=600))
    change = expire(record, T0 + 60_000)
    assert [item.open for item in change.record.items] == [False, True]
    assert change.record.due_at_ms == T0 + 600_000


def test_fallback_escalate_adds_reviewers_then_denies() -> None:
    steps = [{"after_s": 900, "reviewers": ["boss"]}]
    record = pending(ask(reviewers=("ada",), fallback={"action": "escalate"}, escalate=steps))
    first = expire(record, DEADLINE)
    assert types_of(first) == ["escalated"]
    item = first.record.items[0]
    assert (item.terms.reviewers, item.terms.deadline_at_ms) == (("ada", "boss"), DEADLINE + 300_000)
    assert item.digest != record.items[0].digest, "a new deadline is a new question"
    second = expire(first.record, DEADLINE + 300_000)
    assert types_of(second) == ["timed_out", "decided"]
    outcome = second.record.items[0].outcome
    assert outcome is not None
    assert outcome.verdict is Verdict.DENIED


def test_remind_merges_missed_reminders() -> None:
    record = pending(ask(remind_after_s=(10, 20, 200)))
    assert record.due_at_ms == T0 + 10_000
    change = keep_time(record, T0 + 25_000)
    assert types_of(change) == ["reviewer_reminded"]
    assert change.record.due_at_ms == T0 + 200_000
    assert keep_time(change.record, T0 + 26_000).record is change.record


def test_escalate_before_the_deadline() -> None:
    steps = [{"after_s": 30, "reviewers": ["boss"]}, {"after_s": 60, "reviewers": ["ceo"]}]
    record = pending(ask(reviewers=("ada",), escalate=steps))
    first = keep_time(record, T0 + 30_000).record
    assert first.items[0].terms.reviewers == ("ada", "boss")
    assert first.items[0].terms.deadline_at_ms == DEADLINE
    second = keep_time(first, T0 + 70_000).record
    assert second.items[0].terms.reviewers == ("ada", "boss", "ceo")
    assert second.due_at_ms == DEADLINE


def test_a_reviewer_may_extend_a_deadline_as_far_as_the_terms_allow() -> None:
    record = pending(ask(extend_by_s=600))
    change = extend(record, "i1", DEADLINE + 600_000, person("ada"), T0 + 5)
    item = change.record.items[0]
    assert (item.terms.deadline_at_ms, change.record.due_at_ms) == (DEADLINE + 600_000, DEADLINE + 600_000)
    assert item.digest != record.items[0].digest
    assert types_of(change) == ["deadline_extended"]
    for until_ms in (DEADLINE, DEADLINE + 600_001):
        with pytest.raises(InvalidInput, match="up to"):
            extend(record, "i1", until_ms, person("ada"), T0)
    with pytest.raises(InvalidInput, match="allow no extension"):
        extend(pending(), "i1", DEADLINE + 1, person("ada"), T0)
    with pytest.raises(DeadlinePassed):
        extend(record, "i1", DEADLINE + 1, person("ada"), DEADLINE)
    with pytest.raises(SelfApproval):
        extend(record, "i1", DEADLINE + 1, person("bot"), T0)
