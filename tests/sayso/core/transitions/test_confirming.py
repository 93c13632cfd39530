"""The acting user confirms a call apart from its approval: it runs only with both, for the same arguments."""

from typing import Any

import pytest

from sayso.core.records.decisions import Actor, ActorKind, ConfirmRequest, Delegate, Permit, Verdict
from sayso.core.records.freezes import Revocations
from sayso.core.records.items import Answer, ItemKind, list_notified
from sayso.core.records.suspensions import Change, Status, SuspensionRecord, Who
from sayso.core.records.terms import Fallback, FallbackAction, Quorum, RuleTerms
from sayso.core.transitions.deadlines import expire
from sayso.core.transitions.deciding import ask_again, decide, extend, retract, suspend, void_decisions
from sayso.core.transitions.deliveries import card_version, move_cards
from sayso.core.transitions.inquiring import confirm, digest_version, may_confirm
from sayso.core.transitions.permits import redeem_permit
from sayso.core.transitions.quorum import find_args, needs_confirmation, take_effect
from sayso.errors import (
    AlreadyDecided,
    Conflict,
    DeadlinePassed,
    IllegalTransition,
    InvalidInput,
    NotAllowed,
    SelfApproval,
    StaleDigest,
)
from sayso.runner.revalidation import find_loss
from tests.sayso.rule_builders import policy
from tests.sayso.samples import T0, ask, draft, person, types_of, word

PERMIT = Permit(redeemed_at_ms=T0, attempt=1, holder="w1")
EDIT = {"order": "A-0", "amount": 100}


def asked(*, kind: ItemKind = ItemKind.APPROVAL, **terms: Any) -> SuspensionRecord:
    """Return a suspension whose call mara must confirm; bot asks for her."""
    new = draft()
    new = new.model_copy(update={"run": new.run.model_copy(update={"who": Who(person="Mara", issuer="i")})})
    return suspend(new, (ask(kind=kind, **{"confirm_by": "mara", "quorum": Quorum(), **terms}),), T0).record


def say(record: SuspensionRecord, action: str = "confirm", by: Actor | None = None, **fields: Any) -> Change:
    item = record.items[0]
    digest = fields.pop("digest", None) or digest_version(record, item, find_args(item) or item.tool.args)
    sent = {"action": action, "digest": digest, "message": fields.pop("message", None)}
    request = ConfirmRequest.model_validate(sent)
    name = fields.pop("id", "con_1")
    return confirm(record, "i1", request, name, by or person("mara"), fields.pop("now_ms", T0), **fields)


def approve(record: SuspensionRecord, by: str = "ada", **fields: Any) -> SuspensionRecord:
    return decide(record, word(record, by=by, id=f"dec_{by}_{len(record.items[0].voided)}", **fields), T0).record


def verdict(record: SuspensionRecord) -> Verdict | None:
    outcome = record.items[0].outcome
    return outcome.verdict if outcome is not None else None


def test_call_runs_with_both_in_either_order() -> None:
    approved = approve(asked())
    assert (approved.status, verdict(approved), needs_confirmation(approved.items[0])) == (Status.PENDING, None, True)
    change = say(approved)
    assert (verdict(change.record), change.record.status, change.ready) == (Verdict.APPROVED, Status.DECIDED, True)
    assert types_of(change) == ["confirmation_recorded", "decided"]
    outcome = change.record.items[0].outcome
    assert outcome is not None
    assert outcome.by.id == "ada"
    confirmed = say(asked()).record
    assert (verdict(confirmed), needs_confirmation(confirmed.items[0])) == (None, False)
    assert verdict(approve(confirmed)) is Verdict.APPROVED


def test_confirmation_is_no_vote() -> None:
    record = say(asked(quorum=Quorum(approve=2))).record
    record = approve(record)
    assert verdict(record) is None
    assert record.items[0].decisions[0].by.id == "ada"
    assert verdict(approve(record, "ben")) is Verdict.APPROVED


def test_acting_user_still_approves_nothing_of_their_own() -> None:
    record = say(asked()).record
    with pytest.raises(SelfApproval):
        decide(record, word(record, by="mara"), T0)


def test_acting_user_who_may_vote_does_both() -> None:
    record = approve(asked(no_self_approval=False), "mara")
    assert verdict(record) is None
    assert verdict(say(record).record) is Verdict.APPROVED


def test_decline_denies_with_the_reason() -> None:
    change = say(approve(asked()), "decline", message="Not mine.")
    outcome = change.record.items[0].outcome
    assert outcome is not None
    assert (outcome.verdict, outcome.by.id, outcome.message) == (Verdict.DENIED, "mara", "Not mine.")
    assert (change.events[0].data["confirmed"], change.events[0].data["verdict"]) == (False, "denied")
    assert verdict(say(say(asked()).record, "decline", id="con_2").record) is Verdict.DENIED


def test_alone_it_needs_no_approval_and_takes_none() -> None:
    record = asked(quorum=Quorum(approve=0))
    item = record.items[0]
    assert (item.allowed, list_notified(item.terms)) == ((Answer.DENY,), ("mara",))
    with pytest.raises(InvalidInput):
        decide(record, word(record), T0)
    assert verdict(decide(record, word(record, "deny"), T0).record) is Verdict.DENIED
    change = say(record)
    outcome = change.record.items[0].outcome
    assert outcome is not None
    assert (outcome.verdict, outcome.by.id, change.ready) == (Verdict.APPROVED, "mara", True)
    assert redeem_permit(change.record, change.record.items[0], PERMIT, T0).permit == PERMIT


def test_terms_that_name_only_the_acting_user_need_no_approval() -> None:
    assert RuleTerms(confirm_by="who.person").quorum.approve == 0
    assert RuleTerms(confirm_by="who.person", reviewers=("ada",)).quorum.approve == 1
    with pytest.raises(ValueError, match="a quorum of 0 needs"):
        RuleTerms(quorum=Quorum(approve=0))


@pytest.mark.parametrize(
    "fallback",
    [Fallback(action=FallbackAction.APPROVE), Fallback(action=FallbackAction.VALUE, value=3)],
)
def test_fallback_runs_nothing_unconfirmed(fallback: Fallback) -> None:
    with pytest.raises(ValueError, match="runs the call unconfirmed"):
        RuleTerms(confirm_by="who.person", unattended_approval=True, fallback=fallback)
    record = approve(asked(), "ada") if fallback.action is FallbackAction.APPROVE else asked(kind=ItemKind.INPUT)
    item = record.items[0]
    forced = item.model_copy(update={"terms": item.terms.model_copy(update={"fallback": fallback})})
    seen = forced.model_copy(update={"seen_by": person("ada"), "seen_at_ms": T0})
    late = expire(record.with_item(seen), item.terms.deadline_at_ms).record
    outcome = late.items[0].outcome
    assert outcome is not None
    assert outcome.verdict is Verdict.DENIED
    assert "mara has not confirmed it before" in str(outcome.message)


def test_deadline_of_a_confirmed_call_says_that_nobody_decided() -> None:
    record = say(asked()).record
    outcome = expire(record, record.items[0].terms.deadline_at_ms).record.items[0].outcome
    assert outcome is not None
    assert (outcome.verdict, str(outcome.message).partition(" before ")[0]) == (Verdict.DENIED, "Nobody decided")


def test_edit_after_the_confirmation_needs_another() -> None:
    edited = approve(say(asked()).record, args=EDIT)
    item = edited.items[0]
    assert (verdict(edited), needs_confirmation(item), find_args(item)) == (None, True, EDIT)
    with pytest.raises(StaleDigest):
        say(edited, digest=item.digest, id="con_2")
    done = say(edited, id="con_2").record
    outcome = done.items[0].outcome
    assert outcome is not None
    assert (outcome.verdict, outcome.args) == (Verdict.APPROVED, EDIT)


def test_version_that_meets_the_quorum_is_the_one_to_confirm() -> None:
    record = approve(asked(quorum=Quorum(approve=2)))
    record = approve(approve(record, "ben"), "cleo", args=EDIT)
    assert find_args(record.items[0]) == record.items[0].tool.args
    assert verdict(say(record).record) is Verdict.APPROVED


def test_value_is_confirmed_once_a_reviewer_gave_it() -> None:
    record = asked(kind=ItemKind.INPUT)
    with pytest.raises(Conflict, match="value first"):
        say(record)
    given = decide(record, word(record, "value", value=40), T0).record
    assert (verdict(given), find_args(given.items[0])) == (None, {"order": "A-0", "amount": 40})
    assert verdict(say(given).record) is Verdict.ANSWERED


def test_value_that_nobody_needs_to_approve_is_still_given_first() -> None:
    record = asked(kind=ItemKind.INPUT, quorum=Quorum(approve=0))
    given = decide(record, word(record, "value", value=40), T0).record
    assert verdict(say(given).record) is Verdict.ANSWERED


def test_denial_that_does_not_decide_is_no_version() -> None:
    record = approve(asked(quorum=Quorum(approve=2, deny=2)), args=EDIT)
    denied = decide(record, word(record, "deny", "ben"), T0).record
    assert find_args(denied.items[0]) == EDIT
    assert verdict(say(denied).record) is None


def test_another_rule_after_an_edit_drops_the_confirmation() -> None:
    record = say(asked()).record
    again = ask_again(record, word(record, args=EDIT), ask(confirm_by="mara", quorum=Quorum()), T0).record
    assert (again.items[0].confirmation, needs_confirmation(again.items[0])) == (None, True)


def test_nobody_else_confirms() -> None:
    record = asked()
    for by in (person("ada"), person("bot"), Actor(id="mara", kind=ActorKind.AGENT)):
        with pytest.raises(NotAllowed):
            say(record, by=by)
        assert not may_confirm(record, record.items[0], by)
    with pytest.raises(NotAllowed, match="needs no confirmation"):
        say(approve_free())
    assert may_confirm(record, record.items[0], person("mara"))


def approve_free() -> SuspensionRecord:
    return suspend(draft(), (ask(),), T0).record


def test_who_reset_the_password_since_confirms_nothing() -> None:
    record = asked()
    reset = Delegate(id="mara", kind=ActorKind.HUMAN, made_by="root", made_at_ms=T0)
    with pytest.raises(NotAllowed, match="Change your password, sign in again, and confirm then"):
        say(record, by=reset)
    for update in ({"made_at_ms": T0 - 1}, {"made_by": "mara"}, {"made_by": ""}):
        assert say(record, by=reset.model_copy(update=update)).record.items[0].confirmation is not None


def test_repeated_confirmation_changes_nothing() -> None:
    record = say(asked()).record
    assert say(record) == Change(record)
    assert say(record, id="con_2") == Change(record)
    assert say(record, "decline") == Change(record)  # the id of the first: its answer was lost on the way


def test_reason_is_for_a_decline() -> None:
    with pytest.raises(InvalidInput, match="Omit message, or decline"):
        say(asked(), message="Fine.")
    assert say(asked(), "decline", message="Fine.").record.items[0].confirmation is not None


def test_closed_late_and_deferred_items_take_no_confirmation() -> None:
    record = asked()
    with pytest.raises(DeadlinePassed):
        say(record, now_ms=record.items[0].terms.deadline_at_ms)
    assert say(record, now_ms=record.items[0].terms.deadline_at_ms, lost_ms=1).record is not record
    with pytest.raises(AlreadyDecided):
        say(say(approve(record)).record, id="con_2")
    deferred = approve(say(asked(undo="5s")).record)
    with pytest.raises(Conflict):
        say(deferred, "decline", id="con_2")


def test_undo_counts_from_the_approval_that_closes_the_item() -> None:
    waiting = approve(asked(undo="5s"))
    assert (waiting.items[0].undoable, len(waiting.items[0].decisions)) == (None, 1)
    assert verdict(say(waiting).record) is Verdict.APPROVED
    deferred = approve(say(asked(undo="5s")).record)
    assert deferred.items[0].undoable is not None
    assert verdict(take_effect(deferred, T0 + 5_000).record) is Verdict.APPROVED


def test_retracted_approval_is_missing_again() -> None:
    record = retract(approve(asked()), "i1", person("ada"), T0).record
    assert verdict(say(record).record) is None


def test_deactivated_acting_user_has_confirmed_nothing() -> None:
    record = say(asked()).record
    change = void_decisions(record, ("mara",), T0)
    assert change.record.items[0].confirmation is None
    assert [(event.type, event.data["action"]) for event in change.events] == [("decision_voided", "confirm")]
    assert verdict(approve(change.record)) is None
    assert void_decisions(record, ("ada",), T0 + 1) == Change(record)
    closed = approve(record)
    assert void_decisions(closed.model_copy(update={"status": Status.PENDING}), ("mara",), T0).events == ()


def test_deactivated_acting_user_stops_an_undoable_decision() -> None:
    deferred = approve(say(asked(undo="5s")).record)
    voided = void_decisions(deferred, ("mara",), T0).record
    late = take_effect(voided, T0 + 5_000).record
    assert (verdict(late), needs_confirmation(late.items[0])) == (None, True)


def test_later_deadline_keeps_the_confirmation() -> None:
    record = say(asked(extend_by_s=600)).record
    extended = extend(record, "i1", T0 + 500_000, person("ada"), T0).record
    assert verdict(approve(extended)) is Verdict.APPROVED


def test_permit_of_an_unconfirmed_call_does_not_exist() -> None:
    done = say(approve(asked())).record
    forged = done.items[0].model_copy(update={"confirmation": None})
    with pytest.raises(IllegalTransition, match="has not confirmed"):
        redeem_permit(done, forged, PERMIT, T0)
    given = done.items[0].confirmation
    assert given is not None
    for update in ({"confirmed": False}, {"args_digest": "0" * 64}):
        other = done.items[0].model_copy(update={"confirmation": given.model_copy(update=update)})
        with pytest.raises(IllegalTransition, match="has not confirmed"):
            redeem_permit(done, other, PERMIT, T0)
    assert redeem_permit(done, done.items[0], PERMIT, T0).permit == PERMIT


def test_deactivation_before_the_start_asks_again() -> None:
    item = say(approve(asked())).record.items[0].model_copy(update={"permit": None})
    rules = policy()
    item = item.model_copy(update={"terms": item.terms.model_copy(update={"rule_id": None})})
    assert find_loss(item, rules, Revocations()) is None
    lost = find_loss(item, rules, Revocations(inactive=frozenset(("mara",))))
    assert lost == "mara, who confirmed it, is no longer active."


def test_acting_user_is_notified_beside_the_reviewers_and_their_card_stays() -> None:
    record = asked(channels=("mail",))
    item = record.items[0]
    assert [card.person for card in item.deliveries] == ["", "mara"]
    assert [card.person for card in asked(channels=("mail",), reviewers=("ada",)).items[0].deliveries] == [
        "ada",
        "mara",
    ]
    assert move_cards(record, {"mara": ("ben",)}, T0) == Change(record)
    assert card_version(record, item) != card_version(record, say(record).record.items[0])


def test_requested_value_is_given_before_it_is_confirmed() -> None:
    record = asked(kind=ItemKind.INPUT)
    with pytest.raises(Conflict, match="Confirm the call once it has one"):
        say(record)
    given = decide(record, word(record, "value", value=3, by="ada"), T0).record
    assert verdict(say(given).record) is Verdict.ANSWERED
