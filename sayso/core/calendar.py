"""Time as rules state it: windows of hours and dates, public holidays, and deadlines such as `2 working days`.

Hours start and end at local times of a zone. A local time that daylight saving skips counts as the moment it would
have been without the change; a repeated one counts as its first occurrence.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, cached_property, lru_cache
from typing import Annotated, Literal, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema, field_validator

from sayso.core.clock import HOUR_MS
from sayso.errors import InvalidInput


def is_holiday(country: str, subdivision: str, day: date) -> bool:
    """Return whether the day is a public holiday; never without a country."""
    return bool(country) and day in _holidays_of(country, subdivision, day.year)


def check_country(country: str, subdivision: str) -> None:
    """Raise `InvalidInput` for a country or a part of it whose holidays are unknown."""
    known = _list_countries()
    if subdivision and not country:
        raise InvalidInput("A subdivision needs a country. Give both, or neither.")
    if country and country not in known:
        raise InvalidInput(f"The holidays of {country!r} are unknown. Use an ISO 3166 code such as DE, or omit it.")
    if subdivision and subdivision not in known[country]:
        parts = ", ".join(known[country]) or "none"
        raise InvalidInput(f"{country} has no subdivision {subdivision!r}. Choose one of these or omit it: {parts}.")


@lru_cache(maxsize=256)
def _holidays_of(country: str, subdivision: str, year: int) -> frozenset[date]:
    import holidays

    return frozenset(holidays.country_holidays(country, subdiv=subdivision or None, years=year))


@lru_cache(maxsize=1)
def _list_countries() -> dict[str, list[str]]:
    import holidays

    return holidays.list_supported_countries()


@cache
def _list_time_zones() -> frozenset[str]:
    """Return all names, without the machine's own; cached because it reads a file for each."""
    return frozenset(available_timezones() - {"localtime"})


def check_time_zone(name: str) -> str:
    """Return the name of a time zone; raises `ValueError` for an unknown one."""
    if name not in _list_time_zones():
        raise ValueError(f"there is no time zone {name[:64]!r}; use a name such as Europe/Berlin or UTC")
    return name


TimeZone = Annotated[str, Field(max_length=64), AfterValidator(check_time_zone)]
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: tuple[Weekday, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

TIME_PATTERN = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"
FURTHEST_DAYS = 400  # how far ahead working hours are searched: every yearly holiday occurs within it
_ONE_DAY = timedelta(days=1)


class Hours(BaseModel, frozen=True, extra="forbid"):
    """A span of local time on some weekdays. A span that ends before it starts lasts past midnight."""

    start: str = Field(pattern=TIME_PATTERN, examples=["22:00"])
    end: str = Field(pattern=TIME_PATTERN, examples=["07:00"])
    weekdays: tuple[Weekday, ...] = Field(
        default=WEEKDAYS, min_length=1, max_length=7, description="The days on which the span starts."
    )

    @field_validator("weekdays")
    @classmethod
    def _order_weekdays(cls, weekdays: tuple[Weekday, ...]) -> tuple[Weekday, ...]:
        return tuple(day for day in WEEKDAYS if day in weekdays)

    @property
    def is_always(self) -> bool:
        """Whether the span covers the whole week."""
        return self.start == self.end and self.weekdays == WEEKDAYS


class WorkingHours(BaseModel, frozen=True, extra="forbid"):
    """The working hours of a person or group, except on the public holidays of a country."""

    time_zone: TimeZone = Field(default="UTC", examples=["Europe/Berlin"])
    hours: Hours = Hours(start="09:00", end="17:00", weekdays=WEEKDAYS[:5])
    country: str = Field(default="", max_length=2, description="ISO 3166 code; empty for no holidays.", examples=["DE"])
    subdivision: str = Field(default="", max_length=10, description="A part of the country.", examples=["BY"])


class Span(NamedTuple):
    """A span of time from `start_ms` up to, but not including, `end_ms`."""

    start_ms: int
    end_ms: int


def is_working(working: WorkingHours, now_ms: int) -> bool:
    """Return whether this moment is in the working hours, and its span starts on no holiday."""
    zone = ZoneInfo(working.time_zone)
    return any(
        start_ms <= now_ms < end_ms and not is_holiday(working.country, working.subdivision, day)
        for day in days_from(now_ms, zone, 1)
        for start_ms, end_ms in [find_span(working.hours, day, zone)]
    )


def next_working_ms(working: WorkingHours, now_ms: int) -> int | None:
    """Return the first moment from `now_ms` on within the working hours, or None if there is none in 400 days."""
    following = next(list_spans(working, now_ms), None)
    return None if following is None else max(following.start_ms, now_ms)


def list_spans(working: WorkingHours, now_ms: int) -> Iterator[Span]:
    """Yield the working spans that end after `now_ms` and start within 400 days, the earliest first."""
    zone = ZoneInfo(working.time_zone)
    for day in days_from(now_ms, zone, FURTHEST_DAYS):
        span = find_span(working.hours, day, zone)
        if max(span.start_ms, now_ms) < span.end_ms and not is_holiday(working.country, working.subdivision, day):
            yield span


def days_from(now_ms: int, zone: ZoneInfo, count: int) -> Iterator[date]:
    """Yield the days whose spans may cover `now_ms` or follow it: yesterday, today and `count - 1` more."""
    today = read_local(now_ms, zone).date()
    return (today + timedelta(days=ahead) for ahead in range(-1, count))


def find_span(hours: Hours, day: date, zone: ZoneInfo) -> Span:
    """Return the span that starts on a day; an empty one on other weekdays."""
    start_ms = to_ms(day, read_time(hours.start), zone)
    if WEEKDAYS[day.weekday()] not in hours.weekdays:
        return Span(start_ms, start_ms)
    return Span(start_ms, to_ms(day if hours.start < hours.end else day + _ONE_DAY, read_time(hours.end), zone))


def read_local(at_ms: int, zone: ZoneInfo) -> datetime:
    """Return a moment as a local time of the zone."""
    return datetime.fromtimestamp(at_ms / 1000, tz=UTC).astimezone(zone)


def to_ms(day: date, local: time, zone: ZoneInfo) -> int:
    """Return a local time in milliseconds since 1970, UTC."""
    return round(datetime.combine(day, local, tzinfo=zone).timestamp() * 1000)


@lru_cache(maxsize=2048)
def read_time(text: str) -> time:
    """Return a local time such as 08:30."""
    return time.fromisoformat(text)


WORKING_TIME_PATTERN = r"^[1-9][0-9]{0,2} working (days?|hours?)$"
_WORKING_TIME = re.compile(r"([1-9][0-9]{0,2}) working (day|hour)s?")
_DAY_MINUTES = 1_440


def _check_working_time(text: str) -> str:
    if not _WORKING_TIME.fullmatch(text):
        raise ValueError(f"{text[:64]!r} is no working time; write it as 2 working days or 6 working hours")
    return text


WorkingTime = Annotated[
    str, AfterValidator(_check_working_time), WithJsonSchema({"type": "string", "pattern": WORKING_TIME_PATTERN})
]
"""A number of working days or hours. A working day is as long as the working hours of one day."""


def measure_ms(text: str, hours: Hours) -> int:
    """Return a `WorkingTime` in milliseconds of work."""
    match = _WORKING_TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:64]!r} is no working time")
    start, end = (read_time(text).hour * 60 + read_time(text).minute for text in (hours.start, hours.end))
    day_ms = ((end - start) % _DAY_MINUTES or _DAY_MINUTES) * 60_000  # without a change of the clocks
    return int(match[1]) * (day_ms if match[2] == "day" else HOUR_MS)


def find_deadline_ms(text: str, working: WorkingHours, now_ms: int) -> int | None:
    """Return when a `WorkingTime` from `now_ms` on has passed; None if it does not within 400 days."""
    left_ms = measure_ms(text, working.hours)
    for start_ms, end_ms in list_spans(working, now_ms):
        begin_ms = max(start_ms, now_ms)
        if left_ms <= end_ms - begin_ms:
            return begin_ms + left_ms
        left_ms -= end_ms - begin_ms
    return None


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


class TimeWindow(BaseModel, frozen=True, extra="forbid"):
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
    zone: TimeZone = Field(description="A time zone such as Europe/Zurich or UTC.")
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
        start, _, end = self.hours.partition("-")
        country, _, subdivision = self.holidays.partition("-")
        span = Hours(start=start, end="00:00" if end == "24:00" else end, weekdays=self.days)
        return WorkingHours(time_zone=self.zone, hours=span, country=country, subdivision=subdivision)

    def covers(self, at_ms: int) -> bool:
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
