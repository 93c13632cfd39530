"""Quiet hours and digests hold cards, once, and only to a moment at which the person may be notified."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.calendar import WEEKDAYS, Hours, WorkingHours
from sayso.core.clock import DAY_MS, HOUR_MS
from sayso.wire.people import Preferences
from service.core.auth.duty import Hold, find_hold, is_quiet, joins_digest, next_awake_ms, next_digest_ms

ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"]
CLOCKS = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.sampled_from([0, 15, 59]))
HOURS = st.builds(
    Hours, start=CLOCKS, end=CLOCKS, weekdays=st.sets(st.sampled_from(WEEKDAYS), min_size=1, max_size=6).map(tuple)
)
PREFERENCES = st.builds(
    Preferences,
    time_zone=st.sampled_from(ZONES),
    quiet_hours=st.none() | HOURS,
    digest=st.sampled_from(["off", "hourly", "daily"]),
)
MOMENTS = st.integers(1_700_000_000_000, 1_800_000_000_000)


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


QUIET = Preferences(quiet_hours=Hours(start="22:00", end="07:00"))
NIGHT, MORNING, NOON = at("2026-11-22T23:00"), at("2026-11-23T07:00"), at("2026-11-23T12:00")


@given(PREFERENCES, MOMENTS, st.integers(0, DAY_MS), st.integers(1, 10 * DAY_MS))
def test_find_hold_ends_when_the_person_may_be_notified(
    preferences: Preferences, since_ms: int, waited_ms: int, left_ms: int
) -> None:
    now_ms = since_ms + waited_ms
    hold = find_hold(preferences, since_ms, now_ms + left_ms, now_ms)
    if hold is None:
        assert not is_quiet(preferences, now_ms)
        digest_ms = next_digest_ms(preferences, since_ms)
        assert digest_ms is None or digest_ms <= now_ms or digest_ms >= now_ms + left_ms
        return
    assert hold.until_ms > now_ms
    assert not is_quiet(preferences, hold.until_ms)
    assert find_hold(preferences, since_ms, now_ms + left_ms, hold.until_ms) is None, "held once"
    assert hold.reason != "quiet hours" or hold.until_ms == next_awake_ms(preferences, now_ms)
    if hold.reason.endswith("digest"):
        assert hold.until_ms < now_ms + left_ms, "a digest never misses the deadline"
        assert joins_digest(preferences, since_ms, hold.until_ms)


@given(PREFERENCES, MOMENTS)
def test_next_digest_is_soon_and_not_in_quiet_hours(preferences: Preferences, from_ms: int) -> None:
    digest_ms = next_digest_ms(preferences, from_ms)
    if preferences.digest == "off":
        assert digest_ms is None
        return
    assert digest_ms is not None
    assert digest_ms > from_ms
    assert not is_quiet(preferences, digest_ms)
    if preferences.quiet_hours is None:
        assert digest_ms <= from_ms + (HOUR_MS if preferences.digest == "hourly" else DAY_MS + 2 * HOUR_MS)


@given(MOMENTS, MOMENTS, MOMENTS)
def test_find_hold_without_preferences_is_none(since_ms: int, deadline_ms: int, now_ms: int) -> None:
    assert find_hold(Preferences(), since_ms, deadline_ms, now_ms) is None


def test_find_hold_in_quiet_hours_lasts_to_their_end() -> None:
    assert find_hold(QUIET, NIGHT, NOON, NIGHT) == Hold(MORNING, "quiet hours")
    assert find_hold(QUIET, NIGHT, NIGHT + 60_000, NIGHT) == Hold(MORNING, "quiet hours"), "the caller asks others"
    assert find_hold(QUIET, NIGHT, NOON, MORNING) is None


@pytest.mark.parametrize(
    ("digest", "zone", "until"),
    [
        ("hourly", "UTC", "2026-11-23T13:00"),
        ("hourly", "Asia/Kathmandu", "2026-11-23T12:15"),
        ("daily", "UTC", "2026-11-24T09:00"),
        ("daily", "America/New_York", "2026-11-23T14:00"),
    ],
)
def test_find_hold_for_a_digest_at_the_local_time(digest: str, zone: str, until: str) -> None:
    preferences = Preferences.model_validate({"digest": digest, "time_zone": zone})
    assert find_hold(preferences, NOON, NOON + 2 * DAY_MS, NOON) == Hold(at(until), f"{digest} digest")
    assert find_hold(preferences, NOON, NOON + 60_000, NOON) is None, "the digest would be too late"


def test_find_hold_for_a_digest_that_falls_into_quiet_hours() -> None:
    preferences = QUIET.model_copy(update={"digest": "hourly"})
    evening = at("2026-11-22T21:30")
    assert find_hold(preferences, evening, NOON, evening) == Hold(MORNING, "hourly digest")
    assert find_hold(preferences, NIGHT, NOON, NIGHT) == Hold(MORNING, "quiet hours")


OFFICE = WorkingHours()  # 09:00 to 17:00, from Monday to Friday
NINE = at("2026-11-23T09:00")


@pytest.mark.parametrize(
    ("preferences", "hold"),
    [
        (Preferences(working_hours=OFFICE), Hold(NINE, "outside the working hours", off_duty=True)),
        (
            Preferences(working_hours=OFFICE, quiet_hours=Hours(start="08:00", end="10:30")),
            Hold(at("2026-11-23T10:30"), "outside the working hours", off_duty=True),
        ),
        (
            Preferences(
                working_hours=WorkingHours(hours=Hours(start="22:00", end="06:00")),
                quiet_hours=Hours(start="22:00", end="01:00"),
            ),
            Hold(at("2026-11-23T01:00"), "quiet hours"),
        ),
        (
            Preferences(
                working_hours=OFFICE.model_copy(update={"hours": Hours(start="08:00", end="17:00")}), digest="daily"
            ),
            Hold(NINE, "daily digest", off_duty=True),
        ),
        (Preferences(working_hours=WorkingHours(hours=Hours(start="22:00", end="06:00"))), None),
    ],
)
def test_find_hold_outside_working_hours(preferences: Preferences, hold: Hold | None) -> None:
    assert find_hold(preferences, NIGHT, NIGHT + 30 * HOUR_MS, NIGHT) == hold
