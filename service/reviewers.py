"""Let people in: names, passwords, sessions, roles.

Passwords are hashed with argon2 in a thread, for it takes half a second on purpose. An unknown name costs the same
work as a wrong password, so that nobody learns which names exist.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from pwdlib import PasswordHash

from sayso.clock import new_secret, now_ms
from sayso.decisions import OUR_NAMES
from sayso.errors import Conflict, InvalidInput, NotAllowed, NotAuthenticated, NotFound
from service.settings import LONGEST_PASSWORD, SHORTEST_PASSWORD
from service.store.attempts import Allowance, Attempts
from service.store.people import People, Reviewer, Session

ROLES = ("reviewer", "admin")
BY_NAME = Allowance("sign-in-name", most=10, window_s=300)
BY_ADDRESS = Allowance("sign-in-address", most=100, window_s=300)
"""How often anybody may try to sign in. The right password sets the count of its name back."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}")
_HASHER = PasswordHash.recommended()
_AT_ONCE = 2
"""Each verification takes 64 MiB; more at once would starve the machine, not speed anybody up."""


@dataclass(frozen=True)
class SignIn:
    """A fresh session, with the only copy of its token."""

    token: str
    session: Session


def refuse_our_names(name: str) -> None:
    """Raise `InvalidInput` for a name under which Sayso itself decides."""
    if name.casefold() in OUR_NAMES:
        raise InvalidInput(
            f"In the trail {name} is the name under which Sayso itself acts, and nobody may be taken for it. "
            "Choose another name."
        )


class Reviewers:
    """Who may decide, and proof that it is they."""

    def __init__(self, people: People, attempts: Attempts, *, idle_s: int, max_s: int) -> None:
        self._people = people
        self._attempts = attempts
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._idle_ms = idle_s * 1000
        self._max_ms = max_s * 1000
        self._decoy: str | None = None

    async def add(self, tenant: str, name: str, password: str, roles: tuple[str, ...]) -> Reviewer:
        """Make a new reviewer; raises `InvalidInput` for a bad name, password or role, `Conflict` for a taken name."""
        if not _NAME.fullmatch(name):
            raise InvalidInput(
                "A name is 1 to 64 of a-z, 0-9, '.', '_', '@' and '-', beginning with a letter or digit."
            )
        refuse_our_names(name)
        if not roles or any(role not in ROLES for role in roles):
            raise InvalidInput(f"Roles are {' and '.join(ROLES)}; give at least one of them.")
        reviewer = Reviewer(name=name, password_hash=await self._hash(password), roles=roles, created_at_ms=now_ms())
        if not await self._people.add_reviewer(tenant, reviewer):
            raise Conflict(f"There is already a reviewer named {name}. Choose another name.")
        return reviewer

    async def set_password(self, tenant: str, name: str, password: str) -> None:
        """Give a reviewer a new password, which ends the sessions opened with the old one; raises `NotFound`."""
        await self._known(tenant, name)
        hashed = await self._hash(password)
        await self._change(tenant, name, lambda: {"password_hash": hashed, "password_set_at_ms": now_ms()})

    async def has_password(self, tenant: str, name: str, password: str) -> bool:
        """Tell whether the reviewer of that name has this password; raises `NotFound`."""
        return await self._verify(password, (await self._known(tenant, name)).password_hash)

    async def deactivate(self, tenant: str, name: str) -> Reviewer:
        """Shut a reviewer out, the sessions already open included; raises `NotFound`."""
        return await self._change(tenant, name, lambda: {"active": False})

    async def find(self, tenant: str, name: str) -> Reviewer | None:
        """Return the reviewer of that name, or None."""
        return await self._people.find_reviewer(tenant, name)

    async def list_all(self, tenant: str) -> list[Reviewer]:
        """Return every reviewer by name."""
        return await self._people.list_reviewers(tenant)

    async def sign_in(self, tenant: str, name: str, password: str, address: str | None = None) -> SignIn:
        """Open a session for the right name and password; raises `NotAuthenticated` for anything else.

        Raises `TooManyRequests`, whatever the password, when this name or this client's address was tried too often.
        """
        if address is not None:
            await self._attempts.count(BY_ADDRESS, address)
        await self._attempts.count(BY_NAME, f"{tenant} {name}")
        began_at_ms = now_ms()  # before the look: a password that is set during it ends this session too
        reviewer = await self._people.find_reviewer(tenant, name)
        expected = reviewer.password_hash if reviewer else await self._decoy_hash()
        fits = await self._verify(password, expected)
        if reviewer is None or not fits or not reviewer.active:
            raise NotAuthenticated("That name and password do not go together. Check both and try again.")
        await self._attempts.forget(BY_NAME, f"{tenant} {name}")
        token = new_secret()
        session = Session(tenant=tenant, name=name, roles=reviewer.roles, csrf=new_secret(), created_at_ms=began_at_ms)
        await self._people.open_session(hash_token(token), session, self._idle_ms)
        return SignIn(token, session)

    async def resume_session(self, token: str, *, in_use: bool = True) -> Session | None:
        """Return the session behind a token while it holds and its person is active, else None.

        What a page does by itself is no use: its session grows idle all the same.
        """
        session = await self._people.use_session(hash_token(token), self._idle_ms if in_use else None)
        if session is None:
            return None
        reviewer = await self._people.find_reviewer(session.tenant, session.name)
        over = now_ms() - session.created_at_ms > self._max_ms
        if reviewer is None or not reviewer.active or over or session.created_at_ms < reviewer.password_set_at_ms:
            await self.sign_out(token)
            return None
        return session.model_copy(update={"roles": reviewer.roles})

    async def sign_out(self, token: str) -> None:
        """Close the session."""
        await self._people.close_session(hash_token(token))

    async def _known(self, tenant: str, name: str) -> Reviewer:
        return _found(await self._people.find_reviewer(tenant, name), name)

    async def _change(self, tenant: str, name: str, update: Callable[[], Mapping[str, object]]) -> Reviewer:
        """Change that alone: what somebody else changes of the same person meanwhile stands."""

        def change(reviewer: Reviewer) -> Reviewer:
            return reviewer.model_copy(update=update())

        return _found(await self._people.change_reviewer(tenant, name, change), name)

    async def _hash(self, password: str) -> str:
        if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
            raise InvalidInput(f"A password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters. Choose another.")
        async with self._slots:
            return await asyncio.to_thread(_HASHER.hash, password)

    async def _verify(self, password: str, expected: str) -> bool:
        async with self._slots:
            return await asyncio.to_thread(_HASHER.verify, password[:LONGEST_PASSWORD], expected)

    async def _decoy_hash(self) -> str:
        if self._decoy is None:
            self._decoy = await self._hash(new_secret())
        return self._decoy


def _found(reviewer: Reviewer | None, name: str) -> Reviewer:
    if reviewer is None:
        raise NotFound(f"There is no reviewer named {name!r}.")
    return reviewer


def hash_token(token: str) -> str:
    """Return what is stored of a token or key: 256 random bits need no slow hash."""
    return sha256(token.encode()).hexdigest()


def require_role(roles: tuple[str, ...], role: str) -> None:
    """Raise `NotAllowed` unless `role` is among the roles."""
    if role not in roles:
        raise NotAllowed(f"This takes the role {role}; ask an admin for it.", role=role)
