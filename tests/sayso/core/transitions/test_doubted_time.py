"""While the clock is in doubt, nothing created before it expires."""

import pytest

from sayso.core.records.freezes import JUMP_MS, TIME, Freeze
from sayso.core.transitions.deadlines import keep_time
from sayso.core.transitions.deciding import cancel, decide
from sayso.core.transitions.decision_checks import check_open
from sayso.core.transitions.due import tick, wake
from sayso.core.transitions.execution import lease
from sayso.core.transitions.freezing import check_in_time, check_start, describe_scope, doubt_time, hold, spare_lease
from sayso.errors import AlreadyDecided, ClockInDoubt, DeadlinePassed
from tests.sayso.samples import T0, ask, pending, person, word

DEADLINE = T0 + 300_000
JUMPED_TO = T0 + 900_000


def doubt(at_ms: int = T0, jumped_to_ms: int = JUMPED_TO) -> Freeze:
    return Freeze(id="clock", scope=TIME, by="clock", at_ms=at_ms, jumped_to_ms=jumped_to_ms)


def test_freeze_of_time_holds_older_items_only() -> None:
    assert doubt().held(pending())
    assert not doubt(jumped_to_ms=T0).held(pending())
    assert describe_scope(TIME) == "time"


def test_doubt_time_without_clock_readings() -> None:
    assert doubt_time((), 0, T0) == ()
    assert doubt_time((), T0, T0 + JUMP_MS) == ()
    assert len(doubt_time((), T0, T0 + JUMP_MS + 1)) == 1
    assert doubt_time((doubt(),), T0, JUMPED_TO) == (doubt(),)


def test_check_in_time_refuses_open_items_in_doubt() -> None:
    record = pending()
    with pytest.raises(ClockInDoubt):
        check_in_time((doubt(),), record, record.items[0], DEADLINE)
    check_in_time((doubt(),), record, record.items[0], DEADLINE - 1)
    check_in_time((doubt(DEADLINE),), record, record.items[0], DEADLINE)
    said = decide(record, word(record), T0).record
    check_in_time((doubt(),), said, said.items[0], DEADLINE)


def test_check_start_in_doubt_ignores_denied_items() -> None:
    asked = pending(ask(start_by_s=60))
    record = decide(asked, word(asked), T0).record
    with pytest.raises(ClockInDoubt):
        check_start((doubt(),), record, (), T0 + 60_000)
    check_start((doubt(),), record, (), T0 + 59_999)
    check_start((doubt(),), decide(asked, word(asked, "deny"), T0).record, (), JUMPED_TO)


def test_spare_lease_after_a_clock_jump() -> None:
    asked = pending()
    said = decide(asked, word(asked), T0).record
    taken = lease(said, "w1", 30_000, T0).record
    assert spare_lease((doubt(),), taken, JUMPED_TO)
    assert not spare_lease((doubt(),), taken, JUMPED_TO + 30_000)
    assert not spare_lease((doubt(),), said, JUMPED_TO)
    assert not spare_lease((doubt(),), taken.model_copy(update={"lease": None}), JUMPED_TO)
    assert not spare_lease((doubt(),), said.model_copy(update={"lease": taken.lease}), JUMPED_TO)


def test_hold_without_reason_keeps_the_error() -> None:
    held = hold(pending(), T0, "odd").record
    assert hold(held, T0 + 1).record.receipt.error == "odd"


def test_check_open_of_decided_or_late_items() -> None:
    record = pending()
    check_open(record, DEADLINE - 1)
    with pytest.raises(DeadlinePassed):
        check_open(record, DEADLINE)
    with pytest.raises(AlreadyDecided):
        check_open(decide(record, word(record), T0).record, T0)


def test_tick_holds_a_spared_lease() -> None:
    asked = pending()
    taken = lease(decide(asked, word(asked), T0).record, "w1", 30_000, T0).record
    spared = tick(taken, (doubt(),), JUMPED_TO)
    assert not spared.ready
    assert tick(spared.record, (doubt(),), JUMPED_TO + 1).record is spared.record
    assert tick(taken, (doubt(),), JUMPED_TO + 30_000).ready


def test_shift_deadlines_without_lost_time() -> None:
    record, unfrozen = pending(), Freeze(id="f", scope="all", by="ada", at_ms=T0, unfrozen_at_ms=T0)
    assert wake(record, unfrozen, (unfrozen,), T0 + 1).record is record


def test_early_tick_reschedules() -> None:
    early = pending().model_copy(update={"due_at_ms": T0 + 5})
    assert keep_time(early, T0 + 4).record is early
    assert keep_time(early, T0 + 5).record.due_at_ms == DEADLINE


def test_check_open_of_withdrawn_items() -> None:
    withdrawn = cancel(pending(ask(0)), person("demo"), None, T0).record
    check_open(withdrawn, DEADLINE + 1)
    assert withdrawn.items[0].open
