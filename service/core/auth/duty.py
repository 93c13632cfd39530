"""When people may be disturbed, who decides while they are absent, and who is asked when over a week."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from typing import NamedTuple
from zoneinfo import ZoneInfo

from sayso.core.calendar import FURTHEST_DAYS, WorkingHours, days_from, find_span, is_working, next_working_ms
from sayso.core.clock import DAY_MS, HOUR_MS, iso_utc, new_id, now_ms
from sayso.errors import Conflict, InvalidInput, NotFound
from sayso.wire.people import Preferences
from service.core.auth.groups import check_working_hours
from service.core.store.directory import MOST_ABSENCES, Absence, DutyStore, Group, absent_delegate, find_absence
from service.core.store.people import People

_MOST_SPANS = 30


def is_quiet(preferences: Preferences, now_ms: int) -> bool:
    """Return whether quiet hours cover this moment, or it is outside the working hours."""
    return next_open_ms(preferences, now_ms) > now_ms


def next_open_ms(preferences: Preferences, now_ms: int) -> int:
    """Return the first moment from `now_ms` on within the working hours and no quiet hours, or when to search again."""
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


DAILY_AT = time(9)  # the local time of a daily digest


class Hold(NamedTuple):
    """A card waits until a moment, for a reason. `off_duty` says that the person is outside their working hours."""

    until_ms: int
    reason: str
    off_duty: bool = False


def find_hold(preferences: Preferences, since_ms: int, deadline_at_ms: int, now_ms: int) -> Hold | None:
    """Return how long a card waits, even past its deadline, whose item waits since `since_ms`; None to send it now."""
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


DAYS = 7
SLOTS = 48  # half hours of a day


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
    """Return who of the reviewers or delegates is asked at once, also if off duty when `urgent`, through a week."""
    days = [first + timedelta(days=ahead) for ahead in range(DAYS)]
    starts = (datetime.combine(day, time(slot // 2, slot % 2 * 30), zone) for day in days for slot in range(SLOTS))
    moments = [round(start.timestamp() * 1000) for start in starts]
    free: dict[str, Sequence[bool]] = {}
    known: dict[Preferences, list[bool]] = {}  # the members of a group share their hours
    for name, given in preferences.items():
        hours = Preferences(time_zone=given.time_zone, quiet_hours=given.quiet_hours, working_hours=given.working_hours)
        if hours not in known:
            open_ms, known[hours] = 0, []
            for at_ms in moments:
                if at_ms >= open_ms and not urgent:
                    open_ms = next_open_ms(hours, at_ms)
                known[hours].append(open_ms <= at_ms)
        free[name] = known[hours]
    asked = []
    for place, at_ms in enumerate(moments):
        present = (
            name
            if find_absence(absences, name, at_ms) is None
            else absent_delegate(absences, name, at_ms, active=preferences)
            for name in reviewers
        )
        asked.append(tuple(dict.fromkeys(name for name in present if name is not None and free[name][place])))
    return [Day(day, _merge(asked[place * SLOTS : (place + 1) * SLOTS])) for place, day in enumerate(days)]


def _merge(asked: Sequence[tuple[str, ...]]) -> tuple[Span, ...]:
    spans, first = [], 0
    for people, slots in groupby(asked):
        count = len(list(slots))
        spans.append(Span(first, count, people))
        first += count
    return tuple(spans)


def _write_slot(slot: int) -> str:
    return f"{slot // 2:02}:{slot % 2 * 30:02}"


LONGEST_ABSENCE_MS = 400 * DAY_MS
_KEPT_MS = 90 * DAY_MS  # how long an ended absence stays listed


class Duty:
    """Preferences and absences of one tenant's people."""

    def __init__(self, store: DutyStore, people: People) -> None:
        self._store, self._people = store, people

    async def find_preferences(self, person: str) -> Preferences:
        """Return a person's preferences; raises `NotFound`."""
        await self._check_known(person)
        return await self._store.find_preferences(person)

    async def find_time_zone(self, name: str) -> str:
        """Return the name of a person's time zone, UTC if they chose none or are unknown."""
        return (await self._store.find_preferences(name)).time_zone

    async def save_preferences(self, person: str, preferences: Preferences, by: str) -> Preferences:
        """Replace a person's preferences; raises `NotFound` or `InvalidInput`."""
        await self._check_known(person)
        check_working_hours(preferences.working_hours)
        await self._store.save_preferences(person, preferences)
        return preferences

    async def list_absences(self, person: str | None = None) -> list[Absence]:
        """Return the absences of a person, or of everybody, by start; raises `NotFound`."""
        if person is None:
            return await self._store.list_absences()
        await self._check_known(person)
        return await self._store.absences_of(person)

    async def add_absence(self, person: str, from_ms: int, to_ms: int, delegate: str | None, by: str) -> Absence:
        """Add an absence. Raises `NotFound`, `InvalidInput`, or `Conflict` for one that overlaps another."""
        await self._check_known(person)
        at_ms = now_ms()
        if not from_ms < to_ms or to_ms <= at_ms:
            raise InvalidInput("An absence ends after its start and in the future. Correct the times.")
        if to_ms - from_ms > LONGEST_ABSENCE_MS:
            raise InvalidInput("An absence lasts at most 400 days. Deactivate a reviewer who has left.")
        if delegate == person:
            raise InvalidInput("A person cannot be their own delegate. Name somebody else, or nobody.")
        if delegate is not None and await self._people.find_active(delegate) is None:
            raise InvalidInput(f"No active reviewer is named {delegate}. Name another delegate.")
        made = Absence(id=new_id("abs"), person=person, from_ms=from_ms, to_ms=to_ms, delegate=delegate)

        def add(known: tuple[Absence, ...]) -> tuple[Absence, ...]:
            kept = tuple(absence for absence in known if absence.to_ms > at_ms - _KEPT_MS)
            for absence in kept:
                if absence.from_ms < to_ms and from_ms < absence.to_ms:
                    span = f"{iso_utc(absence.from_ms)} to {iso_utc(absence.to_ms)}"
                    raise Conflict(f"{person} is already absent from {span}. Delete that absence first.")
            if len(kept) >= MOST_ABSENCES:
                raise Conflict(f"{person} has {MOST_ABSENCES} absences already. Delete one first.")
            return (*kept, made)

        await self._store.change_absences(person, add)
        return made

    async def delete_absence(self, person: str, absence_id: str, by: str) -> None:
        """Delete an absence; raises `NotFound`."""

        def delete(known: tuple[Absence, ...]) -> tuple[Absence, ...]:
            kept = tuple(absence for absence in known if absence.id != absence_id)
            if len(kept) == len(known):
                raise NotFound(f"{person} has no absence {absence_id!r}. List the absences to see their ids.")
            return kept

        await self._store.change_absences(person, delete)

    async def _check_known(self, person: str) -> None:
        if await self._people.find_reviewer(person) is None:
            raise NotFound(f"There is no reviewer named {person!r}.")
