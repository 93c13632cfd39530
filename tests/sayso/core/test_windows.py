"""Windows of rules: hours of weekdays in a zone, and dates; also on the days when clocks change."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from pydantic import ValidationError

from sayso.core.calendar import WEEKDAYS, TimeWindow, find_end_ms, find_start_ms, is_holiday

ZONES = ["UTC", "Europe/Zurich", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Casablanca"]
CHANGES = ["2026-03-29T00:30", "2026-10-25T00:30", "2026-03-08T06:30", "2026-11-01T05:30", "2026-04-04T14:45"]
MINUTES = st.integers(0, 6 * 366 * 1440)
AROUND_CHANGES = st.builds(
    lambda change, minutes: at(f"{change}Z") + minutes * 60_000, st.sampled_from(CHANGES), st.integers(-1440, 1440)
)
MOMENTS = st.one_of(MINUTES.map(lambda minutes: 1_700_000_000_000 + minutes * 60_000), AROUND_CHANGES)


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def covers_by_the_wall_clock(window: TimeWindow, now_ms: int) -> bool:
    """Compare local clock times as a person reads them; hours within one day only."""
    local = datetime.fromtimestamp(now_ms / 1000, tz=UTC).astimezone(ZoneInfo(window.zone))
    start, _, end = window.hours.partition("-")
    return (
        WEEKDAYS[local.weekday()] in window.days
        and start <= f"{local:%H:%M}" < end
        and not is_holiday(window.holidays[:2], window.holidays[3:], local.date())
    )


@examples(max_examples=300, deadline=None)
@given(
    st.sampled_from(ZONES),
    st.sampled_from(["00:00-24:00", "08:00-18:00", "04:00-23:30", "12:00-12:30"]),
    st.lists(st.sampled_from(WEEKDAYS), min_size=1, unique=True),
    st.sampled_from(["", "CH", "DE-BY", "US"]),
    MOMENTS,
)
@example("Europe/Zurich", "00:00-24:00", ["sun"], "", at("2026-10-25T23:30+01:00"))
def test_window_covers_what_the_wall_clock_shows(
    zone: str, hours: str, days: list[Any], holidays: str, now_ms: int
) -> None:
    window = TimeWindow(hours=hours, days=tuple(days), zone=zone, holidays=holidays)
    assert window.covers(now_ms) == covers_by_the_wall_clock(window, now_ms)


@pytest.mark.parametrize(
    ("moment", "covered"),
    [
        ("2026-11-23T21:59+01:00", False),
        ("2026-11-23T22:00+01:00", True),
        ("2026-11-24T05:59+01:00", True),
        ("2026-11-24T06:00+01:00", False),
        ("2026-12-25T03:00+01:00", True),  # the night began before the holiday
        ("2026-12-25T23:00+01:00", False),
        ("2026-03-30T05:59+02:00", True),
    ],
)
def test_window_past_midnight_belongs_to_the_day_it_starts(moment: str, covered: bool) -> None:
    night = TimeWindow(hours="22:00-06:00", zone="Europe/Zurich", holidays="CH")
    assert night.covers(at(moment)) is covered


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2026-12-01", "2026-12-01T00:00Z", "2026-12-02T00:00Z"),
        ("2026-12-01 Europe/Zurich", "2026-12-01T00:00+01:00", "2026-12-02T00:00+01:00"),
        ("2026-10-25 Europe/Zurich", "2026-10-25T00:00+02:00", "2026-10-26T00:00+01:00"),
        ("2026-03-29 Europe/Zurich", "2026-03-29T00:00+01:00", "2026-03-30T00:00+02:00"),
        ("2026-12-01T08:00+01:00", "2026-12-01T07:00Z", "2026-12-01T07:00Z"),
        ("2026-12-01T08:00:30 Europe/Zurich", "2026-12-01T07:00:30Z", "2026-12-01T07:00:30Z"),
        ("2026-12-01T08:00Z", "2026-12-01T08:00Z", "2026-12-01T08:00Z"),
    ],
)
def test_moment_starts_and_ends_in_its_zone(text: str, start: str, end: str) -> None:
    assert (find_start_ms(text), find_end_ms(text)) == (at(start), at(end))


@examples(max_examples=200, deadline=None)
@given(st.sampled_from(ZONES), st.dates(date(2020, 1, 1), date(2035, 12, 31)))
def test_days_of_a_zone_follow_each_other_without_a_gap(zone: str, day: date) -> None:
    assert find_end_ms(f"{day} {zone}") == find_start_ms(f"{day + timedelta(days=1)} {zone}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2026-12-01T08:00", "has no zone"),
        ("2026-13-01", "is no date"),
        ("2026-12-01+01:00", "add a time"),
        ("2026-12-01T08:00Z Europe/Zurich", "two zones"),
        ("2026-12-01 Europe/Zurch", "no time zone 'Europe/Zurch'"),
        ("tomorrow", "is no date"),
        ("2026-12-01  UTC", "is no date"),
        ("", "is no date"),
    ],
)
def test_moment_refuses_what_is_no_moment(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        find_start_ms(text)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"hours": "8-18"}, "are no hours"),
        ({"hours": "08:00-25:00"}, "are no hours"),
        ({"days": []}, "at least 1"),
        ({"zone": "Mars/Olympus"}, "no time zone"),
        ({"zone": "../../etc/passwd"}, "no time zone"),
        ({"holidays": "Switzerland"}, "is no country"),
        ({"holidays": "XX"}, "holidays of 'XX' are unknown"),
        ({"holidays": "DE-ZZ"}, "no subdivision 'ZZ'"),
    ],
)
def test_window_refuses_what_cannot_work(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        TimeWindow.model_validate({"zone": "UTC", **fields})
