"""Deadlines in working time, such as `2 working days`."""

import re
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from sayso.calendars.hours import Hours, WorkingHours, list_spans, read_time
from sayso.clock import HOUR_MS

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
    count, unit = match.groups()
    return int(count) * (_measure_day_ms(hours) if unit == "day" else HOUR_MS)


def find_deadline_ms(text: str, working: WorkingHours, now_ms: int) -> int | None:
    """Return when a `WorkingTime` from `now_ms` on has passed; None if it does not within 400 days."""
    left_ms = measure_ms(text, working.hours)
    for start_ms, end_ms in list_spans(working, now_ms):
        begin_ms = max(start_ms, now_ms)
        if left_ms <= end_ms - begin_ms:
            return begin_ms + left_ms
        left_ms -= end_ms - begin_ms
    return None


def _measure_day_ms(hours: Hours) -> int:
    """Return the length of the hours of one day, without a change of the clocks."""
    start, end = (read_time(text).hour * 60 + read_time(text).minute for text in (hours.start, hours.end))
    return ((end - start) % _DAY_MINUTES or _DAY_MINUTES) * 60_000
