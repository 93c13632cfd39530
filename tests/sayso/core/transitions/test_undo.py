"""A decision that can be undone takes effect after some seconds, once, and nobody learns of it before."""

from collections.abc import Callable
from typing import Any

import pytest

from sayso.core.policy.strictness import strictest_terms
from sayso.core.records.decisions import Verdict
from sayso.core.records.freezes import Freeze
from sayso.core.records.items import Drill, freeze_terms
from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.core.records.terms import Quorum, RuleTerms
from sayso.core.transitions.closing import next_due
from sayso.core.transitions.deadlines import escalate, expire, keep_time, remind
from sayso.core.transitions.deciding import (
    ask_again,
    cancel,
    decide,
    defer_effects,
    extend,
    retract,
    void_decisions,
)
from sayso.core.transitions.deliveries import card_version
from sayso.core.transitions.due import tick
from sayso.core.transitions.freezing import shift_deadlines
from sayso.core.transitions.inquiring import claim
from sayso.core.transitions.quorum import take_effect
from sayso.errors import AlreadyDecided, Conflict, IdempotencyConflict, IllegalTransition
from tests.sayso.features.permissions.test_shadowing import make as make_grant
from tests.sayso.runner.test_revalidation_mandates import make as make_mandate
from tests.sayso.samples import T0, ask, pending, person, types_of, word

END = T0 + 5_000


def deferred(action: str = "approve", **terms: Any) -> SuspensionRecord:
    """Return a suspension whose only item ada has decided; she can undo it for 5 s."""
    record = pending(ask(**{"undo": "5s", **terms}))
    return decide(record, word(record, action), T0).record


@pytest.mark.parametrize(("action", "verdict"), [("approve", Verdict.APPROVED), ("deny", Verdict.DENIED)])
def test_decision_takes_effect_when_its_time_is_over(action: str, verdict: Verdict) -> None:
    record = deferred(action)
    item = record.items[0]
    assert (record.status, item.decisions, item.outcome, record.due_at_ms) == (Status.PENDING, (), None, END)
    assert take_effect(record, END - 1) == Change(record)
    change = keep_time(record, END)
    outcome = change.record.items[0].outcome
    assert outcome is not None
    assert (outcome.verdict, outcome.by.id, outcome.at_ms, change.ready) == (verdict, "ada", END, True)
    assert types_of(change) == ["decision_recorded", "decided"]
    assert (change.record.items[0].undoable, len(change.record.items[0].decisions)) == (None, 1)


def test_decision_says_until_when_it_can_be_undone() -> None:
    record = pending(ask(undo="5s"))
    change = decide(record, word(record), T0)
    assert types_of(change) == ["decision_deferred"]
    assert (change.events[0].data["until_ms"], change.ready) == (END, False)
    assert card_version(record, record.items[0]) != card_version(change.record, change.record.items[0])


def test_undone_decision_counts_no_longer() -> None:
    record = deferred()
    change = retract(record, "i1", person("ada"), END - 1)
    item = change.record.items[0]
    assert (item.undoable, [(one.by.id, one.retracted) for one in item.voided]) == (None, [("ada", True)])
    assert types_of(change) == ["decision_retracted"]
    assert change.record.due_at_ms == item.terms.deadline_at_ms
    again = decide(change.record, word(change.record, "deny", id="dec_anew"), END).record
    assert keep_time(again, END + 5_000).record.status is Status.DECIDED


def test_undo_is_refused_to_others_and_when_it_is_late() -> None:
    record = deferred()
    with pytest.raises(Conflict, match="takes effect at"):
        retract(record, "i1", person("ben"), T0)
    with pytest.raises(Conflict, match="takes effect at"):
        retract(record, "i1", person("ada"), END)
    with pytest.raises(AlreadyDecided):
        retract(keep_time(record, END).record, "i1", person("ada"), END)


def test_nobody_changes_an_item_whose_decision_takes_effect_soon() -> None:
    record = deferred(extend_by_s=600)
    other = word(record, "deny", by="ben")
    acts: tuple[Callable[[], Change], ...] = (
        lambda: decide(record, other, T0),
        lambda: ask_again(record, other, ask(), T0),
        lambda: extend(record, "i1", T0 + 400_000, person("ben"), T0),
        lambda: claim(record, "i1", person("ben"), T0),
    )
    for act in acts:
        with pytest.raises(Conflict, match="takes effect at"):
            act()


def test_repeated_decision_that_can_be_undone_changes_nothing() -> None:
    record = deferred()
    assert decide(record, word(record), T0 + 1).record is record
    with pytest.raises(IdempotencyConflict):
        decide(record, word(record, message="other"), T0 + 1)


@pytest.mark.parametrize(
    ("terms", "lost_ms", "until_ms"),
    [
        ({"timeout_s": 3}, 0, T0 + 3_000),
        ({"timeout_s": 3}, 500, T0 + 3_500),
        ({"start_by_s": 2}, 0, T0 + 2_000),
        ({}, 0, END),
    ],
)
def test_undo_ends_by_the_deadline_and_the_start_by_time(terms: dict[str, Any], lost_ms: int, until_ms: int) -> None:
    record = pending(ask(**{"undo": "5s", **terms}))
    change = decide(record, word(record), T0, lost_ms)
    assert change.record.due_at_ms == until_ms


@pytest.mark.parametrize("late_ms", [0, 60_000])
def test_decision_made_in_time_takes_effect_after_the_deadline(late_ms: int) -> None:
    record = deferred(timeout_s=3)
    change = keep_time(record, T0 + 3_000 + late_ms)
    outcome = change.record.items[0].outcome
    assert outcome is not None
    assert (outcome.by.id, types_of(change)) == ("ada", ["decision_recorded", "decided"])


def test_decision_that_completes_no_quorum_is_recorded_at_once() -> None:
    record = pending(ask(undo="5s", quorum=Quorum(approve=2)))
    first = decide(record, word(record), T0)
    assert (types_of(first), first.record.items[0].undoable) == (["decision_recorded"], None)
    second = decide(first.record, word(record, by="ben"), T0)
    assert types_of(second) == ["decision_deferred"]


def test_decision_that_is_to_count_at_once_is_not_held() -> None:
    record = pending(ask(undo="5s"))
    item = decide(record, word(record), T0, at_once=True).record.items[0]
    assert (item.undoable, item.outcome is not None) == (None, True)


def test_effects_of_a_decision_wait_with_it() -> None:
    record, grant = pending(ask(undo="5s")), make_grant()
    decided = decide(record, word(record, grant_id=grant.id), T0)._replace(grant=grant)
    change = defer_effects(record, decided, "i1", (grant,))
    assert (change.grant, change.suspended) == (None, ())
    effect = tick(change.record, (), END)
    assert (effect.record.status, effect.grant, effect.suspended) == (Status.DECIDED, grant, (grant,))
    undone = retract(change.record, "i1", person("ada"), END - 1)
    assert tick(undone.record, (), END).grant is None


def test_effects_of_a_decision_without_undo_are_immediate() -> None:
    record, grant = pending(ask()), make_grant()
    decided = decide(record, word(record), T0)._replace(grant=grant)
    change = defer_effects(record, decided, "i1", (grant,))
    assert (change.grant, change.suspended, change.record) == (grant, (grant,), decided.record)


def test_repeated_decision_has_no_effects() -> None:
    record, grant = pending(ask(undo="5s")), make_grant()
    decided = decide(record, word(record), T0)._replace(grant=grant)
    deferred = defer_effects(record, decided, "i1").record
    again = decide(deferred, word(deferred), T0 + 1)
    assert defer_effects(deferred, again, "i1", (grant,)) is again


def take_two(*effects: dict[str, Any]) -> Change:
    """Return the first tick after two decisions that can be undone until the same time, with these effects."""
    record = pending(ask(0, undo="5s"), ask(1, undo="5s"))
    for item_id, effect in zip(("i1", "i2"), effects, strict=True):
        decided = decide(record, word(record, item_id=item_id), T0)._replace(**effect)
        record = defer_effects(record, decided, item_id, effect.get("suspended", ())).record
    return tick(record, (), END)


@pytest.mark.parametrize(
    "effect", [{"grant": make_grant()}, {"mandate": make_mandate()}, {"suspended": (make_grant(),)}]
)
def test_decisions_with_effects_take_effect_one_after_the_other(effect: dict[str, Any]) -> None:
    first = take_two(effect, effect)
    assert (first.record.status, first.record.due_at_ms) == (Status.PENDING, END)
    second = tick(first.record, (), END)
    assert second.record.status is Status.DECIDED
    for name, value in effect.items():
        assert (getattr(first, name), getattr(second, name)) == (value, value)


def test_plain_decisions_take_effect_together() -> None:
    assert take_two({}, {}).record.status is Status.DECIDED


def test_plan_is_in_force_only_if_the_decision_on_it_counts() -> None:
    record = pending(ask(undo="5s", quorum=Quorum(approve=2)))
    record = decide(record, word(record, by="ben"), T0).record
    decided = decide(record, word(record), T0)._replace(mandate=make_mandate())
    record = defer_effects(record, decided, "i1").record
    assert tick(record, (), END).mandate == make_mandate()
    assert tick(void_decisions(record, ("ben",), T0 + 1).record, (), END).mandate is None


def test_drill_can_be_undone_as_any_item() -> None:
    record = pending(ask(undo="5s"))
    drill = Drill(template="refund", signs=(), planted_by="root")
    record = record.with_item(record.items[0].model_copy(update={"drill": drill}))
    assert types_of(decide(record, word(record, "deny"), T0)) == ["decision_deferred"]


def test_decision_of_a_deactivated_person_does_not_take_effect() -> None:
    change = void_decisions(deferred(), ("ada",), T0 + 1)
    item = change.record.items[0]
    assert (item.undoable, [(one.by.id, one.retracted) for one in item.voided]) == (None, [("ada", False)])
    assert types_of(change) == ["decision_voided"]
    assert keep_time(change.record, END).record is change.record


def test_quorum_that_lapses_meanwhile_is_not_met() -> None:
    record = pending(ask(undo="5s", quorum=Quorum(approve=2)))
    record = decide(record, word(record, by="ben"), T0).record
    record = decide(record, word(record), T0).record
    record = void_decisions(record, ("ben",), T0 + 1).record
    assert record.items[0].undoable is not None
    change = keep_time(record, END)
    assert (types_of(change), change.record.status) == (["decision_recorded"], Status.PENDING)
    assert [one.by.id for one in change.record.items[0].decisions] == ["ada"]


def test_nothing_else_becomes_due_before_a_decision_takes_effect() -> None:
    steps = ({"after_s": 1, "reviewers": ("ben",)},)
    record = deferred(remind_after_s=(1,), escalate=steps, reviewers=("ada",), timeout_s=2)
    assert next_due(record) == T0 + 2_000
    for step in (expire, escalate, remind):
        assert step(record, T0 + 60_000).record is record


def test_frozen_time_moves_no_deadline_of_a_decision_that_takes_effect_soon() -> None:
    freeze = Freeze(id="f", scope="all", reason="odd", by="root", at_ms=T0 + 1)
    ended = freeze.model_copy(update={"unfrozen_at_ms": T0 + 1_000, "unfrozen_by": "root"})
    assert shift_deadlines(deferred(), (ended,), T0 + 2_000).record.items == deferred().items
    change = tick(deferred(), (freeze,), END)
    assert change.record.status is Status.DECIDED
    assert change.record.items[0].outcome is not None


def test_one_decision_that_is_enough_ends_the_time_of_the_others() -> None:
    record = pending(ask(0, undo="5s"), ask(1))
    record = record.model_copy(update={"resume": record.resume.model_copy(update={"coverage": "any"})})
    record = decide(record, word(record), T0).record
    record = decide(record, word(record, by="ben", item_id="i2"), T0).record
    assert (record.status, record.items[0].undoable) == (Status.DECIDED, None)


def test_cancelled_run_learns_of_no_decision() -> None:
    record = cancel(deferred(), person("bot"), None, T0).record
    assert (record.status, record.items[0].outcome) == (Status.CANCELLED, None)


def test_nothing_is_undone_or_decided_in_a_cancelled_run() -> None:
    """Also where the item kept its decision, as a writer to the store could leave it."""
    record = deferred().model_copy(update={"status": Status.CANCELLED})
    with pytest.raises(IllegalTransition):
        retract(record, "i1", person("ada"), T0 + 1)
    with pytest.raises(IllegalTransition, match="The run was cancelled"):
        decide(record, word(record, by="ben"), T0 + 1)


def test_undo_of_several_rules_is_the_longest() -> None:
    merged = strictest_terms((RuleTerms(undo="5s"), RuleTerms(undo="10s"), RuleTerms()))
    assert merged.undo == "10s"
    assert freeze_terms(merged, rule_id=None, rule_version="", now_ms=T0).undo_s == 10
