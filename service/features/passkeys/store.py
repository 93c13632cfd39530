"""Passkeys of people, and challenges that were not answered yet."""

from collections.abc import Callable
from typing import Literal

from redis.asyncio.client import Pipeline

from sayso.core.records.base import Immutable, Stored
from service.core.store.connection.connecting import texts
from service.core.store.suspensions.reading import try_read
from service.core.store.tenants import StorePart

ANSWERED_WITHIN_MS = 300_000  # how long a challenge can be answered, once
Purpose = Literal["add", "sign-in", "decide"]


class Passkey(Stored):
    """A passkey of one person; `public_key` is a COSE key, and `handle` what authenticators name the person by.

    `counter` is the last counter of its signatures. `made_by` set the password of the session that added it.
    """

    id: str
    person: str
    name: str
    handle: str
    public_key: str
    counter: int
    created_at_ms: int
    used_at_ms: int = 0
    made_by: str = ""
    made_at_ms: int = 0


class Challenge(Immutable):
    """What a challenge is for; `browser` is the hash of a secret of the browser, and `handle` that of a new passkey.

    The challenge of a decision is of a `person`, at the desk of this host and origin.
    """

    purpose: Purpose
    browser: str = ""
    handle: str = ""
    person: str = ""
    host: str = ""
    origin: str = ""


class Passkeys(StorePart):
    """The passkeys of one tenant's people."""

    async def save_challenge(self, challenge_hash: str, challenge: Challenge) -> None:
        key = self._keys.passkey_challenge(challenge_hash)
        await self._redis.set(key, challenge.model_dump_json(), px=ANSWERED_WITHIN_MS)

    async def take_challenge(self, challenge_hash: str) -> Challenge | None:
        """Return a challenge and delete it; None for an unknown one."""
        raw = await self._redis.getdel(self._keys.passkey_challenge(challenge_hash))
        return try_read(Challenge, raw) if raw is not None else None

    async def add(self, passkey: Passkey) -> bool:
        """Save a new passkey; return False, and save nothing, if its id is taken."""
        if not await self._redis.set(self._keys.passkey(passkey.id), passkey.model_dump_json(), nx=True):
            return False
        await self._redis.sadd(self._keys.passkeys_of(passkey.person), passkey.id)
        return True

    async def find(self, passkey_id: str) -> Passkey | None:
        raw = await self._redis.get(self._keys.passkey(passkey_id))
        return try_read(Passkey, raw) if raw is not None else None

    async def list_of(self, person: str) -> list[Passkey]:
        """Return a person's passkeys, the oldest first."""
        ids = texts(await self._redis.smembers(self._keys.passkeys_of(person)))
        passkeys = [passkey for passkey_id in ids if (passkey := await self.find(passkey_id)) is not None]
        return sorted(passkeys, key=lambda passkey: (passkey.created_at_ms, passkey.id))

    async def change(self, passkey_id: str, change: Callable[[Passkey], Passkey]) -> Passkey | None:
        """Change a passkey atomically and return it; None for an unknown one."""
        key = self._keys.passkey(passkey_id)

        async def write(pipe: Pipeline) -> Passkey | None:
            raw = await pipe.get(key)
            known = try_read(Passkey, raw) if raw is not None else None
            pipe.multi()  # type: ignore[no-untyped-call]
            if known is None:
                return None
            changed = change(known)
            pipe.set(key, changed.model_dump_json())
            return changed

        changed: Passkey | None = await self._redis.transaction(write, key, value_from_callable=True)
        return changed

    async def delete(self, passkey: Passkey) -> None:
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.delete(self._keys.passkey(passkey.id))
            pipe.srem(self._keys.passkeys_of(passkey.person), passkey.id)
            await pipe.execute()
