"""A quorum of one from each of several groups: different people, the same arguments, and nothing less."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import ActorKind, Delegate, Represented, fill_places
from sayso.core.records.items import Item
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.records.terms import Quorum
from sayso.core.sentences.items import count_quorum, describe_deadlock, describe_ineligibility, describe_quorum
from sayso.core.transitions.deciding import decide
from tests.sayso.samples import T0, ask, pending, person, word

NAMES = ("group:finance", "group:legal", "group:ops", "ada")
BOTH = ("group:finance", "group:legal")


def asked(each_of: tuple[str, ...] = BOTH, reviewers: tuple[str, ...] = NAMES, **quorum: Any) -> SuspensionRecord:
    return pending(ask(reviewers=reviewers, quorum={"each_of": each_of, **quorum}))


def approve(record: SuspensionRecord, name: str, *groups: str, args: JsonObject | None = None) -> SuspensionRecord:
    decision = word(record, by=name, args=args).model_copy(update={"by": person(name, *groups)})
    return decide(record, decision, T0).record


def item_of(record: SuspensionRecord) -> Item:
    return record.items[0]


def test_one_of_each_group_decides() -> None:
    record = approve(asked(), "fay", "finance")
    assert record.status is Status.PENDING
    assert approve(record, "lea", "legal").status is Status.DECIDED


def test_more_of_one_group_never_decide() -> None:
    record = approve(approve(asked(), "fay", "finance"), "fin", "finance")
    assert record.status is Status.PENDING
    assert approve(record, "lea", "legal").status is Status.DECIDED


def test_person_of_both_groups_stands_for_one() -> None:
    record = approve(asked(), "bea", "finance", "legal")
    assert record.status is Status.PENDING
    assert approve(record, "fay", "finance").status is Status.DECIDED


def test_different_arguments_do_not_complete_each_other() -> None:
    record = approve(asked(), "fay", "finance")
    record = approve(record, "lea", "legal", args={"order": "A-0", "amount": 1})
    assert record.status is Status.PENDING
    assert approve(record, "lou", "legal").status is Status.DECIDED


def test_named_person_stands_for_their_group_too() -> None:
    record = approve(asked(), "ada", "legal")
    assert item_of(record).decisions[0].by.groups == ("legal",)
    assert approve(record, "fay", "finance").status is Status.DECIDED


def test_delegate_stands_for_the_absent_member() -> None:
    by = Delegate(id="ben", kind=ActorKind.HUMAN, represents=(Represented(person="fay", groups=("finance",)),))
    record = asked()
    record = decide(record, word(record, by="ben").model_copy(update={"by": by}), T0).record
    assert approve(record, "lea", "legal").status is Status.DECIDED


def test_one_denial_still_decides() -> None:
    record = approve(asked(), "fay", "finance")
    denial = word(record, "deny", by="fin").model_copy(update={"by": person("fin", "finance")})
    assert decide(record, denial, T0).record.status is Status.DECIDED


def test_quorum_of_one_needs_the_right_one() -> None:
    record = approve(asked(("group:legal",)), "fay", "finance")
    assert record.status is Status.PENDING
    assert approve(record, "lea", "legal").status is Status.DECIDED


PEOPLE = st.lists(st.frozensets(st.sampled_from(["finance", "legal", "ops"]), min_size=1), min_size=1, max_size=6)


@given(
    people=PEOPLE,
    each_of=st.lists(st.sampled_from(NAMES[:3]), min_size=1, max_size=3, unique=True),
    more=st.integers(0, 2),
)
def test_item_is_decided_exactly_when_different_people_fill_all_places(
    people: list[frozenset[str]], each_of: list[str], more: int
) -> None:
    needed = len(each_of) + more
    record = asked(tuple(each_of), approve=needed)
    for count, groups in enumerate(people, start=1):
        record = approve(record, f"p{count}", *sorted(groups))
        so_far = people[:count]
        filled = any(
            all(name.removeprefix("group:") in member for name, member in zip(each_of, chosen, strict=True))
            for chosen in permutations(so_far, len(each_of))
        )
        assert (record.status is Status.DECIDED) == (filled and count >= needed)
        if record.status is Status.DECIDED:
            return


@given(st.lists(st.frozensets(st.integers(0, 4).map(str)), max_size=5))
def test_places_are_filled_as_by_trying_every_order(places: list[frozenset[str]]) -> None:
    filled = fill_places(places)
    best = max(
        sum(person in place for place, person in zip(places, order, strict=False))
        for order in permutations([*"01234"], len(places))
    )
    assert len(filled) == best


@pytest.mark.parametrize(
    ("quorum", "fault"),
    [
        ({"approve": 1, "each_of": [*BOTH]}, "each_of needs 2 people"),
        ({"each_of": ["ada", "ada"]}, "names somebody twice"),
    ],
)
def test_quorum_that_cannot_be_is_refused(quorum: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        Quorum.model_validate(quorum)


def test_quorum_counts_its_names_unless_more_are_needed() -> None:
    assert Quorum.model_validate({"each_of": BOTH}).approve == 2
    assert Quorum.model_validate({"each_of": BOTH, "approve": 3}).approve == 3
    assert Quorum().model_dump() == {"approve": 1, "deny": 1}, "records of other items stay as they were"


def test_digest_binds_of_whom_each_must_approve() -> None:
    plain, each = pending(ask(reviewers=NAMES, quorum={"approve": 2})), asked()
    assert item_of(plain).digest != item_of(each).digest


def test_sentences_say_who_has_agreed_and_who_is_missing() -> None:
    record = asked()
    needs = "needs one of finance and one of legal"
    assert describe_quorum(item_of(record)) == f"0 of 2 have approved; {needs}; 1 denial is enough"
    record = approve(record, "fay", "finance")
    assert describe_quorum(item_of(record)) == f"1 of 2 have approved; {needs}; finance agreed; 1 denial is enough"
    record = approve(record, "fin", "finance")
    assert count_quorum(item_of(record)) == "1 of 2"
    assert describe_ineligibility(record, item_of(record), person("fay", "finance")) == (
        "You approved. Waiting for 1 more."
    )
    single = asked(("group:legal",))
    assert describe_quorum(item_of(single)) == "needs one of legal; 1 denial is enough"


def test_deadlock_where_a_person_who_must_agree_has_not() -> None:
    record = asked(("ada", "group:legal"), deny=3, reviewers=("ada", "ben", "group:legal"))
    denial = word(record, "deny", by="ada").model_copy(update={"by": person("ada")})
    denied = decide(record, denial, T0).record
    assert describe_deadlock(record, item_of(record)) == ""
    assert describe_deadlock(denied, item_of(denied)) == "", "the group may still deny"
    few = asked(("ada", "ben"), deny=3, reviewers=("ada", "ben"))
    denied = decide(few, word(few, "deny", by="ada"), T0).record
    assert "Too few reviewers are left" in describe_deadlock(denied, item_of(denied))
