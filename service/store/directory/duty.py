"""When people work and want to be disturbed, and who decides for them while they are absent."""

from collections.abc import Callable
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator
from redis.asyncio.client import Pipeline

from sayso.core.calendar import Frozen, Hours, WorkingHours, check_time_zone
from service.store.connection.connecting import text, translated
from service.store.tenants import TenantStore

MOST_ABSENCES = 50


class Preferences(Frozen):
    """How a person is notified."""

    time_zone: str = Field(default="UTC", max_length=64, examples=["Europe/Berlin"])
    quiet_hours: Hours | None = Field(default=None, description="When only urgent items interrupt.")
    working_hours: WorkingHours | None = Field(default=None, description="Replaces the hours of the person's groups.")
    digest: Literal["off", "hourly", "daily"] = "off"
    cap_per_hour: int | None = Field(default=None, ge=1, le=1000, description="Most interruptions an hour.")
    language: str = Field(default="en", pattern=r"^[a-z]{2,3}(-[A-Z]{2})?$", examples=["en"])

    @field_validator("time_zone")
    @classmethod
    def _check_time_zone(cls, name: str) -> str:
        return check_time_zone(name)

    @model_validator(mode="after")
    def _check_quiet_hours(self) -> Self:
        if self.quiet_hours is not None and self.quiet_hours.is_always:
            raise ValueError("quiet hours over the whole week leave no time to notify; omit a weekday, or shorten them")
        return self


class Absence(Frozen):
    """A time in which a person is absent, and who decides for them then."""

    id: str
    person: str
    from_ms: int
    to_ms: int
    delegate: str | None = None

    def covers(self, at_ms: int) -> bool:
        """Return whether the person is absent at this time."""
        return self.from_ms <= at_ms < self.to_ms


class _Absences(Frozen):
    absences: tuple[Absence, ...] = ()


class DutyStore:
    """The preferences and absences of one tenant's people."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys, self._readings = store.redis, store.keys, store.readings

    async def find_preferences(self, name: str) -> Preferences:
        """Return a person's preferences, or the defaults."""
        async with translated():
            raw = await self._redis.hget(self._keys.preferences, name)
        read = self._readings.read_other(Preferences, raw, f"preferences of {name}") if raw else None
        return read or Preferences()

    async def save_preferences(self, name: str, preferences: Preferences) -> None:
        """Overwrite a person's preferences; raises `Unreadable` for those of a later version."""
        async with translated():
            raw = await self._redis.hget(self._keys.preferences, name)
            if raw:
                self._readings.require_other(Preferences, raw, f"preferences of {name}")
            await self._redis.hset(self._keys.preferences, name, preferences.model_dump_json())

    async def list_absences(self) -> list[Absence]:
        """Return the absences of everybody, by start."""
        async with translated():
            stored = await self._redis.hgetall(self._keys.absences)
        absences = [absence for name, raw in stored.items() for absence in self._read(text(name), raw)]
        return sorted(absences, key=lambda absence: (absence.from_ms, absence.person))

    async def absences_of(self, name: str) -> list[Absence]:
        """Return a person's absences, by start."""
        async with translated():
            raw = await self._redis.hget(self._keys.absences, name)
        return list(self._read(name, raw)) if raw else []

    def _read(self, name: str, raw: bytes | str) -> tuple[Absence, ...]:
        """Return a person's absences; none that this version cannot read, so that nobody decides for them."""
        read = self._readings.read_other(_Absences, raw, f"absences of {name}")
        return read.absences if read is not None else ()

    async def change_absences(
        self, name: str, change: Callable[[tuple[Absence, ...]], tuple[Absence, ...]]
    ) -> tuple[Absence, ...]:
        """Change a person's absences atomically and return them."""
        key = self._keys.absences

        async def write(pipe: Pipeline) -> tuple[Absence, ...]:
            raw = await pipe.hget(key, name)
            known = self._readings.require_other(_Absences, raw, f"absences of {name}").absences if raw else ()
            changed = tuple(sorted(change(known), key=lambda absence: absence.from_ms))
            pipe.multi()  # type: ignore[no-untyped-call]
            pipe.hset(key, name, _Absences(absences=changed).model_dump_json())
            return changed

        async with translated():
            changed: tuple[Absence, ...] = await self._redis.transaction(write, key, value_from_callable=True)
        return changed
