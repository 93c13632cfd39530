"""An invitation: whom it lets decide, until when and how, and that nothing but the right link and code does."""

from collections.abc import Callable
from typing import Any

import pytest

from sayso.core.records.decisions import ActorKind, DecisionAction, Delegate
from sayso.core.records.items import Answer, Item, ItemKind
from sayso.core.records.permissions import Envelope
from sayso.core.records.previews import Preview, PreviewRequest
from sayso.core.records.proofs import Ending, Invitation
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.transitions import outsiders
from sayso.core.transitions.deadlines import needs_sight
from sayso.core.transitions.deciding import ask_again, cancel, decide, void_decisions
from sayso.core.transitions.deliveries import needs_attempt
from sayso.core.transitions.inquiring import store_preview
from sayso.core.transitions.outsiders import (
    CODE_MS,
    COOLING_MS,
    MOST_CODES,
    MOST_INVITED,
    MOST_OPEN,
    MOST_TRIES,
    PROOF_MS,
    InvitationState,
    find_state,
    is_proven,
    revoke_invitation,
)
from sayso.errors import (
    AlreadyDecided,
    Conflict,
    IllegalTransition,
    InvalidInput,
    NotAllowed,
    NotFound,
    SelfApproval,
    StaleDigest,
    TooManyRequests,
)
from tests.sayso.samples import T0, ask, pending, person, types_of, word

JANE = "jane@partner.example"
RULE = (JANE, "*@customer.example")
HOUR = 3_600_000
TOKEN, CODE, PROOF = "t" * 64, "c" * 64, "p" * 64


def asked(**terms: Any) -> SuspensionRecord:
    return pending(ask(**{"outsiders": RULE, "timeout_s": 86_400, **terms}))


def invitation(record: SuspensionRecord, address: str = JANE, **fields: Any) -> Invitation:
    known = len(record.items[0].invitations)
    given = {
        "id": f"inv_{known}",
        "address": address,
        "by": "",
        "at_ms": 0,
        "until_ms": T0 + 2 * HOUR,
        "digest": record.items[0].digest,
        "channel": "mail",
        "nonce": "n",
        "token_hash": TOKEN if known == 0 else f"{known}" * 64,
    }
    return Invitation(**{**given, **fields})


def invite(record: SuspensionRecord, address: str = JANE, by: str = "ada", now_ms: int = T0, **fields: Any) -> Change:
    return outsiders.invite(record, "i1", invitation(record, address, **fields), person(by), now_ms)


def invited(**terms: Any) -> SuspensionRecord:
    return invite(asked(**terms)).record


def send(record: SuspensionRecord, now_ms: int = T0 + 1, token: str = TOKEN) -> SuspensionRecord:
    return outsiders.send_code(record, "i1", token, CODE, now_ms).record


def enter(record: SuspensionRecord, code: str = CODE, now_ms: int = T0 + 2, token: str = TOKEN) -> Change:
    return outsiders.enter_code(record, "i1", token, code, PROOF, now_ms)


def proven(**terms: Any) -> SuspensionRecord:
    return enter(send(invited(**terms))).record


def act(record: SuspensionRecord, action: str = "approve", **fields: Any) -> Change:
    proof, token, now_ms = fields.pop("proof", PROOF), fields.pop("token", TOKEN), fields.pop("now_ms", T0 + 3)
    made = word(record, action, "somebody", **{"id": "dec_1", **fields})
    return outsiders.decide_outside(record, made, token, proof, now_ms)


def first(record: SuspensionRecord) -> Invitation:
    return record.items[0].invitations[0]


def test_invitation_is_saved_with_its_event_and_its_mail() -> None:
    change = invite(asked(), note="Please check.")
    (event,), item = change.events, change.record.items[0]
    assert (event.type, event.data["address"], event.data["note"]) == ("outsider_invited", JANE, "Please check.")
    assert (event.data["by"], event.data["until_ms"]) == (person("ada").model_dump(mode="json"), T0 + 2 * HOUR)
    assert (first(change.record).by, first(change.record).at_ms) == ("ada", T0)
    assert [(card.person, card.invitation) for card in item.deliveries] == [(f"outsider:{JANE}", "inv_0")]
    assert item.digest == asked().items[0].digest
    assert invite(change.record, id="inv_0").record is change.record


def test_invitation_ends_with_the_deadline_and_after_a_week() -> None:
    assert first(invite(asked(timeout_s=3600)).record).until_ms == T0 + HOUR
    long = invite(asked(timeout_s=20 * 86_400), until_ms=T0 + 20 * 24 * HOUR).record
    assert first(long).until_ms == T0 + 7 * 24 * HOUR
    assert first(invite(asked(), until_ms=T0 + 60_000).record).until_ms == T0 + 60_000
    with pytest.raises(InvalidInput, match="needs a minute"):
        invite(asked(), until_ms=T0 + 59_999)


@pytest.mark.parametrize("address", ["ben@partner.example", "jane@x.customer.example", "*@customer.example", "a b"])
def test_address_that_the_rule_does_not_allow_is_refused(address: str) -> None:
    with pytest.raises(NotAllowed, match="does not let"):
        invite(asked(), address)
    assert invite(asked(), "any@customer.example").events


def plan(item: Item) -> dict[str, object]:
    return {"mandate": Envelope(tools=(), count=1, for_s=60)}


@pytest.mark.parametrize(
    "change",
    [
        lambda item: {"terms": item.terms.model_copy(update={"outsiders": ()})},
        lambda item: {"terms": item.terms.model_copy(update={"step_up": "code"})},
        lambda item: {"terms": item.terms.model_copy(update={"match_number": True})},
        lambda item: {"kind": ItemKind.INPUT},
        lambda item: {"allowed": (Answer.DENY,)},
        plan,
    ],
)
def test_nobody_outside_is_asked_where_a_code_proves_too_little(change: Callable[[Item], dict[str, object]]) -> None:
    record, ready = asked(), proven()
    for known, step in ((record, invite), (ready, act)):
        item = known.items[0].model_copy(update=change(known.items[0]))
        with pytest.raises(NotAllowed, match="Nobody outside"):
            step(known.with_item(item))


def test_only_who_may_decide_invites() -> None:
    record = asked(reviewers=("ada", "ben"))
    with pytest.raises(NotAllowed):
        invite(record, by="cleo")
    with pytest.raises(SelfApproval):
        invite(record, by="bot")
    reset = Delegate(id="ada", kind=ActorKind.HUMAN, made_by="bot", made_at_ms=T0 + 1)
    with pytest.raises(SelfApproval):
        outsiders.invite(record, "i1", invitation(record), reset, T0 + 2)
    approved = decide(asked(quorum={"approve": 2}), word(asked(quorum={"approve": 2})), T0).record
    assert invite(approved).events, "who has decided may still invite"


def test_requester_is_not_invited() -> None:
    record = asked()
    run = record.run.model_copy(update={"owner": "Jane@partner.example"})
    with pytest.raises(SelfApproval):
        invite(record.model_copy(update={"run": run}))
    maker = record.run.model_copy(update={"key_maker": JANE})
    strict = asked(no_maker_approval=True).model_copy(update={"run": maker})
    with pytest.raises(SelfApproval):
        invite(strict)


def test_closed_late_or_other_version_takes_no_invitation() -> None:
    with pytest.raises(AlreadyDecided):
        invite(decide(asked(), word(asked()), T0).record)
    with pytest.raises(StaleDigest):
        invite(asked(), digest="0" * 64)
    long = invitation(asked()).model_copy(update={"note": "x" * 501})
    with pytest.raises(InvalidInput, match="at most 500"):
        outsiders.invite(asked(), "i1", long, person("ada"), T0)
    assert invite(asked(), note="x" * 500).events


def test_invitations_of_an_item_are_limited() -> None:
    record = asked()
    for number in range(MOST_OPEN):
        record = invite(record, f"a{number}@customer.example").record
    with pytest.raises(Conflict, match="5 invitations to this item are open"):
        invite(record)
    with pytest.raises(Conflict, match="is invited already"):
        invite(record, "a0@customer.example")
    later = T0 + 3 * HOUR  # the others have expired
    assert invite(record, now_ms=later, until_ms=later + HOUR).events
    for _ in range(MOST_INVITED):
        if len(record.items[0].invitations) < MOST_INVITED:
            record = revoke_invitation(record, "i1", record.items[0].invitations[-1].id, person("ada"), T0).record
            record = invite(record).record
    record = revoke_invitation(record, "i1", record.items[0].invitations[-1].id, person("ada"), T0).record
    with pytest.raises(Conflict, match=f"{MOST_INVITED} invitations to this item were made"):
        invite(record)


def test_inviter_and_reviewers_revoke_once() -> None:
    record = invited(reviewers=("ada", "ben"))
    change = revoke_invitation(record, "i1", "inv_0", person("ben"), T0 + 1)
    ended = first(change.record)
    assert (ended.ended, ended.ended_at_ms, ended.ended_by, ended.nonce) == (Ending.REVOKED, T0 + 1, "ben", "")
    assert [(event.type, event.data["ending"]) for event in change.events] == [("invitation_closed", "revoked")]
    assert revoke_invitation(change.record, "i1", "inv_0", person("ada"), T0 + 2).record is change.record
    with pytest.raises(NotAllowed):
        revoke_invitation(record, "i1", "inv_0", person("cleo"), T0)
    with pytest.raises(NotFound):
        revoke_invitation(record, "i1", "inv_9", person("ada"), T0)
    moved = record.items[0].model_copy(
        update={"terms": record.items[0].terms.model_copy(update={"reviewers": ("ben",)})}
    )
    assert revoke_invitation(record.with_item(moved), "i1", "inv_0", person("ada"), T0).events
    agent = person("ada").model_copy(update={"kind": "agent"})
    with pytest.raises(NotAllowed, match="agent"):
        revoke_invitation(record, "i1", "inv_0", agent, T0)
    with pytest.raises(AlreadyDecided):
        revoke_invitation(decide(record, word(record), T0).record, "i1", "inv_0", person("ada"), T0)
    with pytest.raises(Conflict, match="has ended"):
        send(change.record)


def test_mail_of_an_ended_or_changed_invitation_is_not_sent() -> None:
    record = invited()
    item = record.items[0]
    (card,) = item.deliveries
    assert needs_attempt(record, item, card)
    sent = card.model_copy(update={"state": "sent"})
    assert not needs_attempt(record, item, sent), "nothing follows a link"
    again = card.model_copy(update={"state": "failed", "next_try_at_ms": T0 + 9})
    assert needs_attempt(record, item, again)
    assert not needs_attempt(record, item, again.model_copy(update={"next_try_at_ms": None}))
    revoked = revoke_invitation(record, "i1", "inv_0", person("ada"), T0).record
    assert not needs_attempt(revoked, revoked.items[0], card)
    other = item.model_copy(update={"digest": "0" * 64})
    assert not needs_attempt(record.with_item(other), other, card)
    gone = cancel(record, person("ada"), None, T0).record
    assert not needs_attempt(gone, gone.items[0], card)
    alone = {"fallback": {"action": "approve"}, "unattended_approval": True}
    seen = invited(**alone)
    mailed = seen.items[0].model_copy(update={"deliveries": (sent,)})
    assert needs_sight(seen.with_item(mailed), mailed), "a mail to somebody outside is no reviewer's notice"


def test_codes_are_mailed_one_at_a_time_and_five_times() -> None:
    record = send(invited())
    with pytest.raises(TooManyRequests, match="in 60 s"):
        send(record, T0 + 1)
    with pytest.raises(TooManyRequests, match="in 1 s"):
        send(record, T0 + COOLING_MS)
    for number in range(1, MOST_CODES):
        record = send(record, T0 + 1 + number * COOLING_MS)
    with pytest.raises(TooManyRequests, match="5 codes were mailed"):
        send(record, T0 + 1 + MOST_CODES * COOLING_MS)
    assert first(record).codes == MOST_CODES


def test_right_code_proves_once_and_cools_down() -> None:
    change = enter(send(invited()))
    assert types_of(change) == ["outsider_proven"]
    assert change.events[0].data["by"]["id"] == f"outsider:{JANE}"
    known = first(change.record)
    assert is_proven(known, PROOF, T0 + 2)
    assert is_proven(known, PROOF, T0 + 1 + PROOF_MS)
    assert not is_proven(known, PROOF, T0 + 2 + PROOF_MS)
    assert not is_proven(known, "q" * 64, T0 + 2)
    assert not is_proven(first(invited()), "", T0)
    again = enter(change.record)
    assert (again.record is change.record, again.events) == (True, ())
    with pytest.raises(TooManyRequests):
        send(change.record, T0 + 3)
    anew = send(change.record, T0 + 1 + COOLING_MS)
    assert not is_proven(first(anew), PROOF, T0 + COOLING_MS), "another code begins anew"


def test_expired_code_is_no_code() -> None:
    record = send(invited())
    assert enter(record, now_ms=T0 + CODE_MS).events
    late = enter(record, now_ms=T0 + 1 + CODE_MS)
    assert late.record is record
    early = enter(invited())
    assert (early.events, first(early.record).tries) == ((), 0)


def test_guessing_ends_the_invitation() -> None:
    record = send(invited())
    for tries in range(1, MOST_TRIES):
        change = enter(record, "x" * 64)
        record = change.record
        assert (change.events, first(record).tries, first(record).ended) == ((), tries, None)
    assert enter(record).events, "the right code still counts"
    change = enter(record, "x" * 64)
    assert [(event.type, event.data["ending"]) for event in change.events] == [("invitation_closed", "guessed")]
    assert (first(change.record).ended, first(change.record).code) == (Ending.GUESSED, None)
    with pytest.raises(Conflict):
        enter(change.record)
    again = send(record, T0 + 1 + COOLING_MS)
    assert first(enter(again, "x" * 64, T0 + COOLING_MS + 2).record).ended is Ending.GUESSED, "tries add up"


def test_other_link_is_unknown() -> None:
    record = proven()
    for step in (send, enter, act):
        with pytest.raises(NotFound):
            step(record, token="0" * 64)


def test_approval_outside_counts_as_one_and_spends_the_link() -> None:
    record = proven(quorum={"approve": 2})
    change = act(record)
    (event,) = change.events
    assert (event.type, event.data["by"]["id"], event.data["verdict"]) == (
        "decision_recorded",
        f"outsider:{JANE}",
        None,
    )
    assert event.data["invited"] == {"id": "inv_0", "address": JANE, "by": "ada", "proven": ["link", "mailed code"]}
    assert first(change.record).ended is Ending.DECIDED
    assert act(change.record).record is change.record, "the same decision again"
    with pytest.raises(Conflict):
        outsiders.decide_outside(
            change.record, word(change.record, "deny", id="dec_2", message="No."), TOKEN, PROOF, T0 + 4
        )
    with pytest.raises(Conflict, match="already decided"):
        invite(change.record)
    both = decide(change.record, word(change.record), T0 + 4).record
    outcome = both.items[0].outcome
    assert (outcome and outcome.verdict, outcome and outcome.by.id) == ("approved", "ada"), "the inviter's counts, too"


def test_denial_outside_needs_a_reason_and_denies() -> None:
    record = proven()
    for message in (None, " \n", "x" * 2001):
        made = word(record, "deny").model_copy(update={"message": message})
        with pytest.raises(InvalidInput, match="why you deny"):
            outsiders.decide_outside(record, made, TOKEN, PROOF, T0 + 3)
    outcome = act(record, "deny", message=" Not ours. ").record.items[0].outcome
    assert outcome is not None
    assert (outcome.verdict, outcome.message, outcome.by.id) == ("denied", "Not ours.", f"outsider:{JANE}")
    approved = act(record, message="dropped").record.items[0].decisions[0]
    assert approved.message is None


def test_only_plain_answers_are_taken_outside() -> None:
    record = proven()
    with pytest.raises(InvalidInput, match="as it is"):
        act(record, args={"order": "A-1", "amount": 1})
    with pytest.raises(InvalidInput, match="as it is"):
        act(record, "value", value=1)
    rule = record.items[0].terms.model_copy(update={"outsiders": ("*@other.example",)})
    with pytest.raises(NotAllowed, match="any longer"):
        act(record.with_item(record.items[0].model_copy(update={"terms": rule})))


def test_decision_needs_a_recent_proof() -> None:
    with pytest.raises(NotAllowed, match="too long ago"):
        act(proven(), proof="q" * 64)
    with pytest.raises(NotAllowed, match="too long ago"):
        act(proven(), now_ms=T0 + 2 + PROOF_MS)
    with pytest.raises(NotAllowed):
        act(send(invited()), proof="")


def test_each_address_decides_once() -> None:
    record = proven(quorum={"approve": 3})
    twin = first(record).model_copy(update={"id": "inv_1", "token_hash": "1" * 64})
    item = record.items[0].model_copy(update={"invitations": (first(record), twin)})
    decided = act(record.with_item(item)).record
    with pytest.raises(Conflict, match="already decided"):
        outsiders.decide_outside(decided, word(decided, id="dec_2"), "1" * 64, PROOF, T0 + 4)


def test_states_say_why_an_invitation_decides_nothing() -> None:
    record = invited()
    item = record.items[0]

    def state(record: SuspensionRecord, item: Item, now_ms: int = T0) -> InvitationState:
        return find_state(record, item, item.invitations[0], now_ms)

    assert state(record, item, T0 + 2 * HOUR - 1) is InvitationState.OPEN
    assert state(record, item, T0 + 2 * HOUR) is InvitationState.EXPIRED
    assert state(record, item.model_copy(update={"digest": "0" * 64})) is InvitationState.CHANGED
    done = decide(record, word(record), T0).record
    assert state(done, done.items[0]) is InvitationState.RESOLVED
    two = invite(pending(ask(outsiders=RULE, timeout_s=86_400), ask(1))).record
    two = decide(two, word(two), T0).record
    assert state(two, two.items[0]) is InvitationState.RESOLVED, "another item of the suspension still waits"
    soon = invited(undo="5s")
    soon = decide(soon, word(soon), T0).record
    assert (soon.items[0].outcome, state(soon, soon.items[0])) == (None, InvitationState.RESOLVED)
    gone = cancel(record, person("ada"), None, T0).record
    assert state(gone, gone.items[0]) is InvitationState.RESOLVED
    for changed in (gone, soon, done):
        with pytest.raises((Conflict, IllegalTransition)):
            send(changed)
    with pytest.raises(Conflict):
        act(proven(), now_ms=T0 + 2 * HOUR)


def test_new_version_and_new_preview_end_an_invitation() -> None:
    record = proven()
    edited = ask_again(record, word(record, args={"order": "A-1", "amount": 1}), ask(outsiders=RULE), T0 + 3).record
    assert find_state(edited, edited.items[0], first(edited), T0 + 3) is InvitationState.CHANGED
    with pytest.raises(Conflict):
        act(edited)
    wanted = record.items[0].model_copy(update={"preview_request": PreviewRequest(at_ms=T0)})
    shown = store_preview(record.with_item(wanted), "i1", Preview(content="pays", digest="p" * 64, at_ms=T0), T0).record
    with pytest.raises(Conflict):
        act(shown)


def test_decision_counts_in_the_current_stage_and_waits_to_be_undone() -> None:
    stages = [{"reviewers": ["ada"]}, {"reviewers": ["ben"]}]
    moved = act(proven(stages=stages)).record
    assert (moved.items[0].terms.stage, moved.items[0].outcome) == (1, None)
    assert moved.items[0].decisions[0].stage == 0
    later = act(proven(undo="5s")).record
    assert later.items[0].undoable is not None
    assert first(later).ended is Ending.DECIDED


def test_acting_user_still_confirms() -> None:
    record = act(proven(confirm_by="mara", reviewers=("ada",))).record
    assert (record.items[0].outcome, record.items[0].confirmation) == (None, None)


def test_decision_lapses_with_the_account_of_who_invited() -> None:
    record = act(proven(quorum={"approve": 2})).record
    voided = void_decisions(record, {"ada"}, T0 + 4)
    assert (voided.record.items[0].decisions, types_of(voided)) == ((), ["decision_voided"])
    assert void_decisions(record, {f"outsider:{JANE}"}, T0 + 4).record.items[0].decisions
    assert DecisionAction.APPROVE is record.items[0].decisions[0].action
