"""Coverage `any`: the first closed item decides the suspension."""

import pytest

from sayso.core.records.decisions import COVERED, Verdict
from sayso.core.records.suspensions import ResumeSpec, Status, SuspensionRecord
from sayso.core.transitions.deadlines import keep_time
from sayso.core.transitions.deciding import decide, suspend
from sayso.errors import AlreadyDecided
from tests.sayso.samples import T0, ask, draft, types_of, word


def any_of(*timeouts_s: int) -> SuspensionRecord:
    drafts = tuple(ask(index, timeout_s=timeout_s) for index, timeout_s in enumerate(timeouts_s))
    return suspend(draft(resume=ResumeSpec(coverage="any")), drafts, T0).record


@pytest.mark.parametrize(("action", "verdict"), [("approve", Verdict.APPROVED), ("deny", Verdict.DENIED)])
def test_first_decision_closes_all_with_coverage_any(action: str, verdict: Verdict) -> None:
    record = any_of(60, 60, 60)
    change = decide(record, word(record, action, item_id="i2"), T0 + 5)
    assert change.record.status is Status.DECIDED
    assert change.ready
    first, second, third = (item.outcome for item in change.record.items)
    assert second is not None
    assert second.verdict is verdict
    for other in (first, third):
        assert other is not None
        assert (other.verdict, other.by) == (Verdict.DENIED, COVERED)
        assert "one decision is enough" in (other.message or "")
    assert types_of(change) == ["decision_recorded", "decided"]
    decided = change.events[-1].data
    assert decided["closed_with_it"] == ["i1", "i3"]
    kept = [(one["item_id"], one["args"], one["quorum"]) for one in decided["unanswered"]]
    asked = record.items[0].tool.args, record.items[2].tool.args
    assert kept == [("i1", asked[0], {"approve": 1, "deny": 1}), ("i3", asked[1], {"approve": 1, "deny": 1})]
    with pytest.raises(AlreadyDecided, match="one decision is enough"):
        decide(change.record, word(change.record, "approve", by="eve", item_id="i1"), T0 + 6)


def test_expire_several_items_with_coverage_any() -> None:
    change = keep_time(any_of(60, 60), T0 + 60_000)
    assert change.record.status is Status.DECIDED
    assert types_of(change) == ["timed_out", "decided"]
    assert [item.outcome.by.id for item in change.record.items if item.outcome] == ["timeout", "coverage"]


def test_decide_below_quorum_keeps_the_item_open() -> None:
    drafts = (ask(0, quorum={"approve": 2}), ask(1))
    record = suspend(draft(resume=ResumeSpec(coverage="any")), drafts, T0).record
    change = decide(record, word(record), T0)
    assert change.record.status is Status.PENDING
    assert all(item.open for item in change.record.items)
