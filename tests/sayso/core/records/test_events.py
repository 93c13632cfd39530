"""The audit trail is numbered and chained; any change is found."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from sayso.core.records.chain import describe_tombstones, find_break, write_entry
from sayso.core.records.events import Event, EventType, TrailEntry, TrailHead
from tests.trails import append_events

EVENTS = tuple(Event(type=EventType.WARNING, data={"message": f"number {number}"}) for number in range(6))


def test_entries_are_numbered_from_one_without_gaps_over_several_commits() -> None:
    head, first = append_events(TrailHead(), EVENTS[:2], at_ms=10)
    head, second = append_events(head, EVENTS[2:], at_ms=20)
    assert [entry.seq for entry in first + second] == [1, 2, 3, 4, 5, 6]
    assert head.seq == 6
    assert find_break(first + second) is None


def test_every_single_alteration_removal_or_swap_is_named_by_its_place() -> None:
    _, entries = append_events(TrailHead(), EVENTS, at_ms=10)
    for place, entry in enumerate(entries):
        altered = [*entries[:place], entry.model_copy(update={"data": {"message": "other"}}), *entries[place + 1 :]]
        assert find_break(altered) == entry.seq
        later = [*entries[:place], entry.model_copy(update={"at_ms": 11}), *entries[place + 1 :]]
        assert find_break(later) == entry.seq
        if place < len(entries) - 1:
            assert find_break(entries[:place] + entries[place + 1 :]) == entry.seq
            swapped = [*entries[:place], entries[place + 1], entry, *entries[place + 2 :]]
            assert find_break(swapped) == entry.seq


def erase(head: TrailHead, trail: list[TrailEntry], places: set[int]) -> tuple[TrailHead, list[TrailEntry]]:
    """Make tombstones of the events at these places, and record that."""
    seq = head.seq + 1
    left = [
        one.model_copy(update={"data": {"rule": one.data["rule"]}, "erased_by": seq})
        if place in places and "args" in one.data and one.erased_by is None
        else one
        for place, one in enumerate(trail)
    ]
    told = describe_tombstones([one for one in left if one.erased_by == seq])
    head, added = append_events(head, (Event(EventType.CONTENTS_ERASED, {"by": {"id": "root"}, **told}),), at_ms=30)
    return head, left + added


def read(text: str) -> list[TrailEntry] | None:
    try:
        return [TrailEntry.model_validate_json(line) for line in text.split("\n")]
    except ValidationError:
        return None


CALLS = st.lists(
    st.fixed_dictionaries({"args": st.dictionaries(st.text(max_size=5), st.text(max_size=9)), "rule": st.text()}),
    min_size=1,
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(calls=CALLS, places=st.lists(st.sets(st.integers(0, 7)), min_size=1, max_size=3), data=st.data())
def test_chain_holds_after_erasures_and_any_other_change_breaks_it(
    calls: list[dict[str, Any]], places: list[set[int]], data: st.DataObject
) -> None:
    head, trail = append_events(TrailHead(), tuple(Event(EventType.POLICY_DECISION, one) for one in calls), at_ms=10)
    for some in places:
        head, trail = erase(head, trail, some)
    assert find_break(trail) is None
    assert not any("args" in one.data for place, one in enumerate(trail[: len(calls)]) if place in set().union(*places))
    text = "\n".join(map(write_entry, trail))
    assert read(text) == trail
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from('0aA" {}').filter(lambda one: one != text[place]))
    changed = read(text[:place] + other + text[place + 1 :])
    assert changed is None or changed == trail or find_break(changed) is not None


def test_forged_tombstone_is_found_where_its_erasure_is_recorded() -> None:
    calls = tuple(Event(EventType.POLICY_DECISION, {"args": {"n": n}, "rule": "r"}) for n in range(4))
    head, whole = append_events(TrailHead(), calls, at_ms=10)
    _, trail = erase(head, whole, {1})
    forged = whole[2].model_copy(update={"data": {"rule": "other"}, "erased_by": 5})
    assert find_break([*trail[:2], forged, *trail[3:]]) == 5, "it is none of those that were erased"
    orphan = forged.model_copy(update={"erased_by": 9})
    assert find_break([*trail[:2], orphan, *trail[3:]]) == 3, "no event records its erasure"
    other_hash = trail[1].model_copy(update={"hash": "0" * 32})
    assert find_break([trail[0], other_hash, *trail[2:]]) == 3, "the next event follows from another hash"
    kept = [trail[0], whole[1], *trail[2:]]
    assert find_break(kept) == 5, "its contents are said to be erased"
    backwards = trail[1].model_copy(update={"erased_by": 1})
    assert find_break([trail[0], backwards, *trail[2:]]) == 2


def test_check_from_the_middle_accepts_an_erasure_that_began_before() -> None:
    calls = tuple(Event(EventType.POLICY_DECISION, {"args": {"n": n}, "rule": "r"}) for n in range(4))
    head, whole = append_events(TrailHead(), calls, at_ms=10)
    _, trail = erase(head, whole, {0, 3})
    assert find_break(trail[2:], TrailHead(2, trail[1].hash)) is None
