"""Deadlines in working time, beside a count of every working minute."""

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from sayso.core.calendar import WEEKDAYS, Hours, WorkingHours, find_deadline_ms, is_working, measure_ms

MINUTE_MS = 60_000
ZURICH = WorkingHours(
    time_zone="Europe/Zurich", hours=Hours(start="08:00", end="18:00", weekdays=WEEKDAYS[:5]), country="CH"
)
ZONES = ["UTC", "Europe/Zurich", "America/New_York", "Australia/Lord_Howe"]
CHANGES = ["2026-03-29T00:00", "2026-10-25T00:00", "2026-03-08T06:00", "2026-11-01T05:00", "2026-04-04T14:00"]
MOMENTS = st.builds(
    lambda change, minutes: at(f"{change}Z") + minutes * MINUTE_MS, st.sampled_from(CHANGES), st.integers(-4320, 1440)
)


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("asked", "text", "deadline"),
    [
        ("2026-11-23T10:00+01:00", "2 working days", "2026-11-25T10:00+01:00"),
        ("2026-11-27T16:00+01:00", "2 working days", "2026-12-01T16:00+01:00"),
        ("2026-11-28T12:00+01:00", "2 working days", "2026-12-01T18:00+01:00"),
        ("2026-11-23T20:00+01:00", "1 working day", "2026-11-24T18:00+01:00"),
        ("2026-12-24T12:00+01:00", "1 working day", "2026-12-28T12:00+01:00"),
        ("2026-11-23T17:00+01:00", "3 working hours", "2026-11-24T10:00+01:00"),
        ("2026-03-27T17:00+01:00", "1 working day", "2026-03-30T17:00+02:00"),
    ],
)
def test_deadline_in_working_time(asked: str, text: str, deadline: str) -> None:
    assert find_deadline_ms(text, ZURICH, at(asked)) == at(deadline)


@examples(max_examples=40, deadline=None)
@given(
    st.sampled_from(ZONES),
    st.sampled_from([("08:00", "18:00"), ("22:00", "06:30"), ("00:00", "00:00")]),
    st.lists(st.sampled_from(WEEKDAYS), min_size=1, unique=True),
    MOMENTS,
    st.sampled_from(["1 working hour", "7 working hours", "1 working day"]),
)
def test_deadline_leaves_exactly_the_working_time(
    zone: str, hours: tuple[str, str], days: list[Any], now_ms: int, text: str
) -> None:
    span = Hours(start=hours[0], end=hours[1], weekdays=tuple(days))
    working = WorkingHours(time_zone=zone, hours=span)
    deadline_ms = find_deadline_ms(text, working, now_ms)
    assert deadline_ms is not None
    worked = sum(is_working(working, minute) for minute in range(now_ms, deadline_ms, MINUTE_MS))
    assert worked * MINUTE_MS == measure_ms(text, span)
    assert is_working(working, deadline_ms - MINUTE_MS)


def test_deadline_that_never_comes() -> None:
    new_year = WorkingHours(hours=Hours(start="08:00", end="09:00", weekdays=("mon",)), country="CH")
    assert find_deadline_ms("999 working hours", new_year, at("2026-01-01T00:00Z")) is None


@pytest.mark.parametrize(
    "text", ["2 days", "0 working days", "-1 working day", "1000 working days", "two working days"]
)
def test_measure_refuses_what_is_no_working_time(text: str) -> None:
    with pytest.raises(ValueError, match="no working time"):
        measure_ms(text, ZURICH.hours)
