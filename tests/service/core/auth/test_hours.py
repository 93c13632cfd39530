"""Quiet hours and working hours, in every time zone and on the days when clocks change."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from pydantic import ValidationError

from sayso.core.calendar import WEEKDAYS, Hours, WorkingHours, is_working
from sayso.wire.people import Preferences
from service.core.auth.duty import find_working_hours, is_quiet, next_awake_ms, next_open_ms
from service.core.store.directory import Group

MINUTE_MS = 60_000
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia"]
TIMES = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.sampled_from([0, 1, 15, 30, 59]))
DAYS = st.lists(st.sampled_from(WEEKDAYS), min_size=1, unique=True).map(tuple)
HOURS = st.builds(Hours, start=TIMES, end=TIMES, weekdays=DAYS).filter(lambda hours: not hours.is_always)
PREFERENCES = st.builds(Preferences, time_zone=st.sampled_from(ZONES), quiet_hours=HOURS)
MOMENTS = st.integers(0, 40 * 366 * 1440).map(lambda minute: 1_500_000_000_000 + minute * MINUTE_MS)
NIGHT = Preferences(time_zone="Europe/Berlin", quiet_hours=Hours(start="22:00", end="07:00"))


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("moment", "awake"),
    [
        ("2026-11-22T20:59", "2026-11-22T20:59"),
        ("2026-11-22T21:00", "2026-11-23T06:00"),
        ("2026-11-23T05:59", "2026-11-23T06:00"),
        ("2026-11-23T06:00", "2026-11-23T06:00"),
        ("2026-07-01T20:00", "2026-07-02T05:00"),
        ("2026-03-28T23:00", "2026-03-29T05:00"),
        ("2026-10-24T23:00", "2026-10-25T06:00"),
    ],
)
def test_next_awake_ms_over_midnight_and_clock_changes(moment: str, awake: str) -> None:
    assert next_awake_ms(NIGHT, at(moment)) == at(awake)


def test_is_quiet_without_quiet_hours() -> None:
    assert not is_quiet(Preferences(), at("2026-11-22T03:00"))


def test_is_quiet_on_the_weekday_on_which_the_span_starts() -> None:
    friday = Preferences(quiet_hours=Hours(start="22:00", end="07:00", weekdays=("fri",)))
    assert is_quiet(friday, at("2026-11-28T06:00"))
    assert not is_quiet(friday, at("2026-11-27T06:00"))


@examples(max_examples=300, deadline=None)
@given(PREFERENCES, MOMENTS)
def test_next_awake_ms_is_the_end_of_the_quiet_time(preferences: Preferences, now_ms: int) -> None:
    awake_ms = next_awake_ms(preferences, now_ms)
    assert awake_ms >= now_ms
    assert not is_quiet(preferences, awake_ms)
    assert is_quiet(preferences, now_ms) == (awake_ms > now_ms)
    if awake_ms > now_ms:
        middle_ms = (now_ms + awake_ms - 1) // 2
        assert next_awake_ms(preferences, middle_ms) == awake_ms
        assert is_quiet(preferences, awake_ms - 1)


@examples(max_examples=200, deadline=None)
@given(PREFERENCES, MOMENTS)
def test_quiet_and_working_hours_agree_on_the_same_span(preferences: Preferences, now_ms: int) -> None:
    assert preferences.quiet_hours is not None
    working = WorkingHours(time_zone=preferences.time_zone, hours=preferences.quiet_hours)
    assert is_working(working, now_ms) == is_quiet(preferences, now_ms)


def test_find_working_hours_of_person_before_group() -> None:
    own, shared = WorkingHours(time_zone="Asia/Kathmandu"), WorkingHours(country="DE")
    group = Group(name="ops", working_hours=shared, created_at_ms=0)
    assert find_working_hours(Preferences(working_hours=own), group) == own
    assert find_working_hours(Preferences(), group) == shared
    assert find_working_hours(Preferences(), None) is None


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"time_zone": "Europe/Nowhere"}, "there is no time zone"),
        ({"time_zone": "../../etc/passwd"}, "there is no time zone"),
        ({"quiet_hours": {"start": "24:00", "end": "07:00"}}, "pattern"),
        ({"quiet_hours": {"start": "22:00", "end": "07:00", "weekdays": []}}, "at least 1"),
        ({"quiet_hours": {"start": "00:00", "end": "00:00"}}, "leave no time"),
        ({"cap_per_hour": 0}, "greater than or equal to 1"),
        ({"digest": "weekly"}, "'off', 'hourly' or 'daily'"),
    ],
)
def test_preferences_refuse_what_cannot_work(fields: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Preferences.model_validate(fields)


def test_next_open_ms_beside_quiet_hours_that_leave_no_time() -> None:
    never = Preferences(quiet_hours=Hours(start="08:00", end="18:00"), working_hours=WorkingHours())
    assert next_open_ms(never, at("2026-11-22T23:00")) > at("2026-12-10T00:00")
    closed = WorkingHours(hours=Hours(start="09:00", end="09:01", weekdays=("mon",)), time_zone="UTC")
    assert next_open_ms(Preferences(working_hours=closed), at("2026-11-24T00:00")) == at("2026-11-30T09:00")
