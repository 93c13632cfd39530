"""The audit trail is numbered and chained; any change is found."""

from sayso.records.events import Event, EventType, TrailHead, find_break
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
