"""A delegate decides for an absent reviewer: once, on record, and never about a call of their own."""

import pytest

from sayso.core.records.decisions import ActorKind, Delegate, Limit, Limits, Represented
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.sentences.items import describe_ineligibility
from sayso.core.sentences.outcomes import describe_decision
from sayso.core.transitions.deadlines import see
from sayso.core.transitions.deciding import ask_again, decide, extend
from sayso.core.transitions.decision_checks import may_decide
from sayso.errors import AlreadyDecided, NotAllowed
from tests.sayso.samples import T0, ask, pending, person, word


def delegate(name: str, *represents: Represented, groups: tuple[str, ...] = ()) -> Delegate:
    return Delegate(id=name, kind=ActorKind.HUMAN, groups=groups, represents=represents)


def represented(name: str, *groups: str, through: tuple[str, ...] = ()) -> Represented:
    return Represented(person=name, groups=groups, through=through)


BEN = delegate("ben", represented("zoe"), represented("ada", "payments"))


def decide_as(record: SuspensionRecord, by: Delegate, action: str = "approve") -> SuspensionRecord:
    return decide(record, word(record, action, by=by.id).model_copy(update={"by": by}), T0).record


def test_decide_for_an_absent_reviewer_is_recorded() -> None:
    decided = decide_as(pending(ask(reviewers=("ada",))), BEN)
    assert decided.status is Status.DECIDED
    (decision,) = decided.items[0].decisions
    assert decision.by.model_dump(mode="json") == {
        "id": "ben",
        "kind": "human",
        "channel": "api",
        "for_person": "ada",
    }
    assert describe_decision(decided.items[0], decision) == "ben approved for ada"


def test_decide_for_an_absent_member_of_a_group() -> None:
    (decision,) = decide_as(pending(ask(reviewers=("group:payments",))), BEN).items[0].decisions
    assert (decision.by.for_person, decision.by.groups) == ("ada", ("payments",))


@pytest.mark.parametrize("reviewers", [("ben", "ada"), (), ("group:ops", "ada")])
def test_own_right_to_decide_comes_first(reviewers: tuple[str, ...]) -> None:
    by = delegate("ben", represented("ada"), groups=("ops",))
    (decision,) = decide_as(pending(ask(reviewers=reviewers)), by).items[0].decisions
    assert decision.by.for_person == ""
    assert type(decision.by).__name__ == "Actor"


@pytest.mark.parametrize(
    "by",
    [
        delegate("bot", represented("ada")),
        delegate("ben", represented("ada", through=("bot",))),
        delegate("ben", represented("zoe", "ops")),
    ],
)
def test_delegate_of_or_through_the_requester_is_refused(by: Delegate) -> None:
    record = pending(ask(reviewers=("ada",), no_self_approval=False))
    assert not may_decide(record, record.items[0], by)
    assert describe_ineligibility(record, record.items[0], by) == "Only ada can decide this."
    with pytest.raises(NotAllowed, match="Only ada"):
        decide_as(record, by)


@pytest.mark.parametrize("no_self_approval", [True, False])
def test_delegate_of_the_requester_needs_self_approval(no_self_approval: bool) -> None:
    record = pending(ask(reviewers=("bot",), no_self_approval=no_self_approval))
    assert may_decide(record, record.items[0], delegate("ben", represented("bot"))) is not no_self_approval


def test_absent_reviewer_counts_once_towards_a_quorum() -> None:
    record = pending(ask(reviewers=("ada", "cleo"), quorum={"approve": 2}))
    by_ada = decide(record, word(record), T0).record
    with pytest.raises(AlreadyDecided, match="ada has already decided"):
        decide_as(by_ada, BEN)
    assert describe_ineligibility(by_ada, by_ada.items[0], BEN).startswith("ada has decided for the same reviewer")
    by_ben = decide_as(record, BEN)
    with pytest.raises(AlreadyDecided, match="ben has already decided"):
        decide(by_ben, word(by_ben), T0)
    with pytest.raises(AlreadyDecided, match="ben has already decided"):
        decide_as(by_ben, delegate("dora", represented("ada")))
    assert decide(by_ben, word(by_ben, by="cleo"), T0).record.status is Status.DECIDED


def test_delegate_of_two_reviewers_decides_for_the_one_who_has_not() -> None:
    record = pending(ask(reviewers=("ada", "zoe", "cleo"), quorum={"approve": 2}))
    by_zoe = decide(record, word(record, by="zoe"), T0).record
    assert decide_as(by_zoe, BEN).items[0].decisions[-1].by.for_person == "ada"


def test_delegate_decides_once_for_two_reviewers() -> None:
    record = decide_as(pending(ask(reviewers=("ada", "zoe"), quorum={"approve": 2})), BEN)
    again = word(record, by="ben").model_copy(update={"by": BEN, "id": "dec_other"})
    with pytest.raises(AlreadyDecided, match="You have already decided"):
        decide(record, again, T0)


def test_delegate_extends_asks_again_and_sees() -> None:
    record = pending(ask(reviewers=("ada",), extend_by_s=600))
    extended = extend(record, "i1", T0 + 400_000, BEN, T0)
    assert extended.events[0].data["by"]["for_person"] == "ada"
    edit = word(record, by="ben").model_copy(update={"by": BEN})
    assert ask_again(record, edit, ask(), T0).events[0].data["by"]["for_person"] == "ada"
    unseen = pending(ask(reviewers=("ada",), unattended_approval=True, fallback={"action": "approve"}))
    seen = see(unseen, "i1", BEN, T0).record.items[0].seen_by
    assert seen is not None
    assert (seen.id, seen.for_person) == ("ben", "ada")
    assert see(unseen, "i1", person("ben"), T0).record is unseen


@pytest.mark.parametrize(
    ("decides", "may"),
    [
        (None, True),
        ((), False),
        ((Limit(tools=("refund*",)),), True),
        ((Limit(tools=("delete*",)),), False),
        ((Limit(tools=("delete*",)), Limit(agents=("*",))), True),
    ],
)
def test_roles_limit_what_a_reviewer_decides(decides: Limits, may: bool) -> None:
    by = Delegate(id="ben", kind=ActorKind.HUMAN, decides=decides)
    record = pending(ask())
    assert may_decide(record, record.items[0], by) is may
    if may:
        assert decide_as(record, by).status is Status.DECIDED
        return
    with pytest.raises(NotAllowed, match="Your roles do not let you decide this item"):
        decide_as(record, by)


def test_reviewer_whom_the_rule_does_not_name_is_told_who_decides() -> None:
    by = Delegate(id="ben", kind=ActorKind.HUMAN, decides=(Limit(tools=("*",)),))
    with pytest.raises(NotAllowed, match="Only ada can decide this item"):
        decide_as(pending(ask(reviewers=("ada",))), by)
