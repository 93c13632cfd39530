"""Delegates of absent people: chains, cycles, and never the requester."""

from hypothesis import given
from hypothesis import strategies as st

from service.core.store.directory import Absence, absent_delegate, find_absence, list_represented

NOW = 1_000
PEOPLE = ["anna", "ben", "carla", "dora", "eve"]


def away(person: str, delegate: str | None, from_ms: int = 0, to_ms: int = 2_000) -> Absence:
    return Absence(id=f"abs_{person}", person=person, from_ms=from_ms, to_ms=to_ms, delegate=delegate)


ABSENCES = st.lists(
    st.builds(
        away,
        st.sampled_from(PEOPLE),
        st.sampled_from([None, *PEOPLE]),
        st.sampled_from([0, 1_500]),
        st.sampled_from([900, 2_000]),
    ),
    unique_by=lambda one: one.person,
)


def test_absent_delegate_follows_the_chain() -> None:
    chain = [away("anna", "ben"), away("ben", "carla")]
    assert absent_delegate(chain, "anna", NOW) == "carla"
    assert absent_delegate(chain, "carla", NOW) is None
    assert list_represented(chain, "carla", NOW) == ["anna", "ben"]


def test_absent_delegate_ends_in_a_cycle_and_at_nobody() -> None:
    assert absent_delegate([away("anna", "ben"), away("ben", "anna")], "anna", NOW) is None
    assert absent_delegate([away("anna", "anna")], "anna", NOW) is None
    assert absent_delegate([away("anna", None)], "anna", NOW) is None


def test_absent_delegate_is_never_the_requester() -> None:
    chain = [away("anna", "ben"), away("ben", "carla")]
    assert absent_delegate(chain, "anna", NOW, requester="carla") is None
    assert absent_delegate(chain, "anna", NOW, requester="ben") is None
    assert absent_delegate(chain, "anna", NOW, requester="dora") == "carla"


def test_absent_delegate_is_active() -> None:
    assert absent_delegate([away("anna", "ben")], "anna", NOW, active={"anna", "ben"}) == "ben"
    assert absent_delegate([away("anna", "ben")], "anna", NOW, active={"anna"}) is None


def test_find_absence_from_start_to_end() -> None:
    absence = away("anna", None, 10, 20)
    found = [find_absence([absence], "anna", at_ms) for at_ms in (9, 10, 19, 20)]
    assert found == [None, absence, absence, None]


@given(ABSENCES, st.sampled_from(PEOPLE), st.sampled_from(["", *PEOPLE]), st.sets(st.sampled_from(PEOPLE)))
def test_absent_delegate_is_present_and_somebody_else(
    absences: list[Absence], person: str, requester: str, active: set[str]
) -> None:
    delegate = absent_delegate(absences, person, NOW, requester, active)
    if find_absence(absences, person, NOW) is None:
        assert delegate is None
    if delegate is not None:
        assert delegate not in (person, requester)
        assert delegate in active
        assert find_absence(absences, delegate, NOW) is None
        assert person in list_represented(absences, delegate, NOW, requester, active)
