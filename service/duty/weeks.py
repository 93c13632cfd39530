"""Who is asked when over a week, in half hours of a reader's time zone."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import groupby
from zoneinfo import ZoneInfo

from service.duty.absences import absent_delegate, find_absence
from service.duty.hours import next_open_ms
from service.store.directory.duty import Absence, Preferences

DAYS = 7
SLOTS = 48
"""Half hours of a day."""


@dataclass(frozen=True)
class Span:
    """Half hours in a row in which the same people are asked at once; `first` counts them from midnight."""

    first: int
    slots: int
    people: tuple[str, ...]

    @property
    def hours(self) -> str:
        """The span in local time, such as `08:30–17:00`."""
        return f"{_write_slot(self.first)}–{_write_slot(self.first + self.slots)}"

    @property
    def is_whole_day(self) -> bool:
        return self.slots == SLOTS


@dataclass(frozen=True)
class Day:
    """A local day, with spans that cover it."""

    day: date
    spans: tuple[Span, ...]


def list_days(
    preferences: Mapping[str, Preferences],
    reviewers: Sequence[str],
    absences: Collection[Absence],
    first: date,
    zone: ZoneInfo,
    *,
    urgent: bool = False,
) -> list[Day]:
    """Return who of the reviewers, or of their delegates, is asked at once at each time of a week.

    `preferences` name everybody who can be asked. An urgent item asks outside their hours, too.
    """
    days = [first + timedelta(days=ahead) for ahead in range(DAYS)]
    moments = [_find_moment(day, slot, zone) for day in days for slot in range(SLOTS)]
    free: dict[str, Sequence[bool]] = {}
    known: dict[Preferences, Sequence[bool]] = {}  # the members of a group share their hours
    for name, given in preferences.items():
        hours = Preferences(time_zone=given.time_zone, quiet_hours=given.quiet_hours, working_hours=given.working_hours)
        if hours not in known:
            known[hours] = [True] * len(moments) if urgent else _list_free(hours, moments)
        free[name] = known[hours]
    asked = []
    for place, at_ms in enumerate(moments):
        present = (_find_present(absences, name, at_ms, preferences) for name in reviewers)
        asked.append(tuple(dict.fromkeys(name for name in present if name is not None and free[name][place])))
    return [Day(day, _merge(asked[place * SLOTS : (place + 1) * SLOTS])) for place, day in enumerate(days)]


def _find_present(absences: Collection[Absence], name: str, at_ms: int, active: Collection[str]) -> str | None:
    absent = find_absence(absences, name, at_ms) is not None
    return absent_delegate(absences, name, at_ms, active=active) if absent else name


def _list_free(preferences: Preferences, moments: Sequence[int]) -> list[bool]:
    """Return whether each moment, in their order, is within the hours of a person."""
    free, open_ms = [], 0
    for at_ms in moments:
        if at_ms >= open_ms:
            open_ms = next_open_ms(preferences, at_ms)
        free.append(open_ms <= at_ms)
    return free


def _merge(asked: Sequence[tuple[str, ...]]) -> tuple[Span, ...]:
    spans, first = [], 0
    for people, slots in groupby(asked):
        count = len(list(slots))
        spans.append(Span(first, count, people))
        first += count
    return tuple(spans)


def _find_moment(day: date, slot: int, zone: ZoneInfo) -> int:
    return round(datetime.combine(day, time(slot // 2, slot % 2 * 30), tzinfo=zone).timestamp() * 1000)


def _write_slot(slot: int) -> str:
    return f"{slot // 2:02}:{slot % 2 * 30:02}"
