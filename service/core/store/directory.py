"""What is known of people: addresses in channels, groups, working hours, and who decides while one is absent."""

from collections.abc import Callable, Collection, Iterable

from pydantic import ValidationError
from redis.asyncio.client import Pipeline

from sayso.core.calendar import WorkingHours
from sayso.core.canonical_json import digest_json
from sayso.core.records.base import Immutable, Stored
from sayso.core.records.decisions import Limit
from sayso.errors import Conflict, InvalidInput
from sayso.wire.people import Preferences
from service.core.store.connection.connecting import text
from service.core.store.suspensions.reading import name_stored
from service.core.store.tenants import StorePart


class Contact(Stored):
    """A person's address in a channel. `label` is what the channel calls the address."""

    person: str
    channel: str
    address: str
    label: str = ""
    linked_at_ms: int
    made_by: str = ""  # who else set the password of the session that linked it
    made_at_ms: int = 0

    @property
    def id(self) -> str:
        return f"con_{_field(self.channel, self.address)[:32]}"


class CodeOwner(Immutable):
    """The person who may link an address with a code, and who else set the password of their session."""

    person: str
    made_by: str = ""
    made_at_ms: int = 0


class ContactStore(StorePart):
    """The linked addresses and codes of one tenant."""

    async def save_code(self, code_hash: str, owner: CodeOwner, valid_ms: int) -> None:
        await self._redis.set(self._keys.contact_code(code_hash), owner.model_dump_json(), px=valid_ms)

    async def find_code(self, code_hash: str) -> CodeOwner | None:
        return _read_owner(await self._redis.get(self._keys.contact_code(code_hash)))

    async def redeem(self, code_hash: str, contact: Contact) -> None:
        """Delete the code and save its person's address, or neither; raises `InvalidInput`, `Conflict`."""
        code, contacts = self._keys.contact_code(code_hash), self._keys.contacts
        field = _field(contact.channel, contact.address)

        async def write(pipe: Pipeline) -> None:
            owner, raw = _read_owner(await pipe.get(code)), await pipe.hget(contacts, field)
            if owner is None or owner.person != contact.person:
                raise InvalidInput(
                    f"This code is not valid for {contact.channel}. Create a new one on your account page."
                )
            known = self._readings.require_other(Contact, raw, name_stored("contact", raw)) if raw else None
            if known is not None and known.person != contact.person:
                raise Conflict("This address is linked to another person. They must unlink it first.")
            pipe.multi()  # type: ignore[no-untyped-call]
            pipe.delete(code)
            pipe.hset(contacts, field, contact.model_dump_json())
            pipe.sadd(self._keys.contacts_of(contact.person), field)

        await self._redis.transaction(write, code, contacts)

    async def find(self, channel: str, address: str) -> Contact | None:
        raw = await self._redis.hget(self._keys.contacts, _field(channel, address))
        return self._readings.read_other(Contact, raw, name_stored("contact", raw)) if raw else None

    async def list_of(self, person: str) -> list[Contact]:
        fields = await self._redis.smembers(self._keys.contacts_of(person))
        raws = await self._redis.hmget(self._keys.contacts, sorted(map(text, fields))) if fields else []
        read = self._readings.read_others(Contact, ((name_stored("contact", raw), raw) for raw in raws if raw))
        own = (contact for contact in read if contact.person == person)
        return sorted(own, key=lambda contact: (contact.linked_at_ms, contact.id))

    async def delete(self, contact: Contact) -> None:
        field = _field(contact.channel, contact.address)
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.hdel(self._keys.contacts, field)
            pipe.srem(self._keys.contacts_of(contact.person), field)
            await pipe.execute()


def _read_owner(raw: bytes | str | None) -> CodeOwner | None:
    """Return the owner of a stored code; None without one, and for a code of an earlier version."""
    try:
        return CodeOwner.model_validate_json(raw) if raw is not None else None
    except ValidationError:
        return None


def _field(channel: str, address: str) -> str:
    """Return the field of an address: a digest, so that no input becomes part of a key."""
    return digest_json([channel, address])


class Group(Stored):
    """Reviewers under one name, which rules write as `group:<name>`. Admins and editors change the members."""

    name: str
    members: tuple[str, ...] = ()
    editors: tuple[str, ...] = ()
    working_hours: WorkingHours | None = None
    created_at_ms: int


class GroupStore(StorePart):
    """The groups of one tenant."""

    async def find(self, name: str) -> Group | None:
        raw = await self._redis.hget(self._keys.groups, name)
        return self._readings.read_other(Group, raw, f"group {name}") if raw else None

    async def list_all(self) -> list[Group]:
        stored = await self._redis.hgetall(self._keys.groups)
        named = ((f"group {text(name)}", raw) for name, raw in stored.items())
        return sorted(self._readings.read_others(Group, named), key=lambda group: group.name)

    async def change(self, name: str, change: Callable[[Group | None], Group | None]) -> Group | None:
        """Create, change or delete a group atomically, with the index of its members; return it as saved."""
        key = self._keys.groups

        async def write(pipe: Pipeline) -> Group | None:
            raw = await pipe.hget(key, name)
            known = self._readings.require_other(Group, raw, f"group {name}") if raw else None
            changed = change(known)
            before, after = (frozenset(group.members if group is not None else ()) for group in (known, changed))
            pipe.multi()  # type: ignore[no-untyped-call]
            if changed is None:
                pipe.hdel(key, name)
            else:
                pipe.hset(key, name, changed.model_dump_json())
            for member in before - after:
                pipe.srem(self._keys.groups_of(member), name)
            for member in after - before:
                pipe.sadd(self._keys.groups_of(member), name)
            return changed

        saved: Group | None = await self._redis.transaction(write, key, value_from_callable=True)
        return saved


class Role(Stored):
    """A role that an admin made: its permissions, and the items that it decides, all without a limit."""

    name: str
    permissions: tuple[str, ...]
    limit: Limit | None = None
    made_by: str = ""
    made_at_ms: int = 0


class RoleStore(StorePart):
    """The roles that the admins of one tenant made."""

    async def list_all(self) -> list[Role]:
        stored = await self._redis.hgetall(self._keys.roles)
        named = ((f"role {text(name)}", raw) for name, raw in stored.items())
        return sorted(self._readings.read_others(Role, named), key=lambda role: role.name)

    async def save(self, role: Role) -> None:
        await self._redis.hset(self._keys.roles, role.name, role.model_dump_json())

    async def delete(self, name: str) -> None:
        await self._redis.hdel(self._keys.roles, name)


class Emergency(Stored):
    """The emergency rights of one person: since when, until when, for what reason, and who was informed."""

    person: str
    reason: str
    at_ms: int
    until_ms: int
    informed: tuple[str, ...]


class EmergencyStore(StorePart):
    """The emergency rights of one tenant's people."""

    async def list_all(self) -> list[Emergency]:
        """Return those that last and those that have ended since, the earliest first."""
        stored = await self._redis.hgetall(self._keys.emergencies)
        named = ((f"emergency rights of {text(name)}", raw) for name, raw in stored.items())
        return sorted(self._readings.read_others(Emergency, named), key=lambda emergency: emergency.at_ms)

    async def save(self, emergency: Emergency) -> None:
        await self._redis.hset(self._keys.emergencies, emergency.person, emergency.model_dump_json())

    async def delete(self, *people: str) -> None:
        await self._redis.hdel(self._keys.emergencies, *people)


MOST_ABSENCES = 50


class Absence(Immutable):
    """A time in which a person is absent, and who decides for them then."""

    id: str
    person: str
    from_ms: int
    to_ms: int
    delegate: str | None = None

    def covers(self, at_ms: int) -> bool:
        return self.from_ms <= at_ms < self.to_ms


class _Absences(Stored):
    absences: tuple[Absence, ...] = ()


class DutyStore(StorePart):
    """The preferences and absences of one tenant's people."""

    async def find_preferences(self, name: str) -> Preferences:
        raw = await self._redis.hget(self._keys.preferences, name)
        read = self._readings.read_other(Preferences, raw, f"preferences of {name}") if raw else None
        return read or Preferences()

    async def save_preferences(self, name: str, preferences: Preferences) -> None:
        """Overwrite a person's preferences; raises `Unreadable` for those of a later version."""
        raw = await self._redis.hget(self._keys.preferences, name)
        if raw:
            self._readings.require_other(Preferences, raw, f"preferences of {name}")
        await self._redis.hset(self._keys.preferences, name, preferences.model_dump_json())

    async def list_absences(self) -> list[Absence]:
        stored = await self._redis.hgetall(self._keys.absences)
        absences = [absence for name, raw in stored.items() for absence in self._read(text(name), raw)]
        return sorted(absences, key=lambda absence: (absence.from_ms, absence.person))

    async def absences_of(self, name: str) -> list[Absence]:
        raw = await self._redis.hget(self._keys.absences, name)
        return list(self._read(name, raw)) if raw else []

    def _read(self, name: str, raw: bytes | str) -> tuple[Absence, ...]:
        """Return a person's absences; none that this version cannot read, so that nobody decides for them."""
        read = self._readings.read_other(_Absences, raw, f"absences of {name}")
        return read.absences if read is not None else ()

    async def change_absences(
        self, name: str, change: Callable[[tuple[Absence, ...]], tuple[Absence, ...]]
    ) -> tuple[Absence, ...]:
        key = self._keys.absences

        async def write(pipe: Pipeline) -> tuple[Absence, ...]:
            raw = await pipe.hget(key, name)
            known = self._readings.require_other(_Absences, raw, f"absences of {name}").absences if raw else ()
            changed = tuple(sorted(change(known), key=lambda absence: absence.from_ms))
            pipe.multi()  # type: ignore[no-untyped-call]
            pipe.hset(key, name, _Absences(absences=changed).model_dump_json())
            return changed

        changed: tuple[Absence, ...] = await self._redis.transaction(write, key, value_from_callable=True)
        return changed


def find_absence(absences: Iterable[Absence], person: str, at_ms: int) -> Absence | None:
    """Return the absence of a person at a time, or None."""
    return next((absence for absence in absences if absence.person == person and absence.covers(at_ms)), None)


def find_chain(
    absences: Collection[Absence], person: str, at_ms: int, active: Collection[str] | None = None
) -> tuple[str, ...]:
    """Return an absent person's delegates in turn, up to the first who is present; none if nobody `active` is."""
    chain: list[str] = []
    current = find_absence(absences, person, at_ms)
    while current is not None:
        delegate = current.delegate
        if delegate is None or delegate in (person, *chain) or (active is not None and delegate not in active):
            return ()
        chain.append(delegate)
        current = find_absence(absences, delegate, at_ms)
    return tuple(chain)


def absent_delegate(
    absences: Collection[Absence], person: str, at_ms: int, requester: str = "", active: Collection[str] | None = None
) -> str | None:
    """Return who decides for an absent person: the last of the chain, or None, as where the requester is in it."""
    chain = find_chain(absences, person, at_ms, active)
    return chain[-1] if chain and requester not in chain else None


def list_represented(
    absences: Collection[Absence], person: str, at_ms: int, requester: str = "", active: Collection[str] | None = None
) -> list[str]:
    """Return the absent people for whom this person decides at a time, sorted."""
    absent = {absence.person for absence in absences if absence.covers(at_ms)}
    return sorted(name for name in absent if absent_delegate(absences, name, at_ms, requester, active) == person)
