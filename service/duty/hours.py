"""Quiet hours and working hours of a person as moments at which they may be disturbed."""

from zoneinfo import ZoneInfo

from sayso.core.calendar import FURTHEST_DAYS, WorkingHours, days_from, find_span, next_working_ms
from sayso.core.clock import DAY_MS
from service.store.directory.duty import Preferences
from service.store.directory.groups import Group

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
    for day in days_from(now_ms, zone, 9):  # a span ends within a day of the last one that touches it
        start_ms, end_ms = find_span(hours, day, zone)
        if start_ms <= awake_ms < end_ms:
            awake_ms = end_ms
    return awake_ms


def find_working_hours(preferences: Preferences, group: Group | None) -> WorkingHours | None:
    """Return the hours of a person who is asked as a member of a group, if any; None for no fixed hours."""
    if preferences.working_hours is not None:
        return preferences.working_hours
    return group.working_hours if group is not None else None
