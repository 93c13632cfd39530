"""A decision is refused unless its author may make it, on what the item is now, with an answer that it allows."""

from typing import Any

import pytest

from sayso.errors import (
    AlreadyDecided,
    DeadlinePassed,
    InvalidInput,
    NotAllowed,
    SelfApproval,
    StaleDigest,
)
from sayso.records.decisions import Actor, ActorKind
from sayso.records.items import ItemKind
from sayso.records.suspensions import Status
from sayso.transitions.deciding import ask_again, decide, extend
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
