"""Quiet hours and working hours as spans of time.

A span starts and ends at local times of a time zone. A local time that daylight saving skips counts as the moment it
would have been without the change; a repeated one counts as its first occurrence.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from sayso.clock import DAY_MS
from service.duty.calendars import is_holiday
from service.store.directory.duty import WEEKDAYS, Hours, Preferences, WorkingHours
from service.store.directory.groups import Group

FURTHEST_DAYS = 400
"""How far ahead working hours are searched: every yearly holiday occurs within it."""

_ONE_DAY = timedelta(days=1)
_MOST_SPANS = 30


def is_quiet(preferences: Preferences, now_ms: int) -> bool:
    """Return whether quiet hours cover this moment, or it is outside the working hours."""
    return next_open_ms(preferences, now_ms) > now_ms


def next_open_ms(preferences: Preferences, now_ms: int) -> int:
    """Return the first moment from `now_ms` on within the working hours that no quiet hours cover.

    Where none is found soon, return a later moment at which to search again.
    """
    working, open_ms = preferences.working_hours, next_awake_ms(preferences, now_ms)
    if working is None:
        return open_ms
    for _ in range(_MOST_SPANS):
        working_ms = next_working_ms(working, open_ms)
        if working_ms is None:
            return now_ms + FURTHEST_DAYS * DAY_MS
        if working_ms == open_ms:
            break
        open_ms = next_awake_ms(preferences, working_ms)
    return open_ms


def next_awake_ms(preferences: Preferences, now_ms: int) -> int:
    """Return the first moment from `now_ms` on that no quiet hours cover."""
    hours, awake_ms = preferences.quiet_hours, now_ms
    if hours is None:
        return now_ms
    zone = ZoneInfo(preferences.time_zone)
    for day in _days_from(now_ms, zone, 9):  # a span ends within a day of the last one that touches it
        start_ms, end_ms = _span(hours, day, zone)
        if start_ms <= awake_ms < end_ms:
            awake_ms = end_ms
    return awake_ms


def is_working(working: WorkingHours, now_ms: int) -> bool:
    """Return whether this moment is in the working hours, and its span starts on no holiday."""
    return next_working_ms(working, now_ms) == now_ms


def next_working_ms(working: WorkingHours, now_ms: int) -> int | None:
    """Return the first moment from `now_ms` on within the working hours, or None if there is none in 400 days."""
    zone = ZoneInfo(working.time_zone)
    for day in _days_from(now_ms, zone, FURTHEST_DAYS):
        start_ms, end_ms = _span(working.hours, day, zone)
        if max(start_ms, now_ms) < end_ms and not is_holiday(working.country, working.subdivision, day):
            return max(start_ms, now_ms)
    return None


def find_working_hours(preferences: Preferences, group: Group | None) -> WorkingHours | None:
    """Return the hours of a person who is asked as a member of a group, if any; None for no fixed hours."""
    if preferences.working_hours is not None:
        return preferences.working_hours
    return group.working_hours if group is not None else None


def _days_from(now_ms: int, zone: ZoneInfo, count: int) -> Iterator[date]:
    """Yield the days whose spans may cover `now_ms` or follow it, from the day before on."""
    today = datetime.fromtimestamp(now_ms / 1000, tz=UTC).astimezone(zone).date()
    return (today + timedelta(days=ahead) for ahead in range(-1, count))


def _span(hours: Hours, day: date, zone: ZoneInfo) -> tuple[int, int]:
    """Return the start and end of the span that starts on a day; empty on other weekdays."""
    start_ms = _moment(day, hours.start, zone)
    if WEEKDAYS[day.weekday()] not in hours.weekdays:
        return start_ms, start_ms
    return start_ms, _moment(day if hours.start < hours.end else day + _ONE_DAY, hours.end, zone)


def _moment(day: date, time: str, zone: ZoneInfo) -> int:
    local = datetime.strptime(time, "%H:%M").time()  # noqa: DTZ007  a local time without a date has no zone
    return round(datetime.combine(day, local, tzinfo=zone).timestamp() * 1000)
