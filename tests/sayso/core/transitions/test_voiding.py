"""Decisions of deactivated people do not count: they are voided while the item is open, and kept once it is closed."""

from sayso.core.records.suspensions import Change, Status
from sayso.core.records.terms import Quorum
from sayso.core.transitions.deciding import decide, void_decisions
from tests.sayso.samples import T0, ask, pending, types_of, word


def test_void_decisions_of_open_items_alone() -> None:
    record = pending(ask(quorum=Quorum(approve=2)), ask(1))
    record = decide(record, word(record, by="ada"), T0).record
    record = decide(record, word(record, by="ada", item_id="i2"), T0).record
    change = void_decisions(record, ("ada",), T0 + 5)
    first, second = change.record.items
    assert (first.decisions, [one.by.id for one in first.voided], first.voided[0].voided_at_ms) == ((), ["ada"], T0 + 5)
    assert (len(second.decisions), second.voided) == (1, ())
    assert types_of(change) == ["decision_voided"]


def test_void_decisions_of_others_changes_nothing() -> None:
    record = pending(ask(quorum=Quorum(approve=2)))
    record = decide(record, word(record, by="ada"), T0).record
    assert void_decisions(record, ("ben",), T0) == Change(record)


def test_denial_of_a_deactivated_person_completes_no_quorum() -> None:
    record = pending(ask(quorum=Quorum(approve=2, deny=2)))
    record = decide(record, word(record, "deny", "ada"), T0).record
    record = void_decisions(record, ("ada",), T0).record
    assert decide(record, word(record, "deny", "ben"), T0).record.status is Status.PENDING
