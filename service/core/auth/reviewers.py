"""Reviewers of one tenant: names, passwords, roles and sessions."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from sayso.core.clock import new_secret, now_ms
from sayso.core.records.decisions import OUR_NAMES, OUR_PREFIXES, Actor, ActorKind, Delegate, Represented
from sayso.errors import CodeRequired, Conflict, InvalidInput, NotAllowed, NotAuthenticated, NotFound
from service.core.auth.codes import Codes
from service.core.auth.passwords import Passwords
from service.core.auth.roles import ADMIN, NO_RIGHTS, Rights, Roles
from service.core.cache import Cache
from service.core.settings import Settings
from service.core.settings.limits import network_of
from service.core.store.attempts import Allowance, Attempts
from service.core.store.connection.sealing import Sealer
from service.core.store.directory import Absence, find_chain, list_represented
from service.core.store.people import PERSON, Made, OpenSession, PasswordGiven, People, Reviewer, Session, Tokens

BY_PAIR = Allowance("sign-in-pair", most=10, window_s=60)
BY_ADDRESS = Allowance("sign-in-address", most=100, window_s=300)
"""Sign-in attempts from one address for one name, and for all names. The right password resets the pair's count.

A limit per name alone would let strangers lock a reviewer out.
"""

NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}")
NAME_RULE = "A name is 1 to 64 of a-z, 0-9, '.', '_', '@' and '-', beginning with a letter or digit."


@dataclass(frozen=True)
class SignIn:
    """A fresh session, with the only copy of its token."""

    token: str
    session: Session
    password_by: str = ""  # who else set the password; the person changes it first


@dataclass(frozen=True)
class Origin:
    """The client's address and its description of itself."""

    address: str = ""
    client: str = ""


NOWHERE = Origin()
NOBODY = Made()


class Holder(NamedTuple):
    """An active person, their groups, and the absent people for whom they decide."""

    person: Reviewer
    groups: tuple[str, ...]
    represents: tuple[Represented, ...]
    rights: Rights


def refuse_our_names(name: str) -> None:
    """Raise `InvalidInput` for a name that is reserved for Sayso's own actions."""
    plain = name.casefold()
    if plain.startswith(OUR_PREFIXES):
        raise InvalidInput(
            f"Names that begin with {plain.partition(':')[0][:9]} are reserved for Sayso. Choose another name."
        )
    if plain in OUR_NAMES:
        raise InvalidInput(
            f"The name {name} is reserved for Sayso's own actions in the audit trail. Choose another name."
        )


class Reviewers:
    """The reviewers of one tenant and their sessions."""

    def __init__(
        self,
        sealer: Sealer,
        people: People,
        roles: Roles,
        absences: Cache[list[Absence]],
        tokens: Tokens,
        attempts: Attempts,
        passwords: Passwords,
        settings: Settings,
    ) -> None:
        self._tenant, self._people, self._tokens = sealer.tenant, people, tokens
        self._attempts, self._passwords, self.codes = attempts, passwords, Codes(people, attempts, sealer)
        self.find, self.list_all, self.list_groups = people.find_reviewer, people.list_reviewers, people.list_groups_of
        self._idle_ms = settings.session_idle_s * 1000
        self._max_ms = settings.session_max_s * 1000
        self.roles, self._absences = roles, absences

    async def add(self, name: str, password: str, roles: tuple[str, ...], by: str = "") -> Reviewer:
        """Create a reviewer, whose password `by` chose; raises `InvalidInput`, and `Conflict` for a taken name."""
        if not NAME_PATTERN.fullmatch(name):
            raise InvalidInput(NAME_RULE)
        refuse_our_names(name)
        await self.roles.check(roles)
        hashed, at_ms = await self._passwords.hash(password, name), now_ms()
        reviewer = Reviewer(
            name=name,
            password_hash=hashed,
            roles=roles,
            created_at_ms=at_ms,
            password_by=by,
            reset_by=by,
            reset_at_ms=at_ms if by else 0,
        )
        if not await self._people.add_reviewer(reviewer):
            raise Conflict(f"There is already a reviewer named {name}. Choose another name.")
        return reviewer

    async def add_managed(self, name: str, managed_by: str) -> None:
        """Create a reviewer without a password, whom something else manages; one that exists stays as they are."""
        reviewer = Reviewer(name=name, password_hash="", created_at_ms=now_ms(), managed_by=managed_by)
        await self._people.add_reviewer(reviewer)

    async def set_password(self, name: str, password: str, by: str = "") -> None:
        """Set a password, marked as that of `by` if somebody else, and end the sessions; raises `NotFound`."""
        await self._known(name)
        hashed, other = await self._passwords.hash(password, name), by if by != name else ""

        def update() -> dict[str, object]:
            at_ms = now_ms()
            marks: dict[str, object] = {"reset_by": other, "reset_at_ms": at_ms} if other else {}
            return {"password_hash": hashed, "password_set_at_ms": at_ms, "password_by": other, **marks}

        await self._change(name, update)

    async def has_password(self, name: str, password: str) -> bool:
        """Return whether the reviewer has this password; raises `NotFound`."""
        return await self._passwords.verify(password, (await self._known(name)).password_hash or None)

    async def change_password(self, session: Session, current: str, password: str, origin: Origin) -> SignIn:
        """Change a person's password, end all sessions and open one; raises `NotAllowed` for a wrong `current`."""
        await self.count_attempt(session.name, origin.address)
        if not await self.has_password(session.name, current):
            raise NotAllowed("The current password is not right. Nothing was changed.")
        if password == current:
            raise InvalidInput("The new password is the current one. Choose another.")
        await self.set_password(session.name, password)
        await self._attempts.forget(BY_PAIR, self._pair(session.name, origin.address))
        changed = await self._known(session.name)
        return await self._open(changed, now_ms(), origin, made=changed.made)

    async def deactivate(self, name: str) -> Reviewer:
        """Deactivate a reviewer and end their sessions; raises `NotFound`, or `Conflict` for the last admin."""

        def change(reviewer: Reviewer, everyone: Sequence[Reviewer]) -> Reviewer:
            _check_other_admin(everyone, name)
            return reviewer.model_copy(update={"active": False, "sessions_end_at_ms": now_ms() + 1})

        return _found(await self._people.change_reviewer_among(name, change), name)

    async def set_roles(self, name: str, roles: tuple[str, ...]) -> Reviewer:
        """Give a person these roles alone; raises `NotFound`, `InvalidInput`, or `Conflict` for the last admin."""
        await self.roles.check(roles)

        def change(reviewer: Reviewer, everyone: Sequence[Reviewer]) -> Reviewer:
            if ADMIN not in roles:
                _check_other_admin(everyone, name)
            return reviewer.model_copy(update={"roles": roles})

        return _found(await self._people.change_reviewer_among(name, change), name)

    async def activate(self, name: str) -> Reviewer:
        """Activate a reviewer with their old password; raises `NotFound`. Earlier sessions stay ended."""
        return await self._change(name, lambda: {"active": True})

    async def set_manager(self, name: str, manager: str | None) -> Reviewer:
        """Set who manages a person, or None; raises `NotFound`, or `InvalidInput` for a manager who cannot be."""
        if manager == name:
            raise InvalidInput(f"{name} cannot manage themselves. Choose another person.")
        if manager is not None and await self._people.find_active(manager) is None:
            raise InvalidInput(f"There is no active person named {manager!r} to be the manager. Correct the name.")
        return await self._change(name, lambda: {"manager": manager})

    async def find_manager(self, name: str) -> str | None:
        person = await self._people.find_active(name)
        if person is None or person.manager is None or await self._people.find_active(person.manager) is None:
            return None
        return person.manager

    async def list_sessions(self, name: str) -> list[OpenSession]:
        """Return a person's valid sessions, the newest first; raises `NotFound`."""
        reviewer = await self._known(name)
        sessions = await self._people.list_sessions(name)
        return [session for session in sessions if self.holds(reviewer, session.session)]

    async def end_session(self, name: str, session_id: str) -> None:
        """End one session of a person; raises `NotFound`."""
        for session in await self.list_sessions(name):
            if id_of_session(session.token_hash) == session_id:
                await self._tokens.close_session(session.token_hash)
                return
        raise NotFound(f"There is no session {session_id!r} of {name}. List the sessions to see the valid ones.")

    async def end_sessions(self, name: str, but: str | None = None) -> int:
        """End all sessions of a person except that of the token `but`; return how many were listed."""
        kept = hash_token(but) if but is not None else None
        ending = [session for session in await self.list_sessions(name) if session.token_hash != kept]
        if kept is None:
            await self._change(name, lambda: {"sessions_end_at_ms": now_ms() + 1})
        for session in ending:
            await self._tokens.close_session(session.token_hash)
        return len(ending)

    async def list_last_seen(self) -> dict[str, int]:
        """Return when each person last used a session; ms. People who never did are left out."""
        uses = await self._people.list_uses()
        return {holder.removeprefix(PERSON): at_ms for holder, at_ms in uses.items() if holder.startswith(PERSON)}

    async def list_represented(self, name: str) -> tuple[Represented, ...]:
        """Return the absent people for whom this person decides now, with their groups."""
        absences, at_ms = await self._absences.find(), now_ms()
        if not any(absence.delegate == name and absence.covers(at_ms) for absence in absences):
            return ()
        active = {reviewer.name for reviewer in await self.list_all() if reviewer.active}
        people = list_represented(absences, name, at_ms, active=active)
        groups = await asyncio.gather(*map(self.list_groups, people))
        rights = await asyncio.gather(*map(self.find_rights, people))
        chains = [find_chain(absences, person, at_ms, active)[:-1] for person in people]
        return tuple(
            Represented(person=person, groups=held, through=chain, decides=their.find_limits("decide"))
            for person, held, chain, their in zip(people, groups, chains, rights, strict=True)
            if person in active
        )

    async def find_rights(self, name: str) -> Rights:
        """Return what the roles of an active person let them do; nothing for others."""
        person = await self._people.find_active(name)
        return await self.roles.find_rights(person.roles) if person is not None else NO_RIGHTS

    async def list_deciders(self) -> list[str]:
        """Return the names of the active people whose roles let them decide."""
        people = [person for person in await self.list_all() if person.active]
        rights = await asyncio.gather(*(self.roles.find_rights(person.roles) for person in people))
        return [person.name for person, their in zip(people, rights, strict=True) if their.has("decide")]

    async def find_holder(self, name: str) -> Holder | None:
        """Return an active person with what lets them decide, or None."""
        person, groups = await self._people.find_with_groups(name)
        if person is None or not person.active:
            return None
        return Holder(person, groups, await self.list_represented(name), await self.roles.find_rights(person.roles))

    async def find_actor(self, name: str, channel: str, made: Made = NOBODY) -> Actor:
        """Return a person as the author of decisions on a channel, by an address that `made` tells of."""
        by = Actor(id=name, kind=ActorKind.HUMAN, channel=channel, groups=await self.list_groups(name))
        return describe_actor(by, await self.list_represented(name), made, await self.find_rights(name))

    async def sign_in(self, name: str, password: str, origin: Origin = NOWHERE, *, code: str = "") -> SignIn:
        """Open a session; raises as `check_password` and `complete`."""
        return await self.complete(await self.check_password(name, password, origin), code, origin)

    async def check_password(self, name: str, password: str, origin: Origin = NOWHERE) -> PasswordGiven:
        """Return who gave their password; raises `NotAuthenticated`, `TooManyRequests` after many attempts."""
        await self.count_attempt(name, origin.address)
        began_at_ms = now_ms()  # before the read: a password set during it ends this session, too
        reviewer = await self._people.find_reviewer(name)
        fits = await self._passwords.verify(password, (reviewer.password_hash or None) if reviewer else None)
        if reviewer is None or not fits:
            raise _misfit()
        return PasswordGiven(name=name, at_ms=began_at_ms)

    async def count_attempt(self, name: str, address: str) -> None:
        """Count one attempt to sign in; raises `TooManyRequests`."""
        if network := network_of(address):
            await self._attempts.count(BY_ADDRESS, network)
        await self._attempts.count(BY_PAIR, self._pair(name, address))

    async def complete(
        self, given: PasswordGiven, code: str, origin: Origin = NOWHERE, *, admins_only: bool = False
    ) -> SignIn:
        """Open a session after the password; raises `NotAuthenticated`, `CodeRequired`, `WrongCode`."""
        reviewer = await self._people.find_reviewer(given.name)
        if reviewer is None or not reviewer.active or (admins_only and ADMIN not in reviewer.roles):
            raise _misfit()
        if reviewer.app is not None:
            if not code:
                raise CodeRequired
            await self.codes.use(reviewer.name, code)
        await self._attempts.forget(BY_PAIR, self._pair(given.name, origin.address))
        return await self._open(reviewer, given.at_ms, origin, made=reviewer.made, password_by=reviewer.password_by)

    async def admit(self, name: str, provider: str, at_ms: int, origin: Origin = NOWHERE) -> SignIn:
        """Open a session for a person whom a provider identified at `at_ms`; raises `NotAllowed` if deactivated."""
        reviewer = await self._known(name)
        require_active(reviewer)
        return await self._open(reviewer, at_ms, origin, provider=provider)

    async def admit_with_passkey(self, name: str, passkey: str, made: Made, at_ms: int, origin: Origin) -> SignIn:
        """Open a session for the person of a passkey; raises `NotAllowed` if deactivated."""
        reviewer = await self._known(name)
        require_active(reviewer)
        return await self._open(reviewer, at_ms, origin, passkey=passkey, made=made)

    def holds(self, reviewer: Reviewer, session: Session) -> bool:
        """Return whether a session is valid: its person is active, and it has neither expired nor been ended."""
        over = now_ms() - session.created_at_ms > self._max_ms
        ended_at_ms = max(reviewer.password_set_at_ms, reviewer.sessions_end_at_ms)
        return reviewer.active and not over and session.created_at_ms >= ended_at_ms

    def _pair(self, name: str, address: str) -> str:
        return f"{self._tenant} {name} {network_of(address)}"

    async def _open(
        self,
        reviewer: Reviewer,
        at_ms: int,
        origin: Origin,
        *,
        provider: str = "",
        passkey: str = "",
        made: Made = NOBODY,
        password_by: str = "",
    ) -> SignIn:
        """Open a session; a provider or a passkey opens it, or else the person's password."""
        token = new_secret()
        session = Session(
            tenant=self._tenant,
            name=reviewer.name,
            roles=reviewer.roles,
            csrf=new_secret(),
            created_at_ms=at_ms,
            address=origin.address,
            client=origin.client[:200],
            made_by=made.by,
            made_at_ms=made.at_ms,
            provider=provider,
            passkey=passkey,
        )
        await self._people.open_session(hash_token(token), session, self._idle_ms)
        return SignIn(token, session, password_by)

    async def _known(self, name: str) -> Reviewer:
        return _found(await self._people.find_reviewer(name), name)

    async def _change(self, name: str, update: Callable[[], Mapping[str, object]]) -> Reviewer:
        """Change these fields only; concurrent changes of other fields stay."""
        changed = await self._people.change_reviewer(name, lambda reviewer: reviewer.model_copy(update=update()))
        return _found(changed, name)


def _check_other_admin(everyone: Sequence[Reviewer], name: str) -> None:
    """Raise `Conflict` for the last active admin."""
    if {person.name for person in everyone if person.active and ADMIN in person.roles} == {name}:
        raise Conflict(f"{name} is the last active admin. Add or activate another admin first.")


def _misfit() -> NotAuthenticated:
    return NotAuthenticated("That name and password do not go together. Check both and try again.")


def _found(reviewer: Reviewer | None, name: str) -> Reviewer:
    if reviewer is None:
        raise NotFound(f"There is no reviewer named {name!r}.")
    return reviewer


def require_active(person: Reviewer) -> None:
    """Raise `NotAllowed` for somebody who is deactivated."""
    if not person.active:
        raise NotAllowed(f"{person.name} is deactivated here. Ask an admin.")


def describe_actor(by: Actor, represents: tuple[Represented, ...], made: Made, rights: Rights) -> Actor:
    """Return the actor with what they decide, for whom else, and who else made their credential."""
    decides = rights.find_limits("decide")
    if not represents and not made.by and decides is None:
        return by
    return Delegate(
        id=by.id,
        kind=by.kind,
        channel=by.channel,
        groups=by.groups,
        represents=represents,
        made_by=made.by,
        made_at_ms=made.at_ms,
        decides=decides,
    )


def hash_token(token: str) -> str:
    """Return the stored hash of a token or key: 256 random bits need no slow hash."""
    return sha256(token.encode()).hexdigest()


def id_of_session(token_hash: str) -> str:
    """Return the public id of a session; it does not reveal the token."""
    return f"ses_{token_hash[:32]}"
