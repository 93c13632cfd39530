"""A decision is refused unless its author may make it, on what the item is now, with an answer that it allows."""

from typing import Any

import pytest

from sayso.core.records.decisions import Actor, ActorKind, Delegate
from sayso.core.records.items import Drill, ItemKind
from sayso.core.records.suspensions import Status, Who
from sayso.core.records.terms import Quorum
from sayso.core.transitions.deciding import ask_again, decide, extend
from sayso.core.transitions.decision_checks import check_canceller
from sayso.errors import (
    AlreadyDecided,
    DeadlinePassed,
    InvalidInput,
    NotAllowed,
    SelfApproval,
    StaleDigest,
)
from tests.sayso.samples import T0, ask, pending, person, word

DEADLINE = T0 + 300_000
ASKED = {"order": "A-0", "amount": 250.5}


@pytest.mark.parametrize(("at_ms", "late"), [(DEADLINE - 1, False), (DEADLINE, True), (DEADLINE + 1, True)])
def test_a_decision_at_or_after_the_deadline_is_refused(at_ms: int, late: bool) -> None:
    record = pending()
    if late:
        with pytest.raises(DeadlinePassed, match="fallback 'deny' decides"):
            decide(record, word(record), at_ms)
    else:
        assert decide(record, word(record), at_ms).record.status is Status.DECIDED


def test_decide_with_stale_digest() -> None:
    record = pending()
    with pytest.raises(StaleDigest):
        decide(record, word(record, args_digest="0" * 64), T0)


def test_decide_by_the_owner() -> None:
    record = pending()
    with pytest.raises(SelfApproval):
        decide(record, word(record, by="bot"), T0)
    open_record = pending(ask(no_self_approval=False))
    assert decide(open_record, word(open_record, by="bot"), T0).record.status is Status.DECIDED


@pytest.mark.parametrize("kind", [kind for kind in ActorKind if kind is not ActorKind.HUMAN])
def test_decide_by_an_agent(kind: ActorKind) -> None:
    record = pending()
    with pytest.raises(NotAllowed, match="never decide"):
        decide(record, word(record, by="ada").model_copy(update={"by": Actor(id="x", kind=kind)}), T0)


def test_an_item_for_named_reviewers_is_for_them_alone() -> None:
    record = pending(ask(reviewers=("carla",)))
    with pytest.raises(NotAllowed, match="carla"):
        decide(record, word(record, by="ada"), T0)
    assert decide(record, word(record, by="carla"), T0).record.status is Status.DECIDED


def test_decide_as_a_member_of_a_named_group() -> None:
    record = pending(ask(reviewers=("carla", "group:payments", "group:ops"), quorum={"approve": 2}))
    with pytest.raises(NotAllowed, match="group:payments"):
        decide(record, word(record, by="ada"), T0)
    outsider = word(record).model_copy(update={"by": person("ada", "sales")})
    with pytest.raises(NotAllowed, match="group:payments"):
        decide(record, outsider, T0)
    member = word(record).model_copy(update={"by": person("ada", "ops", "payments", "sales")})
    change = decide(record, member, T0)
    assert change.record.items[0].decisions[0].by == person("ada", "ops", "payments")
    data = change.events[0].data["by"]
    assert data == {"id": "ada", "kind": "human", "channel": "api", "groups": ["ops", "payments"]}
    again = word(record, id="dec_again").model_copy(update={"by": person("ada", "payments")})
    with pytest.raises(AlreadyDecided, match="already decided on this item"):
        decide(change.record, again, T0)


def test_decide_keeps_no_groups_that_were_not_needed() -> None:
    for reviewers in ((), ("ada", "group:payments")):
        record = pending(ask(reviewers=reviewers))
        member = word(record).model_copy(update={"by": person("ada", "payments")})
        change = decide(record, member, T0)
        outcome = change.record.items[0].outcome
        assert outcome is not None
        assert outcome.by == change.record.items[0].decisions[0].by == person("ada")
        assert change.events[0].data["by"] == {"id": "ada", "kind": "human", "channel": "api"}


def test_decide_by_the_owner_in_a_named_group() -> None:
    record = pending(ask(reviewers=("group:bots",)))
    own = word(record).model_copy(update={"by": person("bot", "bots")})
    with pytest.raises(SelfApproval):
        decide(record, own, T0)


def test_extend_and_ask_again_keep_the_needed_groups() -> None:
    record = pending(ask(reviewers=("group:payments",), extend_by_s=600))
    extended = extend(record, "i1", DEADLINE + 1000, person("ada", "payments", "sales"), T0)
    assert extended.events[0].data["by"]["groups"] == ["payments"]
    edited = word(record).model_copy(update={"by": person("ada", "payments", "sales")})
    renewed = ask_again(record, edited, ask(), T0)
    assert renewed.events[0].data["by"]["groups"] == ["payments"]
    with pytest.raises(NotAllowed):
        extend(record, "i1", DEADLINE + 1000, person("ada", "sales"), T0)


@pytest.mark.parametrize(
    ("kind", "action", "fields"),
    [
        (ItemKind.APPROVAL, "value", {"value": 1}),
        (ItemKind.INPUT, "approve", {}),
        (ItemKind.INPUT, "approve", {"args": {}}),
        (ItemKind.APPROVAL, "deny", {"args": {}}),
    ],
)
def test_decide_with_disallowed_answer(kind: ItemKind, action: str, fields: dict[str, Any]) -> None:
    record = pending(ask(kind=kind))
    with pytest.raises(InvalidInput, match="Choose "):
        decide(record, word(record, action, **fields), T0)


def test_a_value_must_be_among_the_choices_exactly() -> None:
    record = pending(ask(kind=ItemKind.INPUT).model_copy(update={"choices": (1, "two")}))
    with pytest.raises(InvalidInput, match="not one of the item"):
        decide(record, word(record, "value", value=True), T0)
    assert decide(record, word(record, "value", value="two"), T0).record.status is Status.DECIDED


def lent(made_by: str, made_at_ms: int = T0) -> Delegate:
    """Return ada with a credential that somebody else made."""
    return Delegate(id="ada", kind=ActorKind.HUMAN, made_by=made_by, made_at_ms=made_at_ms)


def test_decide_with_a_credential_that_the_requester_made() -> None:
    record = pending()
    with pytest.raises(SelfApproval, match="bot made or reset what you signed in with"):
        decide(record, word(record).model_copy(update={"by": lent("bot")}), T0)


@pytest.mark.parametrize(("later_ms", "counts_as"), [(0, "root"), (1, "root"), (-1, "")])
def test_credential_made_once_the_item_was_asked_counts_as_its_maker(later_ms: int, counts_as: str) -> None:
    record = pending(ask(quorum=Quorum(approve=2)))
    decision = word(record).model_copy(update={"by": lent("root", record.created_at_ms + later_ms)})
    (counted,) = decide(record, decision, T0).record.items[0].decisions
    assert counted.by.counts_as == counts_as


def test_requester_and_maker_of_the_key_are_told_apart() -> None:
    record = pending(ask(no_maker_approval=True))
    record = record.model_copy(update={"run": record.run.model_copy(update={"key_maker": "mia"})})
    with pytest.raises(SelfApproval) as requester:
        decide(record, word(record, by="bot"), T0)
    assert "made the key" not in requester.value.message
    with pytest.raises(SelfApproval, match="You made the key"):
        decide(record, word(record, by="mia"), T0)


def test_unknown_names_are_no_requesters() -> None:
    run = pending().run.model_copy(update={"who": Who()})
    assert run.requesters == ("bot",)


def test_cancel_by_agent_admin_requester_or_reviewer_of_what_is_open() -> None:
    record = pending(ask(reviewers=("carla",)), ask(1, reviewers=("ada",)))
    with pytest.raises(NotAllowed, match="you cannot cancel its run"):
        check_canceller(record, person("ada"), is_admin=False)
    check_canceller(record, Actor(id="x", kind=ActorKind.AGENT), is_admin=False)
    check_canceller(record, person("ada"), is_admin=True)
    check_canceller(record, person("bot"), is_admin=False)
    decided = decide(record, word(record, by="carla"), T0).record
    check_canceller(decided, person("ada"), is_admin=False)


def test_only_the_reviewer_of_a_drill_decides_it() -> None:
    drill = Drill(template="unknown-recipient", signs=("Nobody knows it.",), planted_by="root", reviewer="ada")
    record = pending(ask(reviewers=("carla",)).model_copy(update={"drill": drill}))
    with pytest.raises(NotAllowed, match="Only ada can decide this item"):
        decide(record, word(record, by="carla"), T0)
    assert decide(record, word(record), T0).record.status is Status.DECIDED
