"""Password hashes with argon2."""

import asyncio

from pwdlib import PasswordHash

from sayso.core.clock import new_secret
from sayso.errors import InvalidInput
from service.core.settings import LONGEST_PASSWORD, SHORTEST_PASSWORD

_HASHER = PasswordHash.recommended()
_AT_ONCE = 2  # one verification takes 64 MiB and half a second; more at once would exhaust the machine


_OBVIOUS = frozenset(
    (
        *("password", "passwort", "passw0rd", "p@ssword", "sayso", "admin", "administrator", "root", "secret"),
        *("changeme", "letmein", "welcome", "default", "iloveyou", "qwerty", "qwertz", "qwertyuiop", "qwertzuiop"),
        *("asdfghjkl", "abcdefgh", "abcd", "1q2w3e4r", "trustno1", "football", "baseball", "sunshine", "princess"),
        *("superman", "correcthorsebatterystaple", "reviewer", "approve"),
    )
)
_DIGITS = "01234567890123456789"


def is_obvious(password: str, name: str = "") -> bool:
    """Return whether a password is one of the first that are guessed: its case, repetitions and ends do not count."""
    plain = "".join(password.casefold().split())
    core = plain.strip("0123456789!.?*_-#$") or plain
    words = {*_OBVIOUS, name.casefold(), name.casefold().partition("@")[0]} - {""}
    if plain in _DIGITS or plain in _DIGITS[::-1] or len({*plain}) <= 2:
        return True
    return any(text == word * (len(text) // len(word)) for text in (plain, core) for word in words)


class Passwords:
    """Hash and verify passwords in threads, a few at a time."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._decoy: str | None = None

    async def hash(self, password: str, name: str = "") -> str:
        """Return the hash; raises `InvalidInput` for a password that is too short, too long or easily guessed."""
        if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
            raise InvalidInput(f"A password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters. Choose another.")
        if is_obvious(password, name):
            raise InvalidInput("This password is among the first that anybody guesses. Choose a longer sentence.")
        async with self._slots:
            return await asyncio.to_thread(_HASHER.hash, password)

    async def verify(self, password: str, expected: str | None) -> bool:
        """Return whether the hash fits; none takes as long and fails, so sign-ins do not reveal which names exist."""
        if not expected:
            self._decoy = self._decoy or await self.hash(new_secret())
        async with self._slots:
            fits = await asyncio.to_thread(_HASHER.verify, password[:LONGEST_PASSWORD], expected or str(self._decoy))
        return fits and bool(expected)
