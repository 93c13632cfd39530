"""Rules of preferences and absences."""

from sayso.core.clock import DAY_MS, iso_utc, new_id, now_ms
from sayso.errors import Conflict, InvalidInput, NotFound
from service.auth.groups import check_working_hours
from service.store.directory.duty import MOST_ABSENCES, Absence, DutyStore, Preferences
from service.store.people import People

LONGEST_ABSENCE_MS = 400 * DAY_MS
_KEPT_MS = 90 * DAY_MS
"""How long an ended absence stays listed."""


class Duty:
    """Preferences and absences of one tenant's people."""

    def __init__(self, store: DutyStore, people: People) -> None:
        self._store = store
        self._people = people

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
        if delegate is not None:
            await self._check_delegate(person, delegate)
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

    async def _check_delegate(self, person: str, delegate: str) -> None:
        if delegate == person:
            raise InvalidInput("A person cannot be their own delegate. Name somebody else, or nobody.")
        reviewer = await self._people.find_reviewer(delegate)
        if reviewer is None or not reviewer.active:
            raise InvalidInput(f"No active reviewer is named {delegate}. Name another delegate.")

    async def _check_known(self, person: str) -> None:
        if await self._people.find_reviewer(person) is None:
            raise NotFound(f"There is no reviewer named {person!r}.")
