"""Frozen runs start nothing and lose no time, however freezes overlap."""

import pytest

from sayso.core.records.freezes import Freeze
from sayso.core.records.suspensions import Status
from sayso.core.transitions.deadlines import keep_time
from sayso.core.transitions.deciding import cancel, decide
from sayso.core.transitions.execution import Fence, lease, redeem, release
from sayso.core.transitions.freezing import (
    check_start,
    find_freeze,
    find_held,
    hold,
    lost_ms,
    shift_deadlines,
    tools_to_start,
)
from sayso.errors import DeadlinePassed, Frozen, IllegalTransition
from tests.sayso.samples import T0, ask, intent, pending, person, types_of, word


def freeze(scope: str = "all", at: int = 0, unfrozen: int | None = None) -> Freeze:
    """Return a freeze by root, with times in ms since the start."""
    by = None if unfrozen is None else "root"
    unfrozen_at_ms = None if unfrozen is None else T0 + unfrozen
    return Freeze(
        id=f"{scope}{at}",
        scope=scope,
        reason="odd.",
        by="root",
        at_ms=T0 + at,
        unfrozen_by=by,
        unfrozen_at_ms=unfrozen_at_ms,
    )


@pytest.mark.parametrize(
    ("scope", "covered"),
    [("all", True), ("agent:support", True), ("tool:refund", True), ("agent:other", False), ("tool:look_up", False)],
)
def test_check_start_within_the_scope_of_a_freeze(scope: str, covered: bool) -> None:
    record = decide(pending(), word(pending()), T0).record
    assert tools_to_start(record) == ("refund",)
    if not covered:
        check_start([freeze(scope)], record, tools_to_start(record), T0)
        return
    with pytest.raises(Frozen, match=r"root has frozen .*: odd\. The run"):
        check_start([freeze(scope)], record, tools_to_start(record), T0)
    check_start([freeze(scope, unfrozen=5)], record, tools_to_start(record), T0)


def test_find_freeze_names_the_first_that_holds_an_item() -> None:
    record = pending()
    item, freezes = record.items[0], (freeze("agent:support", unfrozen=5), freeze("tool:look_up"), freeze("all", 7))
    assert find_freeze(record, item, freezes[:2]) is None
    assert find_freeze(record, item, freezes) == freezes[2]
    approved = decide(record, word(record), T0).record
    assert find_freeze(approved, approved.items[0], freezes) == freezes[2]
    started = approved.items[0].model_copy(update={"permit": "redeemed"})
    assert find_freeze(approved, started, freezes) is None, "it has started"
    denied = decide(record, word(record, "deny"), T0).record
    assert find_freeze(denied, denied.items[0], freezes) is None, "nothing of it starts"
    cancelled = cancel(record, person("root"), "", T0).record
    assert find_freeze(cancelled, cancelled.items[0], freezes) is None


def test_check_start_ignores_run_and_denied_tools() -> None:
    record = decide(pending(), word(pending(), "deny"), T0).record
    check_start([freeze("tool:refund")], record, tools_to_start(record), T0)


def test_keep_time_skips_held_items() -> None:
    record = pending(ask(timeout_s=60, remind_after_s=(10,)))
    held = find_held(record, [freeze()])
    assert held == {"i1"}
    assert keep_time(record, T0 + 90_000, held).record is record
    later = hold(record, T0 + 90_000).record
    assert later.due_at_ms == T0 + 95_000


@pytest.mark.parametrize(
    ("freezes", "lost"),
    [
        ([freeze(at=10, unfrozen=30)], 20),
        ([freeze(at=10, unfrozen=30), freeze("tool:refund", at=20, unfrozen=50)], 40),
        ([freeze(at=10, unfrozen=60), freeze("tool:refund", at=20, unfrozen=30)], 50),
        ([freeze(at=10, unfrozen=20), freeze("agent:support", at=40, unfrozen=45)], 15),
        ([freeze(at=-50, unfrozen=5)], 5),
        ([freeze(at=90)], 10),
        ([freeze("tool:other", at=10, unfrozen=30)], 0),
    ],
)
def test_lost_ms_counts_overlapping_freezes_once(freezes: list[Freeze], lost: int) -> None:
    record = pending()
    assert lost_ms(record, record.items[0], freezes, T0 + 100) == lost


def test_every_moment_of_an_open_item_moves_by_the_time_it_was_frozen() -> None:
    record = pending(
        ask(timeout_s=60, extend_by_s=60, remind_after_s=(10, 30), escalate=[{"after_s": 20, "reviewers": ["eve"]}])
    )
    before = keep_time(record, T0 + 10_000).record
    unfrozen = [freeze(at=15_000, unfrozen=115_000)]
    change = shift_deadlines(before, unfrozen, T0 + 116_000)
    (item,) = change.record.items
    assert types_of(change) == ["deadlines_moved"]
    assert change.events[0].data["items"][0]["by_ms"] == 100_000
    assert item.terms.deadline_at_ms == T0 + 160_000
    assert item.terms.extend_until_ms == T0 + 220_000
    assert item.terms.remind_at_ms == (T0 + 10_000, T0 + 130_000)
    assert change.record.due_at_ms == T0 + 120_000, "the step to the next reviewers moves too"
    assert item.digest != before.items[0].digest
    again = shift_deadlines(change.record, unfrozen, T0 + 117_000)
    assert again.record is change.record


def test_shift_deadlines_once_for_successive_freezes() -> None:
    everything, tool = freeze(at=0), freeze("tool:refund", at=5_000)
    record = pending(ask(timeout_s=60))
    unfrozen = freeze(at=0, unfrozen=10_000)
    assert shift_deadlines(record, [unfrozen, tool], T0 + 10_000).record is record, "the tool is frozen still"
    both = [unfrozen, freeze("tool:refund", at=5_000, unfrozen=30_000)]
    shifted = shift_deadlines(record, both, T0 + 30_000).record
    assert shifted.items[0].terms.deadline_at_ms == T0 + 90_000
    assert everything.in_force


def test_deadlines_moved_names_its_freezes() -> None:
    over = freeze("agent:support", at=-50, unfrozen=0)
    [events] = shift_deadlines(
        pending(), [over, freeze("tool:other", at=10, unfrozen=30), freeze(at=10, unfrozen=30)], T0 + 30
    ).events
    assert events.data["freezes"] == [{"id": "all10", "scope": "all", "by": "root", "unfrozen_by": "root"}]


def test_late_known_freeze_counts_from_its_start() -> None:
    record = pending(ask(timeout_s=60))
    first, second = freeze(at=1_000, unfrozen=3_000), freeze(at=3_000, unfrozen=7_000)
    once = shift_deadlines(record, [first], T0 + 3_400).record
    assert once.items[0].terms.deadline_at_ms == T0 + 62_000
    assert once.items[0].held_to_ms == T0 + 3_000
    twice = shift_deadlines(once, [first, second], T0 + 8_000).record
    assert twice.items[0].terms.deadline_at_ms == T0 + 66_000
    assert shift_deadlines(twice, [first, second], T0 + 9_000).record is twice


def test_decide_with_lost_time() -> None:
    record = pending(ask(timeout_s=60))
    lost = lost_ms(record, record.items[0], [freeze(at=50_000)], T0 + 70_000)
    with pytest.raises(DeadlinePassed):
        decide(record, word(record), T0 + 70_000)
    assert decide(record, word(record), T0 + 70_000, lost).record.status is Status.DECIDED


def test_shift_deadlines_extends_the_latest_start() -> None:
    record = decide(pending(ask(start_by_s=10)), word(pending(ask(start_by_s=10))), T0 + 1_000).record
    shifted = shift_deadlines(record, [freeze(at=0, unfrozen=60_000)], T0 + 60_000).record
    assert shifted.items[0].outcome == record.items[0].outcome, "the outcome itself never changes"
    assert shifted.items[0].start_by_ms == T0 + 11_000 + 59_000
    taken = lease(shifted, "w1", 30_000, T0 + 65_000).record
    redeemed = redeem(taken, Fence("w1", 1, 30_000), (intent(),), (), T0 + 65_000).record
    assert redeemed.items[0].permit is not None
    unfrozen = shift_deadlines(redeemed, [freeze(at=70_000, unfrozen=80_000)], T0 + 80_000)
    assert (unfrozen.record, unfrozen.events) == (redeemed, ()), "a redeemed permit was extended"


def test_release_of_a_frozen_run_is_not_ready() -> None:
    record = decide(pending(), word(pending(), "deny"), T0).record
    taken = lease(record, "w1", 30_000, T0).record
    back = release(taken, Fence("w1", 1, 30_000), "frozen", T0, ("look_up",))
    assert not back.ready
    assert tools_to_start(back.record) == ("look_up",)
    with pytest.raises(Frozen):
        check_start([freeze("tool:look_up")], back.record, tools_to_start(back.record), T0)
    assert lease(back.record, "w1", 30_000, T0).record.waits_for == ()


def test_hold_and_shift_refuse_an_ended_run() -> None:
    over = cancel(pending(), person("ada"), None, T0).record
    with pytest.raises(IllegalTransition):
        hold(over, T0)
    with pytest.raises(IllegalTransition):
        shift_deadlines(over, [freeze(unfrozen=5)], T0)
