"""Fields for times, quiet hours and working hours, in forms."""

from collections.abc import Mapping
from datetime import datetime
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from sayso.core.calendar import WEEKDAYS, Hours, WorkingHours
from sayso.core.text.language import _, mark
from sayso.errors import InvalidInput
from service.store.directory.duty import Preferences
from service.web.form_posts import Post

_LACKING = {
    "quiet": mark("Give the quiet hours a start, an end and at least one weekday."),
    "working": mark("Give the working hours a start, an end and at least one weekday."),
}


def read_moment(text: str, zone: ZoneInfo, fault: str) -> int:
    """Return a local time of a form in ms; raises `InvalidInput` with the `fault`."""
    try:
        local = datetime.fromisoformat(text)
        return round(local.replace(tzinfo=zone).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(fault) from error


def read_hours(post: Post, name: str) -> Hours | None:
    """Return the hours of a form, or None without a start and an end; raises `InvalidInput`."""
    start, end = post.get(f"{name}-start", "").strip(), post.get(f"{name}-end", "").strip()
    days = tuple(day for day in WEEKDAYS if post.get(f"{name}-{day}"))
    if not start and not end:
        return None
    try:
        return Hours.model_validate({"start": start, "end": end, "weekdays": days})
    except ValidationError as error:
        raise InvalidInput(_(_LACKING[name])) from error


def read_working_hours(post: Post, time_zone: str) -> WorkingHours | None:
    """Return the working hours of a form, or None without hours; raises `InvalidInput`."""
    hours = read_hours(post, "working")
    if hours is None:
        return None
    country, subdivision = (post.get(name, "").strip().upper() for name in ("country", "subdivision"))
    try:
        return WorkingHours(time_zone=time_zone, hours=hours, country=country, subdivision=subdivision)
    except ValidationError as error:
        unknown = _("The time zone “%(name)s” is unknown. Enter one such as Europe/Berlin.", name=time_zone[:64])
        raise InvalidInput(unknown) from error


def write_hours(hours: Hours | None, name: str) -> dict[str, str]:
    """Return hours as the fields of a form; without hours, every weekday is chosen."""
    days = hours.weekdays if hours is not None else WEEKDAYS[:5] if name == "working" else WEEKDAYS
    chosen = {f"{name}-{day}": "on" for day in days}
    return {f"{name}-start": hours.start if hours else "", f"{name}-end": hours.end if hours else "", **chosen}


def write_working_hours(working: WorkingHours | None) -> Mapping[str, str]:
    """Return working hours as the fields of a form."""
    fields = write_hours(working.hours if working is not None else None, "working")
    if working is None:
        return fields
    return {**fields, "country": working.country, "subdivision": working.subdivision}


def write_preferences(preferences: Preferences) -> Mapping[str, str]:
    """Return preferences as the fields of a form."""
    return {
        "time_zone": preferences.time_zone,
        "digest": preferences.digest,
        "cap": str(preferences.cap_per_hour or ""),
        "language": preferences.language,
        **write_hours(preferences.quiet_hours, "quiet"),
        **write_working_hours(preferences.working_hours),
    }
