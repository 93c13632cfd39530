"""Time at work is what `is_quiet` says of each minute, for one person and for several together."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sayso.core.calendar import WEEKDAYS, Hours, Span, WorkingHours
from sayso.core.clock import DAY_MS, HOUR_MS
from sayso.wire.people import Preferences
from service.core.auth.duty import is_quiet
from service.features.forecast.staffing import find_passed, list_staffed, measure_staffed

MONDAY_MS = 20_787 * DAY_MS  # 2026-11-30, UTC
STEP_MS = HOUR_MS // 2
WHOLE = Span(MONDAY_MS - 2 * DAY_MS, MONDAY_MS + 5 * DAY_MS)
OFFICE = Preferences(working_hours=WorkingHours())

times = st.sampled_from(["00:00", "06:00", "09:00", "17:30", "22:00"])
spans = st.builds(Hours, start=times, end=times, weekdays=st.sets(st.sampled_from(WEEKDAYS), min_size=1).map(tuple))
zones = st.sampled_from(["UTC", "Asia/Tokyo", "America/Lima"])
working = st.none() | st.builds(WorkingHours, hours=spans, time_zone=zones, country=st.sampled_from(["", "DE"]))
quiet = st.none() | spans.filter(lambda hours: not hours.is_always)
people = st.builds(Preferences, time_zone=zones, working_hours=working, quiet_hours=quiet)


@settings(max_examples=60)
@given(st.lists(people, max_size=3))
def test_half_hours_at_work_are_those_in_which_one_is_not_quiet(team: list[Preferences]) -> None:
    staffed = list_staffed(team, WHOLE)
    for at_ms in range(WHOLE.start_ms, WHOLE.end_ms, STEP_MS):
        at_work = any(not is_quiet(person, at_ms) for person in team)
        assert measure_staffed(staffed, at_ms, at_ms + STEP_MS) == (STEP_MS if at_work else 0)


@settings(max_examples=60)
@given(st.lists(people, max_size=3), st.integers(0, 60 * HOUR_MS))
def test_time_that_has_passed_was_at_work(team: list[Preferences], left_ms: int) -> None:
    staffed = list_staffed(team, WHOLE)
    at_ms = find_passed(staffed, MONDAY_MS, left_ms)
    whole_ms = measure_staffed(staffed, MONDAY_MS, WHOLE.end_ms)
    assert (at_ms is None) is (left_ms > whole_ms or not staffed)
    assert at_ms is None or measure_staffed(staffed, MONDAY_MS, at_ms) == left_ms


@pytest.mark.parametrize(("left_h", "at_h"), [(1, 10), (8, 17), (9, 34)])
def test_hours_pass_in_the_office(left_h: int, at_h: int) -> None:
    staffed = list_staffed([OFFICE], WHOLE)
    assert find_passed(staffed, MONDAY_MS, left_h * HOUR_MS) == MONDAY_MS + at_h * HOUR_MS
