"""When people work and want to be disturbed, and who decides for them while they are absent."""

from collections.abc import Callable
from functools import cache
from typing import Literal, Self
from zoneinfo import available_timezones

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from redis.asyncio.client import Pipeline

from service.store.connection.connecting import text, translated
from service.store.tenants import TenantStore

Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: tuple[Weekday, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

TIME_PATTERN = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"
MOST_ABSENCES = 50


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Hours(_Frozen):
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


class WorkingHours(_Frozen):
    """The working hours of a person or group, except on the public holidays of a country."""

    time_zone: str = Field(default="UTC", max_length=64, examples=["Europe/Berlin"])
    hours: Hours = Hours(start="09:00", end="17:00", weekdays=WEEKDAYS[:5])
    country: str = Field(default="", max_length=2, description="ISO 3166 code; empty for no holidays.", examples=["DE"])
    subdivision: str = Field(default="", max_length=10, description="A part of the country.", examples=["BY"])

    @field_validator("time_zone")
    @classmethod
    def _check_time_zone(cls, name: str) -> str:
        return check_time_zone(name)


class Preferences(_Frozen):
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


class Absence(_Frozen):
    """A time in which a person is absent, and who decides for them then."""

    id: str
    person: str
    from_ms: int
    to_ms: int
    delegate: str | None = None

    def covers(self, at_ms: int) -> bool:
        """Return whether the person is absent at this time."""
        return self.from_ms <= at_ms < self.to_ms


class _Absences(_Frozen):
    absences: tuple[Absence, ...] = ()


class DutyStore:
    """The preferences and absences of one tenant's people."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys

    async def find_preferences(self, name: str) -> Preferences:
        """Return a person's preferences, or the defaults."""
        async with translated():
            raw = await self._redis.hget(self._keys.preferences, name)
        return Preferences.model_validate_json(raw) if raw else Preferences()

    async def save_preferences(self, name: str, preferences: Preferences) -> None:
        """Overwrite a person's preferences."""
        async with translated():
            await self._redis.hset(self._keys.preferences, name, preferences.model_dump_json())

    async def list_absences(self) -> list[Absence]:
        """Return the absences of everybody, by start."""
        async with translated():
            found = await self._redis.hvals(self._keys.absences)
        return sorted((one for raw in found for one in _parse(raw)), key=lambda one: (one.from_ms, one.person))

    async def absences_of(self, name: str) -> list[Absence]:
        """Return a person's absences, by start."""
        async with translated():
            raw = await self._redis.hget(self._keys.absences, name)
        return list(_parse(raw))

    async def change_absences(
        self, name: str, change: Callable[[tuple[Absence, ...]], tuple[Absence, ...]]
    ) -> tuple[Absence, ...]:
        """Change a person's absences atomically and return them."""
        key = self._keys.absences

        async def write(pipe: Pipeline) -> tuple[Absence, ...]:
            changed = tuple(sorted(change(_parse(await pipe.hget(key, name))), key=lambda one: one.from_ms))
            pipe.multi()  # type: ignore[no-untyped-call]
            pipe.hset(key, name, _Absences(absences=changed).model_dump_json())
            return changed

        async with translated():
            changed: tuple[Absence, ...] = await self._redis.transaction(write, key, value_from_callable=True)
        return changed


def check_time_zone(name: str) -> str:
    """Return the name of a time zone; raises `ValueError` for an unknown one."""
    if name not in _list_time_zones():
        raise ValueError(f"there is no time zone {name[:64]!r}; use a name such as Europe/Berlin or UTC")
    return name


def _parse(raw: bytes | str | None) -> tuple[Absence, ...]:
    return _Absences.model_validate_json(text(raw)).absences if raw else ()


@cache
def _list_time_zones() -> frozenset[str]:
    """Return all names, without the machine's own; cached because it reads a file for each."""
    return frozenset(available_timezones() - {"localtime"})
