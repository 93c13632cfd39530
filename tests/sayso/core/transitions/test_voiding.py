"""Decisions that no longer count: of deactivated people, and those that their authors took back."""

import pytest

from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.suspensions import Change, Status
from sayso.core.records.terms import Quorum
from sayso.core.transitions.deadlines import needs_sight
from sayso.core.transitions.deciding import decide, find_own, replace_own, retract, void_decisions, without_own
from sayso.core.transitions.decision_checks import MOST_VOIDED
from sayso.errors import AlreadyDecided, Conflict, DeadlinePassed, NotAllowed
from tests.sayso.samples import T0, ask, pending, person, types_of, word


def test_void_decisions_of_open_items_alone() -> None:
    record = pending(ask(quorum=Quorum(approve=2)), ask(1))
    record = decide(record, word(record, by="ada"), T0).record
    record = decide(record, word(record, by="ada", item_id="i2"), T0).record
    change = void_decisions(record, ("ada",), T0 + 5)
    first, second = change.record.items
    assert (first.decisions, [decision.by.id for decision in first.voided], first.voided[0].voided_at_ms) == (
        (),
        ["ada"],
        T0 + 5,
    )
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


def test_retract_takes_out_ones_own_decision_alone() -> None:
    record = pending(ask(quorum=Quorum(approve=3)), ask(1))
    for who in ("ada", "ben"):
        record = decide(record, word(record, by=who), T0).record
    change = retract(record, "i1", person("ada"), T0 + 5)
    item, other = change.record.items
    assert ([decision.by.id for decision in item.decisions], other) == (["ben"], record.items[1])
    assert [(decision.by.id, decision.retracted, decision.voided_at_ms) for decision in item.voided] == [
        ("ada", True, T0 + 5)
    ]
    assert types_of(change) == ["decision_retracted"]
    assert change.events[0].data["by"]["id"] == "ada"


def test_retracted_decision_counts_for_no_quorum_until_made_anew() -> None:
    record = pending(ask(quorum=Quorum(approve=2)))
    record = decide(record, word(record, by="ada"), T0).record
    record = retract(record, "i1", person("ada"), T0).record
    record = decide(record, word(record, by="ben"), T0).record
    assert record.status is Status.PENDING
    record = decide(record, word(record, "deny", by="ada", id="dec_anew"), T0).record
    assert record.status is Status.DECIDED


def test_retract_again_changes_nothing_but_needs_a_decision() -> None:
    record = pending(ask(quorum=Quorum(approve=2)))
    record = decide(record, word(record, by="ada"), T0).record
    with pytest.raises(Conflict, match="no decision on this item to take back"):
        retract(record, "i1", person("ben"), T0)
    record = retract(record, "i1", person("ada"), T0).record
    assert retract(record, "i1", person("ada"), T0 + 5).record is record
    with pytest.raises(Conflict, match="no decision"):
        retract(record, "i1", person("ben"), T0)


def test_lapsed_decision_of_ones_own_is_not_taken_back() -> None:
    record = pending(ask(quorum=Quorum(approve=2)))
    record = decide(record, word(record, by="ada"), T0).record
    record = void_decisions(record, ("ada",), T0).record
    with pytest.raises(Conflict, match="no decision"):
        retract(record, "i1", person("ada"), T0)


def test_retract_comes_before_the_quorum_and_the_deadline() -> None:
    record = pending(ask(0, quorum=Quorum(approve=2)), ask(1))
    record = decide(record, word(record, by="ada"), T0).record
    with pytest.raises(DeadlinePassed):
        retract(record, "i1", person("ada"), T0 + 300_000)
    assert retract(record, "i1", person("ada"), T0 + 300_000, lost_ms=1).events
    met = decide(record, word(record, by="ben"), T0).record
    with pytest.raises(AlreadyDecided):
        retract(met, "i1", person("ada"), T0)


def test_an_agent_retracts_nothing() -> None:
    record = pending(ask(quorum=Quorum(approve=2)))
    record = decide(record, word(record, by="ada"), T0).record
    with pytest.raises(NotAllowed):
        retract(record, "i1", Actor(id="ada", kind=ActorKind.AGENT), T0)


def test_who_retracted_has_seen_the_item() -> None:
    record = pending(ask(quorum=Quorum(approve=2), unattended_approval=True, fallback={"action": "approve"}))
    assert needs_sight(record, record.items[0])
    decided = decide(record, word(record, by="ada"), T0).record
    record = retract(decided, "i1", person("ada"), T0).record
    assert not needs_sight(record, record.items[0])
    record = void_decisions(decided, ("ada",), T0).record
    assert needs_sight(record, record.items[0])


def test_lapsed_decision_reminds_and_a_retracted_one_does_not() -> None:
    record = pending(ask(quorum=Quorum(approve=2)))
    decided = decide(record, word(record, by="ada"), T0).record
    lapsed = void_decisions(decided, ("ada",), T0).record.items[0]
    retracted = retract(decided, "i1", person("ada"), T0).record.items[0]
    assert (decided.items[0].reminders, lapsed.reminders, retracted.reminders) == (0, 1, 0)


def test_decision_made_anew_is_taken_back_as_well() -> None:
    record = pending(ask(quorum=Quorum(approve=2)))
    for id_ in ("dec_1", "dec_2"):
        record = decide(record, word(record, by="ada", id=id_), T0).record
        record = retract(record, "i1", person("ada"), T0).record
    assert ([decision.id for decision in record.items[0].voided], record.items[0].decisions) == (["dec_1", "dec_2"], ())


def test_replace_own_takes_back_that_decision_of_that_person_alone() -> None:
    record = pending(ask(quorum=Quorum(approve=3)))
    for who in ("ada", "ben"):
        record = decide(record, word(record, by=who, id=f"dec_{who}"), T0).record
    change = replace_own(record, "i1", "dec_ada", person("ada"), T0 + 5)
    (item,) = change.record.items
    assert ([decision.id for decision in item.decisions], [decision.id for decision in item.voided]) == (
        ["dec_ben"],
        ["dec_ada"],
    )
    assert types_of(change) == ["decision_retracted"]
    for replaced, who in (("dec_ben", "ada"), ("dec_ada", "ben"), ("dec_gone", "ada")):
        with pytest.raises(Conflict, match="no longer counts"):
            replace_own(record, "i1", replaced, person(who), T0)
    with pytest.raises(DeadlinePassed):
        replace_own(record, "i1", "dec_ada", person("ada"), record.items[0].terms.deadline_at_ms)


def test_own_decision_can_be_changed_while_it_counts_and_none_takes_effect() -> None:
    record = pending(ask(quorum=Quorum(approve=2)))
    record = decide(record, word(record, by="ada"), T0).record
    (item,) = record.items
    own = find_own(item, "ada")
    assert own is not None
    assert find_own(item, "ben") is None
    assert without_own(item, own, T0).decisions == ()
    closed = decide(record, word(record, by="ben"), T0).record.items[0]
    assert find_own(closed, "ada") is None
    soon = pending(ask(quorum=Quorum(approve=2), undo="3s"))
    for who in ("ada", "ben"):
        soon = decide(soon, word(soon, by=who), T0).record
    assert soon.items[0].undoable is not None
    assert find_own(soon.items[0], "ada") is None


def test_one_person_leaves_a_bounded_number_of_void_decisions() -> None:
    record = pending(ask(quorum=Quorum(approve=2)))
    for number in range(MOST_VOIDED):
        record = decide(record, word(record, by="ada", id=f"dec_{number}"), T0).record
        record = retract(record, "i1", person("ada"), T0).record
    with pytest.raises(AlreadyDecided, match="20 decisions of ada on this item no longer count"):
        decide(record, word(record, by="ada", id="dec_last"), T0)
    assert len(record.items[0].voided) == MOST_VOIDED
    assert len(decide(record, word(record, by="ben"), T0).record.items[0].decisions) == 1
