"""Working hours in every time zone and on the days when clocks change."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from sayso.core.calendar import WEEKDAYS, Hours, WorkingHours, is_working, next_working_ms

MINUTE_MS = 60_000
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia"]
TIMES = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.sampled_from([0, 1, 15, 30, 59]))
DAYS = st.lists(st.sampled_from(WEEKDAYS), min_size=1, unique=True).map(tuple)
HOURS = st.builds(Hours, start=TIMES, end=TIMES, weekdays=DAYS).filter(lambda hours: not hours.is_always)
MOMENTS = st.integers(0, 40 * 366 * 1440).map(lambda minute: 1_500_000_000_000 + minute * MINUTE_MS)


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@examples(max_examples=300, deadline=None)
@given(st.builds(WorkingHours, time_zone=st.sampled_from(ZONES), hours=HOURS), MOMENTS)
def test_next_working_ms_is_in_the_working_hours(working: WorkingHours, now_ms: int) -> None:
    next_ms = next_working_ms(working, now_ms)
    assert next_ms is not None
    assert next_ms >= now_ms
    assert is_working(working, next_ms)
    assert is_working(working, now_ms) == (next_ms == now_ms)
    if next_ms > now_ms:
        assert next_working_ms(working, (now_ms + next_ms) // 2) == next_ms


def test_next_working_ms_passes_over_weekend_and_holidays() -> None:
    berlin = WorkingHours(time_zone="Europe/Berlin", country="DE")
    assert next_working_ms(berlin, at("2026-12-24T17:00")) == at("2026-12-28T08:00")
    assert next_working_ms(WorkingHours(time_zone="Europe/Berlin"), at("2026-12-24T17:00")) == at("2026-12-25T08:00")


def test_next_working_ms_in_a_part_of_a_country() -> None:
    epiphany = at("2026-01-06T10:00")
    assert is_working(WorkingHours(country="DE", subdivision="BE"), epiphany)
    assert not is_working(WorkingHours(country="DE", subdivision="BY"), epiphany)
