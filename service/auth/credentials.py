"""Identify a caller by the credential alone: an agent by its API key, a person by the token of their session."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypedDict

from sayso.canonical_json import JsonObject
from sayso.clock import monotonic_ms, now_ms
from sayso.errors import NotAllowed, NotAuthenticated, Unavailable
from sayso.records.decisions import Actor, ActorKind, Represented
from service.auth.person_tokens.verifying import PersonTokens
from service.auth.reviewers import Reviewers, add_represented, hash_token
from service.store.people import PERSON, ApiKey, Session
from service.store.tokens import Tokens

TENANT = "default"  # the one tenant for now; a request's tenant comes from its credential alone

CACHED_MS = 800  # how long an identified credential is cached, so that a revoked one fails within a second
_MOST_CACHED = 10_000
_NOTED_MS = 60_000  # how often this process notes the use of one credential


class _Rights(TypedDict):
    """What lets a person decide beside their name."""

    groups: tuple[str, ...]
    represents: tuple[Represented, ...]


@dataclass(frozen=True)
class Principal:
    """An identified caller."""

    tenant: str
    name: str
    kind: ActorKind
    roles: tuple[str, ...] = ()
    csrf: str = ""
    key_id: str | None = None
    context: JsonObject = field(default_factory=dict, hash=False)
    key_owner: str | None = None
    """The person who owns an agent's key, if it has an owner."""

    groups: tuple[str, ...] = ()
    """The groups of a person."""

    represents: tuple[Represented, ...] = ()
    """The absent people for whom a person decides."""

    def actor(self, channel: str) -> Actor:
        """Return this principal as it appears in decisions and events."""
        return Actor(id=self.name, kind=self.kind, channel=channel)

    def reviewer(self, channel: str) -> Actor:
        """Return this principal with their groups and the absent people they represent, to decide an item."""
        by = Actor(id=self.name, kind=self.kind, channel=channel, groups=self.groups)
        return add_represented(by, self.represents)

    @property
    def owner(self) -> str | None:
        """The owner whose runs this principal may see; None for people, who see all runs."""
        return self.name if self.kind is ActorKind.AGENT else None


class Credentials:
    """API keys and sessions of all tenants, checked against the store and cached for less than a second.

    `person_tokens` verifies the tokens that say for whom an agent acts.
    """

    def __init__(
        self,
        tokens: Tokens,
        reviewers_of: Callable[[str], Reviewers],
        *,
        idle_s: int,
        person_tokens: PersonTokens | None = None,
    ) -> None:
        self.person_tokens = person_tokens or PersonTokens(None)
        self._tokens, self._reviewers_of = tokens, reviewers_of
        self._idle_ms = idle_s * 1000
        self._cached: dict[str, tuple[Principal, float]] = {}
        self._pending: dict[tuple[str, bool], asyncio.Task[Principal | None]] = {}
        self._noted: dict[str, float] = {}

    async def identify(self, token: str | None, *, in_use: bool = True, within_ms: int = CACHED_MS) -> Principal:
        """Return the holder of the token; with `in_use` false, idle time goes on. Raises `NotAuthenticated`.

        A check of the last `within_ms` counts.
        """
        if not token:
            raise NotAuthenticated()
        cached = self._cached.get(token)
        if cached is not None and monotonic_ms() < cached[1] + within_ms:
            return cached[0]
        principal = await self._look_up_once(token, in_use)
        if principal is None:
            self._cached.pop(token, None)
            raise NotAuthenticated("This key or session is no longer valid. Sign in again, or ask for a new key.")
        if len(self._cached) > _MOST_CACHED:
            self._cached.clear()
        self._cached[token] = (principal, monotonic_ms())
        return principal

    async def find_provisioner(self, token: str) -> ApiKey | None:
        key = await self._tokens.find_key(hash_token(token))
        if key is None or key.kind != "provisioner" or not key.holds(now_ms()):
            return None
        await self._note_use(key.tenant, key.id)
        return key

    async def resume_session(self, token: str, *, in_use: bool = True) -> Session | None:
        """Return a valid session of an active person, else None; with `in_use` false, its idle time goes on."""
        session = await self._tokens.use_session(hash_token(token), self._idle_ms if in_use else None)
        if session is None:
            return None
        valid = await self._reviewers_of(session.tenant).check_session(session)
        if valid is None:
            await self.sign_out(token)
        return valid

    async def sign_out(self, token: str) -> None:
        """Close the session of a token, and forget the token."""
        await self._tokens.close_session(hash_token(token))
        self.forget(token)

    def forget(self, token: str) -> None:
        self._cached.pop(token, None)
        for in_use in (True, False):
            self._pending.pop((token, in_use), None)

    async def _look_up_once(self, token: str, in_use: bool) -> Principal | None:
        """Share one look-up among all concurrent callers: one event may wake thousands of long polls."""
        place = (token, in_use)
        pending = self._pending.get(place)
        if pending is None or pending.done():
            pending = self._pending[place] = asyncio.create_task(self._look_up(token, in_use))
            pending.add_done_callback(lambda _: self._pending.pop(place, None))
        return await asyncio.shield(pending)

    async def _look_up(self, token: str, in_use: bool) -> Principal | None:
        key = await self._tokens.find_key(hash_token(token))
        if key is not None:
            return await self._find_holder(key)
        session = await self.resume_session(token, in_use=in_use)
        if session is None:
            return None
        rights = await self._find_rights(self._reviewers_of(session.tenant), session.name)
        if in_use:
            await self._note_use(session.tenant, f"{PERSON}{session.name}")
        return Principal(session.tenant, session.name, ActorKind.HUMAN, session.roles, session.csrf, **rights)

    async def _find_holder(self, key: ApiKey) -> Principal | None:
        """Return the holder of a key. A reviewer's key has only the role of a reviewer, even if an admin holds it."""
        if not key.holds(now_ms()) or key.kind == "provisioner":
            return None
        if key.kind == "agent":
            await self._note_use(key.tenant, key.id)
            return Principal(
                key.tenant, key.name, ActorKind.AGENT, key_id=key.id, context=key.context, key_owner=key.owner
            )
        reviewers = self._reviewers_of(key.tenant)
        person = await reviewers.find(key.name)
        if person is None or not person.active:
            return None
        rights = await self._find_rights(reviewers, key.name)
        await self._note_use(key.tenant, key.id)
        return Principal(key.tenant, key.name, ActorKind.HUMAN, ("reviewer",), key_id=key.id, **rights)

    async def _note_use(self, tenant: str, holder: str) -> None:
        """Record the use of a credential, at most once a minute; a store that cannot write does not shut it out."""
        at_ms, place = monotonic_ms(), f"{tenant} {holder}"
        if at_ms < self._noted.get(place, 0.0):
            return
        if len(self._noted) > _MOST_CACHED:
            self._noted.clear()
        self._noted[place] = at_ms + _NOTED_MS
        with suppress(Unavailable):
            await self._tokens.note_use(tenant, holder, now_ms())

    async def _find_rights(self, reviewers: Reviewers, name: str) -> _Rights:
        return {"groups": await reviewers.list_groups(name), "represents": await reviewers.list_represented(name)}


def require_person(principal: Principal) -> Principal:
    """Return the person; raises `NotAllowed` for an agent's key."""
    if principal.kind is not ActorKind.HUMAN:
        raise NotAllowed("This needs a reviewer; an agent's key can only start, suspend and read its own runs.")
    return principal
