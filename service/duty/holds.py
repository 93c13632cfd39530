"""How long a person's preferences hold a card that is not urgent: quiet hours, working hours and digests."""

from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from sayso.core.calendar import is_working
from sayso.core.clock import HOUR_MS
from service.duty.hours import next_awake_ms, next_open_ms
from service.store.directory.duty import Preferences

DAILY_AT = time(9)
"""The local time of a daily digest."""


class Hold(NamedTuple):
    """A card waits until a moment, for a reason. `off_duty` says that the person is outside their working hours."""

    until_ms: int
    reason: str
    off_duty: bool = False


def find_hold(preferences: Preferences, since_ms: int, deadline_at_ms: int, now_ms: int) -> Hold | None:
    """Return how long a card waits whose item waits since `since_ms`, or None to send it now.

    A digest after the deadline does not hold it. Other holds may end after the deadline; the caller then asks others.
    """
    open_ms, working = next_open_ms(preferences, now_ms), preferences.working_hours
    off_duty = working is not None and not is_working(working, now_ms)
    digest_ms = next_digest_ms(preferences, since_ms)
    if digest_ms is not None and open_ms < digest_ms < deadline_at_ms:
        return Hold(digest_ms, f"{preferences.digest} digest", off_duty)
    if open_ms == now_ms:
        return None
    return Hold(open_ms, "outside the working hours" if off_duty else "quiet hours", off_duty)


def find_quiet_hold(preferences: Preferences, now_ms: int) -> Hold | None:
    """Return how long quiet hours hold a message, or None to send it now."""
    awake_ms = next_awake_ms(preferences, now_ms)
    return Hold(awake_ms, "quiet hours", off_duty=False) if awake_ms > now_ms else None


def joins_digest(preferences: Preferences, since_ms: int, now_ms: int) -> bool:
    """Return whether a card that is sent now was held for a digest."""
    digest_ms = next_digest_ms(preferences, since_ms)
    return digest_ms is not None and digest_ms <= now_ms


def next_digest_ms(preferences: Preferences, from_ms: int) -> int | None:
    """Return the first digest after a moment, at the next full local hour or 09:00, or once hours allow it."""
    if preferences.digest == "off":
        return None
    zone = ZoneInfo(preferences.time_zone)
    local = datetime.fromtimestamp(from_ms / 1000, tz=UTC).astimezone(zone)
    if preferences.digest == "hourly":
        passed_ms = (local.minute * 60 + local.second) * 1000 + from_ms % 1000
        return next_open_ms(preferences, from_ms - passed_ms + HOUR_MS)
    days = (local.date() + timedelta(days=ahead) for ahead in range(3))
    moments = (round(datetime.combine(day, DAILY_AT, tzinfo=zone).timestamp() * 1000) for day in days)
    return next_open_ms(preferences, next(moment for moment in moments if moment > from_ms))
