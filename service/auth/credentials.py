"""Tell who is calling, from the credential alone: an agent by its API key, a person by their session's token."""

import asyncio
import re
from dataclasses import dataclass, field

from sayso.canonical_json import JsonObject
from sayso.clock import monotonic_ms, new_id, new_secret, now_ms
from sayso.errors import Conflict, InvalidInput, NotAllowed, NotAuthenticated, NotFound
from sayso.records.decisions import Actor, ActorKind
from service.auth.reviewers import Reviewers, hash_token, refuse_our_names
from service.settings import SHORTEST_KEY
from service.store.people import ApiKey, KeyKind, People

TENANT = "default"
"""The one tenant for now. It is always taken from a credential, never from what a caller sends."""

_REMEMBERED_MS = 800
"""How long a checked credential is trusted without another look, so that a revoked one fails within a second."""
_NAME = re.compile(r"[!-~]{1,64}")
LATEST_MS = 2**53
"""A moment that never comes."""


@dataclass(frozen=True)
class Principal:
    """Somebody whose credential holds."""

    tenant: str
    name: str
    kind: ActorKind
    roles: tuple[str, ...] = ()
    csrf: str = ""
    key_id: str | None = None
    context: JsonObject = field(default_factory=dict, hash=False)

    def actor(self, channel: str) -> Actor:
        """This principal as it appears in decisions and events."""
        return Actor(id=self.name, kind=self.kind, channel=channel)

    @property
    def owner(self) -> str | None:
        """Whose runs this principal may see: its own, or, for people, everybody's."""
        return self.name if self.kind is ActorKind.AGENT else None


class Credentials:
    """API keys and sessions, checked against the store and remembered for less than a second."""

    def __init__(self, people: People, reviewers: Reviewers) -> None:
        self._people = people
        self._reviewers = reviewers
        self._remembered: dict[str, tuple[Principal, float]] = {}
        self._ticking: dict[tuple[str, bool], asyncio.Task[Principal | None]] = {}

    async def identify(self, token: str | None, *, in_use: bool = True) -> Principal:
        """Return who holds the token; raises `NotAuthenticated`. A session not in use grows idle all the same."""
        if not token:
            raise NotAuthenticated()
        known = self._remembered.get(token)
        if known is not None and monotonic_ms() < known[1]:
            return known[0]
        principal = await self._look_up_once(token, in_use)
        if principal is None:
            self._remembered.pop(token, None)
            raise NotAuthenticated("This key or session does not hold any more. Sign in again, or ask for a new key.")
        if len(self._remembered) > 10_000:
            self._remembered.clear()
        self._remembered[token] = (principal, monotonic_ms() + _REMEMBERED_MS)
        return principal

    async def find_provisioner(self, token: str) -> ApiKey | None:
        """Return the provisioner key that this token is, or None where it is none or does not hold any more."""
        key = await self._people.find_key(hash_token(token))
        return key if key is not None and key.kind == "provisioner" and key.holds(now_ms()) else None

    def forget(self, token: str) -> None:
        """Trust this token no longer without another look."""
        self._remembered.pop(token, None)
        for in_use in (True, False):
            self._ticking.pop((token, in_use), None)

    async def create_key(
        self,
        tenant: str,
        name: str,
        secret: str | None = None,
        kind: KeyKind = "agent",
        predecessor_id: str | None = None,
        context: JsonObject | None = None,
    ) -> tuple[ApiKey, str]:
        """Make a key and return it with its only plain copy; a given secret is kept as it is."""
        if predecessor_id is None:
            _check_name(name)
        if secret is not None and len(secret) < SHORTEST_KEY:
            raise InvalidInput(f"A key has at least {SHORTEST_KEY} characters; choose a longer, random one.")
        plain = secret or f"sayso_{kind}_{new_secret()}"
        key_hash = hash_token(plain)
        existing = await self._people.find_key(key_hash)
        if existing is not None and not existing.holds(now_ms()):
            raise Conflict("This key was revoked or has ended, and stays so; choose another one.")
        if existing is not None and (existing.tenant, existing.name, existing.kind) != (tenant, name, kind):
            raise Conflict("This key is somebody else's; choose another one.")
        if existing is not None:
            return existing, plain
        key = ApiKey(
            id=new_id("key"),
            tenant=tenant,
            name=name,
            kind=kind,
            created_at_ms=now_ms(),
            predecessor_id=predecessor_id,
            context=context or {},
        )
        await self._people.save_key(key_hash, key)
        return key, plain

    async def revoke_key(self, tenant: str, key_id: str) -> ApiKey:
        """Make an API key fail everywhere within a second; raises `NotFound`.

        What the key asked is withdrawn by `service.desk.withdrawals`.
        """
        key_hash = await self._people.find_key_hash(tenant, key_id)
        key = await self._people.find_key(key_hash) if key_hash else None
        if key is None or key_hash is None:
            raise NotFound(f"There is no API key {key_id!r}.")
        at_ms = now_ms()
        revoked = await self._people.change_key(
            key_hash, lambda found: found.model_copy(update={"revoked_at_ms": found.revoked_at_ms or at_ms})
        )
        if revoked is None:
            raise NotFound(f"There is no API key {key_id!r}.")
        return revoked

    async def rotate_key(self, tenant: str, key_id: str, overlap_s: int) -> tuple[ApiKey, str]:
        """Make the next key of the same name and kind; the one before ends after the overlap. Raises `NotFound`."""
        key_hash = await self._people.find_key_hash(tenant, key_id)
        key = await self._people.find_key(key_hash) if key_hash else None
        if key is None or key_hash is None:
            raise NotFound(f"There is no API key {key_id!r}.")
        if not key.holds(now_ms()):
            raise Conflict("This key does not hold any more; make a new one instead.")
        made, plain = await self.create_key(tenant, key.name, kind=key.kind, predecessor_id=key.id, context=key.context)
        ends_at_ms = now_ms() + overlap_s * 1000
        await self._people.change_key(
            key_hash,
            lambda found: found.model_copy(update={"ends_at_ms": min(ends_at_ms, found.ends_at_ms or LATEST_MS)}),
        )
        return made, plain

    async def note_withdrawn(self, tenant: str, key_id: str) -> None:
        """Note that all that a revoked key asked was withdrawn."""
        if key_hash := await self._people.find_key_hash(tenant, key_id):
            await self._people.change_key(key_hash, lambda found: found.model_copy(update={"withdrawn": True}))

    async def list_keys(self, tenant: str) -> list[ApiKey]:
        """Return all API keys, the revoked ones included."""
        return list(await self._people.list_keys(tenant))

    async def _look_up_once(self, token: str, in_use: bool) -> Principal | None:
        """Look a token up once for all who ask at the same time: thousands that wait may be woken by one event."""
        about = (token, in_use)
        looking = self._ticking.get(about)
        if looking is None or looking.done():
            looking = self._ticking[about] = asyncio.create_task(self._look_up(token, in_use))
            looking.add_done_callback(lambda _: self._ticking.pop(about, None))
        return await asyncio.shield(looking)

    async def _look_up(self, token: str, in_use: bool) -> Principal | None:
        key = await self._people.find_key(hash_token(token))
        if key is not None:
            return await self._look_at(key)
        session = await self._reviewers.resume_session(token, in_use=in_use)
        if session is None:
            return None
        return Principal(session.tenant, session.name, ActorKind.HUMAN, session.roles, session.csrf)

    async def _look_at(self, key: ApiKey) -> Principal | None:
        """Return whose key it is. A reviewer's has no more than a reviewer's right, whatever else the person may do."""
        if not key.holds(now_ms()) or key.kind == "provisioner":
            return None
        if key.kind == "agent":
            return Principal(key.tenant, key.name, ActorKind.AGENT, key_id=key.id, context=key.context)
        person = await self._reviewers.find(key.tenant, key.name)
        active = person is not None and person.active
        return Principal(key.tenant, key.name, ActorKind.HUMAN, ("reviewer",), key_id=key.id) if active else None


def _check_name(name: str) -> None:
    """Raise `InvalidInput` for a name that a new key cannot have: nobody can tell look-alike letters apart."""
    if not _NAME.fullmatch(name):
        raise InvalidInput("A key's name is 1 to 64 visible ASCII characters without spaces. Choose another name.")
    refuse_our_names(name)


def require_person(principal: Principal) -> None:
    """Raise `NotAllowed` for an agent's key: agents ask and read their own, people do the rest."""
    if principal.kind is not ActorKind.HUMAN:
        raise NotAllowed("This takes a reviewer; an agent's key can ask and read its own runs, nothing else.")
