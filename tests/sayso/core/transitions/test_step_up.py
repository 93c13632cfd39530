"""Approvals that a passkey signs, or that take a code: what the commit refuses, even if either was verified before."""

import json
from typing import Any

import pytest

from sayso.core.records.decisions import Decision, Verdict
from sayso.core.records.envelopes import Offered
from sayso.core.records.items import ItemKind
from sayso.core.records.proofs import encode_base64url
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.transitions.deadlines import expire
from sayso.core.transitions.deciding import ask_again, decide
from sayso.errors import NotAllowed, StaleDigest, StepUpRequired
from sayso.testing.proofs import make_proof
from tests.sayso.samples import T0, ask, pending, word

EDITED = {"order": "A-1", "amount": 1}


def guarded(**fields: Any) -> SuspensionRecord:
    return pending(ask(step_up="passkey", **fields))


def signed(record: SuspensionRecord, action: str = "approve", **fields: Any) -> Decision:
    decision = word(record, action, **fields)
    proof = make_proof(decision.args_digest, action, decision.args, decision.value)
    return decision.model_copy(update={"proof": proof})


def is_refused(record: SuspensionRecord, decision: Decision) -> bool:
    with pytest.raises(StepUpRequired, match="/items/sus_1/i1"):
        decide(record, decision, T0 + 1)
    return True


@pytest.mark.parametrize("fields", [{}, {"args": EDITED}])
def test_approval_that_is_signed_counts(fields: dict[str, Any]) -> None:
    record = guarded()
    outcome = decide(record, signed(record, **fields), T0 + 1).record.items[0].outcome
    assert outcome is not None
    assert outcome.verdict is Verdict.APPROVED
    assert is_refused(record, word(record, **fields))


def test_value_is_signed() -> None:
    record = guarded(kind=ItemKind.INPUT)
    assert is_refused(record, word(record, "value", value=3))
    assert decide(record, signed(record, "value", value=3), T0 + 1).record.items[0].outcome is not None
    assert is_refused(record, signed(record, "value", value=3).model_copy(update={"value": 4}))


def test_signature_of_other_arguments_is_refused() -> None:
    record = guarded()
    for args in (None, {**EDITED, "amount": 2}, {}):
        assert is_refused(record, signed(record, args=EDITED).model_copy(update={"args": args}))
    assert is_refused(record, signed(record).model_copy(update={"args": EDITED}))


def test_content_of_other_arguments_is_refused() -> None:
    record = guarded()
    decision = signed(record, args=EDITED)
    assert decision.proof is not None
    other = signed(record).proof
    assert other is not None
    swapped = decision.proof.model_copy(update={"content": other.content})
    assert is_refused(record, decision.model_copy(update={"proof": swapped}))


def test_signature_of_another_item_or_action_or_nonce_is_refused() -> None:
    record = guarded()
    decision = signed(record)
    for other in (make_proof("0" * 64, "approve"), make_proof(decision.args_digest, "value")):
        assert is_refused(record, decision.model_copy(update={"proof": other}))
    assert decision.proof is not None
    reused = decision.proof.model_copy(update={"nonce": encode_base64url(b"another")})
    assert is_refused(record, decision.model_copy(update={"proof": reused}))


@pytest.mark.parametrize("flags", [0, 0b1, 0b100, 0b11000, 0b11111010])
def test_person_who_was_not_verified_is_refused(flags: int) -> None:
    record = guarded()
    decision = signed(record)
    assert decision.proof is not None
    data = encode_base64url(bytes(32) + bytes([flags]) + bytes(4))
    assert is_refused(
        record, decision.model_copy(update={"proof": decision.proof.model_copy(update={"authenticator_data": data})})
    )


@pytest.mark.parametrize("data", [b"", bytes(32), bytes(32) + b"\x05" + bytes(3)])
def test_short_authenticator_data_is_refused(data: bytes) -> None:
    record = guarded()
    decision = signed(record)
    assert decision.proof is not None
    short = decision.proof.model_copy(update={"authenticator_data": encode_base64url(data)})
    assert is_refused(record, decision.model_copy(update={"proof": short}))


@pytest.mark.parametrize("client_data", [b"", b"{", b"[]", b"{}", json.dumps({"challenge": "x"}).encode()])
def test_client_data_without_the_challenge_is_refused(client_data: bytes) -> None:
    record = guarded()
    decision = signed(record)
    assert decision.proof is not None
    other = decision.proof.model_copy(update={"client_data": encode_base64url(client_data)})
    assert is_refused(record, decision.model_copy(update={"proof": other}))


def test_renewal_of_an_item_is_signed() -> None:
    record = guarded()
    with pytest.raises(StepUpRequired):
        ask_again(record, word(record), ask(), T0 + 1)
    assert ask_again(record, signed(record), ask(), T0 + 1).record.items[0].open


def test_every_vote_of_a_quorum_is_signed() -> None:
    record = guarded(quorum={"approve": 2})
    record = decide(record, signed(record), T0 + 1).record
    assert is_refused(record, word(record, by="ben"))
    assert decide(record, signed(record, by="ben"), T0 + 2).record.items[0].outcome is not None


def test_denial_needs_no_signature() -> None:
    record = guarded()
    assert decide(record, word(record, "deny"), T0 + 1).record.items[0].outcome is not None


def test_nothing_is_granted_or_offered() -> None:
    record = guarded()
    granted = signed(record).model_copy(update={"grant_id": "gra_1"})
    offered = word(record, "deny").model_copy(
        update={"offer": Offered(grant_id="", until_ms=T0, constraints=(), text="up to 200")}
    )
    for decision in (granted, offered):
        with pytest.raises(NotAllowed, match="grants and offers nothing"):
            decide(record, decision, T0 + 1)


def test_changed_item_is_reported_before_the_signature() -> None:
    record = guarded()
    with pytest.raises(StaleDigest):
        decide(record, word(record, args_digest="0" * 64), T0 + 1)


def test_fallback_decides_without_a_signature() -> None:
    record = guarded(kind=ItemKind.INPUT, fallback={"action": "value", "value": 3})
    outcome = expire(record, T0 + 300_000).record.items[0].outcome
    assert outcome is not None
    assert outcome.verdict is Verdict.ANSWERED


def test_event_of_the_decision_has_the_signature() -> None:
    record = guarded()
    decision = signed(record)
    assert decision.proof is not None
    (recorded, *_) = decide(record, decision, T0 + 1).events
    assert recorded.data["proof"] == decision.proof.model_dump(mode="json")
    plain = pending()
    assert "proof" not in decide(plain, word(plain), T0 + 1).events[0].data


def test_signature_where_none_is_needed_is_ignored() -> None:
    record = pending()
    assert decide(record, signed(record), T0 + 1).record.items[0].outcome is not None


def with_code(record: SuspensionRecord, action: str = "approve", **fields: Any) -> Decision:
    return word(record, action, **fields).model_copy(update={"code_used": True})


@pytest.mark.parametrize("fields", [{}, {"args": EDITED}])
def test_approval_with_a_code_counts(fields: dict[str, Any]) -> None:
    record = pending(ask(step_up="code"))
    outcome = decide(record, with_code(record, **fields), T0 + 1).record.items[0].outcome
    assert outcome is not None
    assert outcome.verdict is Verdict.APPROVED
    assert is_refused(record, word(record, **fields))


def test_value_needs_a_code() -> None:
    record = pending(ask(step_up="code", kind=ItemKind.INPUT))
    assert is_refused(record, word(record, "value", value=3))
    assert decide(record, with_code(record, "value", value=3), T0 + 1).record.items[0].outcome is not None


def test_passkey_serves_as_a_code() -> None:
    record = pending(ask(step_up="code"))
    assert decide(record, signed(record), T0 + 1).record.items[0].outcome is not None
    assert is_refused(record, signed(record, args=EDITED).model_copy(update={"args": None}))


def test_code_does_not_serve_as_a_passkey() -> None:
    record = guarded()
    assert is_refused(record, with_code(record))


def test_renewal_of_an_item_needs_a_code() -> None:
    record = pending(ask(step_up="code"))
    with pytest.raises(StepUpRequired):
        ask_again(record, word(record), ask(), T0 + 1)
    assert ask_again(record, with_code(record), ask(), T0 + 1).record.items[0].open


def test_denial_needs_no_code_and_nothing_is_granted() -> None:
    record = pending(ask(step_up="code"))
    assert decide(record, word(record, "deny"), T0 + 1).record.items[0].outcome is not None
    with pytest.raises(NotAllowed, match="needs a code, so it grants and offers nothing"):
        decide(record, with_code(record).model_copy(update={"grant_id": "gra_1"}), T0 + 1)
    assert decide(record, with_code(record), T0 + 1).record.items[0].outcome is not None


def test_event_of_the_decision_says_that_a_code_was_used() -> None:
    record = pending(ask(step_up="code"))
    (recorded, *_) = decide(record, with_code(record), T0 + 1).events
    assert recorded.data["code_used"] is True
    plain = pending()
    assert "code_used" not in decide(plain, word(plain), T0 + 1).events[0].data


@pytest.mark.parametrize(
    ("step_up", "said"),
    [("code", "a code of the reviewer's authenticator app, or their passkey. Add"), ("passkey", "passkey. Approve it")],
)
def test_refusal_says_what_is_needed(step_up: str, said: str) -> None:
    record = pending(ask(step_up=step_up))
    with pytest.raises(StepUpRequired, match=said):
        decide(record, word(record), T0 + 1)
