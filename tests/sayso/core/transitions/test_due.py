"""Transitions of due suspensions, and after freezes."""

import pytest

from sayso.core.records.freezes import Freeze
from sayso.core.records.suspensions import ResumeSpec, Status, SuspensionRecord
from sayso.core.transitions.deciding import decide
from sayso.core.transitions.due import tick, wake
from tests.sayso.samples import T0, ask, pending, word

DUE = T0 + 3_000


def freeze(scope: str = "all", unfrozen: int | None = None) -> Freeze:
    return Freeze(id="frz", scope=scope, by="ada", at_ms=T0, unfrozen_at_ms=None if unfrozen is None else T0 + unfrozen)


def decided() -> SuspensionRecord:
    record = pending(ask(0))
    return decide(record, word(record), T0).record


def test_redrive_only_at_the_due_time() -> None:
    record = decided()
    assert record.due_at_ms == DUE
    assert tick(record, (), DUE - 1).record is record
    again = tick(record, (), DUE)
    assert again.ready
    assert again.record.receipt.redrives == 1


def test_tick_holds_a_frozen_run_at_its_due_time() -> None:
    record, frozen = decided(), (freeze(),)
    assert tick(record, frozen, DUE - 1).record is record
    held = tick(record, frozen, DUE)
    assert not held.ready
    assert (held.record.due_at_ms or 0) > DUE


@pytest.mark.parametrize("record", [pending(ask(0)), decided()], ids=["waiting", "decided"])
def test_wake_by_another_freeze_changes_nothing(record: SuspensionRecord) -> None:
    other = freeze("agent:somebody-else", unfrozen=1_000)
    assert wake(record, other, (other,), T0 + 2_000).record is record


def test_wake_reschedules_by_the_terms() -> None:
    record, unfrozen = pending(ask(0)), freeze(unfrozen=1_000)
    put_off = record.model_copy(update={"due_at_ms": T0 + 900_000})
    woken = wake(put_off, unfrozen, (unfrozen,), T0 + 2_000).record
    assert woken.due_at_ms == woken.items[0].terms.deadline_at_ms == record.items[0].terms.deadline_at_ms + 1_000


def test_wake_makes_a_decided_run_ready() -> None:
    unfrozen = freeze(unfrozen=1_000)
    assert wake(decided(), unfrozen, (unfrozen,), T0 + 1_500).ready


def test_tick_of_an_ended_run_changes_nothing() -> None:
    record = decided().model_copy(update={"status": Status.CANCELLED})
    assert tick(record, (), DUE).record is record
    unfrozen = freeze(unfrozen=1_000)
    assert wake(record, unfrozen, (unfrozen,), DUE).record is record


def test_tick_keeps_a_decision_made_in_time() -> None:
    record = pending(ask(0))
    said = decide(record, word(record), T0).record
    assert tick(said, (), T0 + 1).record.items[0].outcome == said.items[0].outcome


def test_client_run_denied_by_fallback_ends_at_the_next_tick() -> None:
    record = pending(ask(0)).model_copy(update={"resume": ResumeSpec(mode="poll", resumer="poll")})
    deadline_ms = record.items[0].terms.deadline_at_ms
    denied = tick(record, (), deadline_ms).record
    assert (denied.status, denied.due_at_ms) == (Status.DECIDED, deadline_ms)


def test_tick_before_the_due_time_of_a_frozen_run() -> None:
    record = pending(ask(0))
    assert tick(record, (freeze(),), T0 + 1).record is record
