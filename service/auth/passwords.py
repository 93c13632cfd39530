"""Password hashes with argon2."""

import asyncio

from pwdlib import PasswordHash

from sayso.clock import new_secret
from sayso.errors import InvalidInput
from service.settings import LONGEST_PASSWORD, SHORTEST_PASSWORD

_HASHER = PasswordHash.recommended()
_AT_ONCE = 2  # one verification takes 64 MiB and half a second; more at once would exhaust the machine


class Passwords:
    """Hash and verify passwords in threads, a few at a time."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._decoy: str | None = None

    async def hash(self, password: str) -> str:
        """Return the hash; raises `InvalidInput` for a password that is too short or too long."""
        if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
            raise InvalidInput(f"A password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters. Choose another.")
        async with self._slots:
            return await asyncio.to_thread(_HASHER.hash, password)

    async def verify(self, password: str, expected: str | None) -> bool:
        """Return whether the hash fits; None takes as long and fails, so sign-ins do not reveal which names exist."""
        if expected is None:
            self._decoy = self._decoy or await self.hash(new_secret())
        async with self._slots:
            fits = await asyncio.to_thread(_HASHER.verify, password[:LONGEST_PASSWORD], expected or str(self._decoy))
        return fits and expected is not None
