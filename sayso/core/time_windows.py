"""Windows of time as rules state them: hours of weekdays in a zone, and dates with or without a time."""

import re
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, WithJsonSchema, field_validator

from sayso.core.calendar import (
    WEEKDAYS,
    Frozen,
    Hours,
    Weekday,
    WorkingHours,
    check_country,
    check_time_zone,
    is_working,
)
from sayso.errors import InvalidInput

HOURS_PATTERN = r"^([01][0-9]|2[0-3]):[0-5][0-9]-(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"
HOLIDAYS_PATTERN = r"^([A-Z]{2}(-[A-Z0-9]{1,9})?)?$"
_DAY_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_ZONE = "[A-Za-z][A-Za-z0-9_+/-]*"
MOMENT_PATTERN = (
    rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}( {_ZONE}"
    rf"|T[0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}})?(Z|[+-][0-9]{{2}}:[0-9]{{2}}| {_ZONE}))?$"
)
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)(?: (\S+))?"
)
_NO_DATE = "is no date; write it as 2026-12-01 or 2026-12-01T08:00+01:00"
_ONE_DAY = timedelta(days=1)


class TimeWindow(Frozen):
    """Hours of some weekdays in a time zone, except on public holidays. Hours may last past midnight."""

    hours: Annotated[str, WithJsonSchema({"type": "string", "pattern": HOURS_PATTERN})] = Field(
        default="00:00-24:00", description="Local times such as 08:00-18:00; all day without it."
    )
    days: tuple[Weekday, ...] = Field(
        default=WEEKDAYS,
        min_length=1,
        max_length=7,
        description="The days on which the hours start; every day without it.",
    )
    zone: str = Field(max_length=64, description="A time zone such as Europe/Zurich or UTC.")
    holidays: Annotated[str, WithJsonSchema({"type": "string", "pattern": HOLIDAYS_PATTERN})] = Field(
        default="",
        description="The public holidays to leave out: ISO 3166 code of a country, or of a part such as DE-BY.",
    )

    @field_validator("hours")
    @classmethod
    def _check_hours(cls, hours: str) -> str:
        if not re.fullmatch(HOURS_PATTERN, hours):
            raise ValueError(f"{hours[:64]!r} are no hours; write them as 08:00-18:00")
        return hours

    @field_validator("zone")
    @classmethod
    def _check_zone(cls, name: str) -> str:
        return check_time_zone(name)

    @field_validator("holidays")
    @classmethod
    def _check_holidays(cls, name: str) -> str:
        if not re.fullmatch(HOLIDAYS_PATTERN, name):
            raise ValueError(f"{name[:64]!r} is no country; write its ISO 3166 code, such as CH, or DE-BY for a part")
        country, _, subdivision = name.partition("-")
        try:
            check_country(country, subdivision)
        except InvalidInput as error:
            raise ValueError(error.message) from error
        return name

    @cached_property
    def working(self) -> WorkingHours:
        """The window as working hours."""
        start, _, end = self.hours.partition("-")
        country, _, subdivision = self.holidays.partition("-")
        span = Hours(start=start, end="00:00" if end == "24:00" else end, weekdays=self.days)
        return WorkingHours(time_zone=self.zone, hours=span, country=country, subdivision=subdivision)

    def covers(self, at_ms: int) -> bool:
        """Return whether the window covers a moment."""
        return is_working(self.working, at_ms)


def _check_moment(text: str) -> str:
    find_start_ms(text)
    return text


Moment = Annotated[str, AfterValidator(_check_moment), WithJsonSchema({"type": "string", "pattern": MOMENT_PATTERN})]
"""A date, or a date and time, with a zone: `2026-12-01`, `2026-12-01 Europe/Zurich`, `2026-12-01T08:00+01:00`.

A date without a zone is in UTC. A time needs one.
"""


def _check_day(text: str) -> str:
    if not re.fullmatch(_DAY_PATTERN, text):
        raise ValueError(f"{text[:64]!r} is no date; write it as 2026-12-01")
    find_start_ms(text)
    return text


Day = Annotated[
    str, AfterValidator(_check_day), WithJsonSchema({"type": "string", "format": "date", "pattern": _DAY_PATTERN})
]
"""A date in UTC, such as `2026-12-01`."""


@lru_cache(maxsize=1024)
def find_start_ms(text: str) -> int:
    """Return the first millisecond of a `Moment`; raises `ValueError` for one that does not exist."""
    return round(_read(text).timestamp() * 1000)


@lru_cache(maxsize=1024)
def find_end_ms(text: str) -> int:
    """Return the first millisecond after a `Moment`: a date lasts until midnight, a time no longer than itself."""
    moment = _read(text)
    return round((moment if text[10:11] == "T" else moment + _ONE_DAY).timestamp() * 1000)


def _read(text: str) -> datetime:
    """Return a moment in its zone. Days are added in local time, so that they end at midnight."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:64]!r} {_NO_DATE}")
    local, zone = match.groups()
    if "T" not in local and local[10:]:
        raise ValueError(f"{text[:64]!r} is a date with an offset; add a time, or name a zone, as in 2026-12-01 UTC")
    try:
        moment = datetime.fromisoformat(local)
    except ValueError as error:
        raise ValueError(f"{text[:64]!r} {_NO_DATE}") from error
    if zone is not None and moment.tzinfo is not None:
        raise ValueError(f"{text[:64]!r} has two zones; remove one")
    if zone is not None:
        return moment.replace(tzinfo=ZoneInfo(check_time_zone(zone)))
    if moment.tzinfo is None and "T" in local:
        raise ValueError(f"{text[:64]!r} has no zone; write it as {local}Z or {local} Europe/Zurich")
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
