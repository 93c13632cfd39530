"""Links between people and their addresses in channels, made with one-time codes."""

import re
from dataclasses import dataclass
from hmac import digest

from sayso.core.clock import new_code, now_ms
from sayso.errors import InvalidInput, NotFound
from service.core.auth.reviewers import NOBODY
from service.core.store.activity import ActivityLog
from service.core.store.attempts import Allowance, Attempts
from service.core.store.directory import CodeOwner, Contact, ContactStore
from service.core.store.people import Made, People

CODE_ALPHABET = "ABCDEFGHJKMNPQRSTVWXYZ23456789"  # letters and digits that cannot be mistaken for each other
CODE_CHARS = 8
CODE_VALID_MS = 600_000
LONGEST_ADDRESS = 320
LONGEST_LABEL = 200

CODES = Allowance("contact-codes", most=20, window_s=600)
BY_ADDRESS = Allowance("contact-address", most=5, window_s=600)
BY_CHANNEL = Allowance("contact-channel", most=500, window_s=600)
"""Codes that one person creates, and attempts to redeem one from one address and over a whole channel.

With 30^8 codes, 500 attempts guess one of a hundred valid codes with a chance below one in ten million.
"""

_CHANNEL = re.compile(r"[a-z0-9-]{1,40}")


@dataclass(frozen=True)
class ContactCode:
    """A code that links one address of a channel to its creator."""

    code: str
    channel: str
    expires_at_ms: int


class Contacts:
    """The linked addresses of one tenant's people."""

    def __init__(
        self, tenant: str, store: ContactStore, people: People, attempts: Attempts, activity: ActivityLog
    ) -> None:
        self._tenant, self._store, self._people, self._attempts = tenant, store, people, attempts
        self.activity, self._code_key = activity, b""
        self.find, self.list_of = store.find, store.list_of

    def use_code_key(self, key: bytes) -> None:
        """Store codes as HMACs under a key that is not in the store, so that a copy of it reveals none."""
        self._code_key = key

    def hash_code(self, channel: str, code: str) -> str:
        """Return the stored HMAC of a code, which counts for one channel and in any case and spacing."""
        plain = re.sub(r"[\s-]", "", code).upper()
        return digest(self._code_key, f"{channel} {plain}".encode(), "sha256").hex()

    def derive_token(self, *facts: str) -> str:
        """Return a token of these facts that only a process with the channels file can make."""
        return digest(self._code_key, "\n".join(("token", *facts)).encode(), "sha256").hex()

    async def create_code(self, person: str, channel: str, made: Made = NOBODY) -> ContactCode:
        """Return a new code for one address of the person; raises `InvalidInput` or `TooManyRequests`."""
        _check_channel(channel)
        await self._attempts.count(CODES, f"{self._tenant} {person}")
        code = new_code(CODE_ALPHABET, CODE_CHARS)
        at_ms = now_ms()
        owner = CodeOwner(person=person, made_by=made.by, made_at_ms=made.at_ms)
        await self._store.save_code(self.hash_code(channel, code), owner, CODE_VALID_MS)
        return ContactCode(code, channel, at_ms + CODE_VALID_MS)

    async def redeem_code(self, channel: str, code: str, address: str, label: str = "") -> Contact:
        """Link an address to the creator of the code; raises `InvalidInput`, `Conflict`, `TooManyRequests`."""
        _check_channel(channel)
        if not address or len(address) > LONGEST_ADDRESS:
            raise InvalidInput(f"An address has 1 to {LONGEST_ADDRESS} characters, not {len(address)}.")
        await self._attempts.count(BY_CHANNEL, f"{self._tenant} {channel}")
        await self._attempts.count(BY_ADDRESS, f"{self._tenant} {channel} {address}")
        code_hash = self.hash_code(channel, code)
        owner = await self._store.find_code(code_hash) or CodeOwner(person="")
        person = owner.person
        if person and await self._people.find_active(person) is None:
            raise InvalidInput(f"The reviewer {person} is deactivated. Ask an admin.")
        contact = Contact(
            person=person,
            channel=channel,
            address=address,
            label=label[:LONGEST_LABEL],
            linked_at_ms=now_ms(),
            made_by=owner.made_by,
            made_at_ms=owner.made_at_ms,
        )
        await self._store.redeem(code_hash, contact)
        await self._attempts.forget(BY_ADDRESS, f"{self._tenant} {channel} {address}")
        await self.activity.record("contact_linked", person, door=channel, target=contact.id, label=contact.label)
        return contact

    async def find_made(self, channel: str, address: str) -> Made:
        """Return who else made the credential that linked this address."""
        contact = await self.find(channel, address)
        return Made(contact.made_by, contact.made_at_ms) if contact is not None else NOBODY

    async def find_person(self, channel: str, address: str) -> str | None:
        contact = await self.find(channel, address)
        reviewer = await self._people.find_active(contact.person) if contact is not None else None
        return reviewer.name if reviewer is not None else None

    async def addresses_of(self, person: str, channel: str) -> list[str]:
        """Return a person's addresses in a channel, the oldest first; none for a deactivated person."""
        if await self._people.find_active(person) is None:
            return []
        return [contact.address for contact in await self._store.list_of(person) if contact.channel == channel]

    async def unlink(self, person: str, contact_id: str, by: str) -> None:
        """Unlink one address of a person; raises `NotFound`."""
        for contact in await self._store.list_of(person):
            if contact.id == contact_id:
                await self._store.delete(contact)
                return
        raise NotFound(f"{person} has no contact {contact_id!r}. List the contacts to see their ids.")


def _check_channel(channel: str) -> None:
    if not _CHANNEL.fullmatch(channel):
        raise InvalidInput("A channel's name is 1 to 40 of a-z, 0-9 and '-'.")
