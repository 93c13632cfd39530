"""Addresses of people in channels, and the one-time codes that link them."""

from pydantic import BaseModel, ConfigDict, ValidationError
from redis.asyncio.client import Pipeline

from sayso.core.canonical_json import digest_json
from sayso.errors import Conflict, InvalidInput
from service.store.connection.connecting import text, translated
from service.store.suspensions.reading import name_stored
from service.store.tenants import TenantStore


class Contact(BaseModel):
    """A person's address in a channel. `label` is what the channel calls the address."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    person: str
    channel: str
    address: str
    label: str = ""
    linked_at_ms: int
    made_by: str = ""  # who else set the password of the session that linked it
    made_at_ms: int = 0

    @property
    def id(self) -> str:
        """The public id, made from channel and address."""
        return f"con_{_field(self.channel, self.address)[:32]}"


class CodeOwner(BaseModel):
    """The person who may link an address with a code, and who else set the password of their session."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    person: str
    made_by: str = ""
    made_at_ms: int = 0


class ContactStore:
    """The linked addresses and codes of one tenant."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys, self._readings = store.redis, store.keys, store.readings

    async def save_code(self, code_hash: str, owner: CodeOwner, valid_ms: int) -> None:
        """Save the hash of a code, which becomes invalid after `valid_ms`."""
        async with translated():
            await self._redis.set(self._keys.contact_code(code_hash), owner.model_dump_json(), px=valid_ms)

    async def find_code(self, code_hash: str) -> CodeOwner | None:
        """Return the owner of a valid code, or None."""
        async with translated():
            raw = await self._redis.get(self._keys.contact_code(code_hash))
        return _read_owner(raw)

    async def redeem(self, code_hash: str, contact: Contact) -> None:
        """Delete the code and save its person's address, atomically.

        Raises `InvalidInput` for an invalid code, and `Conflict` for an address of another person; the code then stays
        valid.
        """
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

        async with translated():
            await self._redis.transaction(write, code, contacts)

    async def find(self, channel: str, address: str) -> Contact | None:
        """Return the contact with this address, or None."""
        async with translated():
            raw = await self._redis.hget(self._keys.contacts, _field(channel, address))
        return self._readings.read_other(Contact, raw, name_stored("contact", raw)) if raw else None

    async def list_of(self, person: str) -> list[Contact]:
        """Return a person's contacts, the oldest first."""
        async with translated():
            fields = await self._redis.smembers(self._keys.contacts_of(person))
            raws = await self._redis.hmget(self._keys.contacts, sorted(map(text, fields))) if fields else []
        read = [self._readings.read_other(Contact, raw, name_stored("contact", raw)) for raw in raws if raw]
        return sorted(
            (contact for contact in read if contact is not None and contact.person == person),
            key=lambda contact: (contact.linked_at_ms, contact.id),
        )

    async def delete(self, contact: Contact) -> None:
        """Unlink an address."""
        field = _field(contact.channel, contact.address)
        async with translated(), self._redis.pipeline(transaction=True) as pipe:
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
