"""Identify a caller by the credential alone: an agent by its API key, a person by the token of their session."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import nlargest
from ipaddress import IPv6Address, ip_address, ip_network

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import monotonic_ms, now_ms
from sayso.core.records.decisions import Actor, ActorKind, KeyKind, KeyScope, Represented
from sayso.errors import NotAllowed, NotAuthenticated, Unavailable
from service.core.auth.person_tokens import PersonTokens
from service.core.auth.reviewers import NOBODY, Reviewers, describe_actor, hash_token
from service.core.auth.roles import NO_RIGHTS, REVIEWER, ROLES, Rights
from service.core.cache import USED_WITHIN_MS, Refresher, share
from service.core.store.people import NO_TERMS, PERSON, ApiKey, KeyTerms, Made, Session, Tokens

CACHED_MS = 800  # how long an identified credential is cached, so that a revoked one fails within a second
_REFRESH_AFTER_MS = 350
_MOST_REFRESHED = 64
_MOST_CACHED = 10_000
_NOTED_MS = 60_000  # how often this process notes the use of one credential


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
    key_owner: str | None = None  # the person who owns an agent's key, if it has an owner
    key_maker: str = ""  # the person who made the key, if that is known
    made: Made = NOBODY  # who else made or reset a person's credential
    password_by: str = ""  # who else set the password of a session, if its person has not changed it
    groups: tuple[str, ...] = ()  # the groups of a person
    represents: tuple[Represented, ...] = ()  # the absent people for whom a person decides
    rights: Rights = field(default=NO_RIGHTS, hash=False)  # what the roles of a person let them do
    lasting: Rights = field(default=NO_RIGHTS, hash=False)  # those without emergency rights: what they may give others
    terms: KeyTerms = field(default=NO_TERMS, hash=False)  # what narrows an API key

    @property
    def emergency(self) -> bool:
        """Whether a session has emergency rights."""
        return self.rights != self.lasting

    def actor(self, channel: str) -> Actor:
        return Actor(id=self.name, kind=self.kind, channel=channel)

    def reviewer(self, channel: str) -> Actor:
        """Return this principal with their groups and the absent people they represent, to decide an item."""
        by = Actor(id=self.name, kind=self.kind, channel=channel, groups=self.groups)
        return describe_actor(by, self.represents, self.made, self.rights)

    @property
    def owner(self) -> str | None:
        """The owner whose runs this principal may see; None for people, who see all runs."""
        return self.name if self.kind is ActorKind.AGENT else None


@dataclass(slots=True)
class _Checked:
    """An identified credential: when it was last checked and used, and whether it was used since that check."""

    principal: Principal
    checked_at_ms: float
    used_at_ms: float
    in_use: bool = False


_LookedUp = tuple[Principal | None, float]  # the holder of a credential, and when its look-up began, ms


class Credentials:
    """API keys and sessions of a tenant, cached for less than a second; those in use are refreshed beside."""

    def __init__(
        self,
        tokens: Tokens,
        tenant: str,
        find_reviewers: Callable[[], Reviewers],
        refresher: Refresher,
        *,
        idle_s: int,
        person_tokens: PersonTokens | None = None,
    ) -> None:
        self.person_tokens = person_tokens or PersonTokens(None)
        self._tokens, self._tenant, self._find_reviewers = tokens, tenant, find_reviewers
        self._refresher, self._clock_ms = refresher, refresher.clock_ms
        self._idle_ms = idle_s * 1000
        self._cached: dict[str, _Checked] = {}
        self._pending: dict[tuple[str, bool], asyncio.Task[_LookedUp]] = {}
        self._noted: dict[str, float] = {}

    async def identify(self, token: str | None, *, in_use: bool = True, within_ms: int = CACHED_MS) -> Principal:
        """Return the token's holder, checked `within_ms`; `in_use` restarts idle time. Raises `NotAuthenticated`."""
        if not token:
            raise NotAuthenticated()
        checked, at_ms = self._cached.get(token), self._clock_ms()
        if checked is None or at_ms >= checked.checked_at_ms + within_ms:
            principal, checked_at_ms = await self._look_up_once(token, in_use)
            if principal is None:
                self._cached.pop(token, None)
                await self._tokens.check_store()
                raise NotAuthenticated("This key or session is no longer valid. Sign in again, or ask for a new key.")
            if len(self._cached) > _MOST_CACHED:
                self._cached.clear()
            checked = self._cached[token] = _Checked(principal, checked_at_ms, 0.0)
        elif in_use:
            checked.in_use = True
        if in_use:
            checked.used_at_ms = at_ms
            self._refresher.note_use(self._refresh)
        return checked.principal

    async def find_machine(self, token: str, kind: KeyKind) -> ApiKey | None:
        """Return the valid key of a provisioner or directory."""
        key = await self._tokens.find_key(hash_token(token))
        if key is None or key.tenant != self._tenant or key.kind != kind or not key.holds(now_ms()):
            return None
        await self._note_use(key.tenant, key.id)
        return key

    async def sign_out(self, token: str) -> None:
        await self._tokens.close_session(hash_token(token))
        self.forget(token)

    async def close(self, token_hash: str) -> None:
        """End a session by the hash of its token; every process notices within a second."""
        await self._tokens.close_session(token_hash)

    def forget(self, token: str) -> None:
        self._cached.pop(token, None)
        for in_use in (True, False):
            self._pending.pop((token, in_use), None)

    async def _refresh(self) -> None:
        """Check the credentials that were used last, each at most twice a second."""
        at_ms = self._clock_ms()
        used = [entry for entry in self._cached.items() if entry[1].used_at_ms > at_ms - USED_WITHIN_MS]
        latest = nlargest(_MOST_REFRESHED, used, key=lambda entry: entry[1].used_at_ms)
        due = [entry for entry in latest if at_ms >= entry[1].checked_at_ms + _REFRESH_AFTER_MS]
        await asyncio.gather(*(self._check_again(token, checked) for token, checked in due))

    async def _check_again(self, token: str, checked: _Checked) -> None:
        in_use, checked.in_use = checked.in_use, False
        principal, at_ms = await self._look_up_once(token, in_use)
        if self._cached.get(token) is not checked:
            return  # it was forgotten or checked meanwhile
        if principal is None:
            del self._cached[token]
            return
        checked.principal, checked.checked_at_ms = principal, at_ms

    async def _look_up_once(self, token: str, in_use: bool) -> _LookedUp:
        """Share one look-up among all concurrent callers: one event may wake thousands of long polls."""
        place = (token, in_use)
        pending = self._pending.get(place)
        if pending is None or pending.done():
            pending = self._pending[place] = share(self._look_up(token, in_use))
            pending.add_done_callback(lambda _: self._pending.pop(place, None))
        return await asyncio.shield(pending)

    async def _look_up(self, token: str, in_use: bool) -> _LookedUp:
        began_at_ms = self._clock_ms()
        credential = await self._tokens.find(hash_token(token))
        if credential is None or credential.tenant != self._tenant:
            return None, began_at_ms
        if isinstance(credential, ApiKey):
            return await self._find_key_holder(credential), began_at_ms
        return await self._resume_session(token, credential, in_use), began_at_ms

    async def _resume_session(self, token: str, session: Session, in_use: bool) -> Principal | None:
        """Return the holder of a session; close it unless it is valid."""
        reviewers, token_hash = self._find_reviewers(), hash_token(token)
        holder, kept, emergencies = await asyncio.gather(
            reviewers.find_holder(session.name),
            self._extend_session(token_hash, in_use),
            reviewers.roles.list_emergencies(),
        )
        if not kept:
            return None
        if holder is None or not reviewers.holds(holder.person, session):
            await self.sign_out(token)
            return None
        if in_use:
            await self._note_use(session.tenant, f"{PERSON}{session.name}")
        has_emergency = session.name in {emergency.person for emergency in emergencies}
        return Principal(
            session.tenant,
            session.name,
            ActorKind.HUMAN,
            holder.person.roles,
            session.csrf,
            made=Made(session.made_by, session.made_at_ms),
            password_by="" if session.provider or session.passkey else holder.person.password_by,
            groups=holder.groups,
            represents=holder.represents,
            rights=holder.rights.widen() if has_emergency else holder.rights,
            lasting=holder.rights,
        )

    async def _extend_session(self, token_hash: str, in_use: bool) -> bool:
        return not in_use or await self._tokens.extend_session(token_hash, self._idle_ms)

    async def _find_key_holder(self, key: ApiKey) -> Principal | None:
        """Return the holder of a key. A reviewer's key has at most the rights of a reviewer, even of an admin."""
        if not key.holds(now_ms()) or key.kind in ("provisioner", "directory"):
            return None
        if key.kind == "agent":
            await self._note_use(key.tenant, key.id)
            return Principal(
                key.tenant,
                key.name,
                ActorKind.AGENT,
                key_id=key.id,
                context=key.context,
                key_owner=key.owner,
                key_maker=key.created_by,
                terms=key.terms,
            )
        holder = await self._find_reviewers().find_holder(key.name)
        if holder is None:
            return None
        await self._note_use(key.tenant, key.id)
        return Principal(
            key.tenant,
            key.name,
            ActorKind.HUMAN,
            (REVIEWER,),
            key_id=key.id,
            made=Made(key.made_by, key.made_at_ms),
            groups=holder.groups,
            represents=holder.represents,
            rights=(rights := holder.rights.narrow(ROLES[REVIEWER])),
            lasting=rights,
            terms=key.terms,
        )

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


_ASKS = (
    *("createSuspension", "redeemItem", "reportOutcome", "markInDoubt", "reportEvents", "answerInquiry", "attachFile"),
    *("proposeMandate", "revokeMandate", "checkRules", "judgeCall"),
)
_READS = (
    *("getRun", "listRuns", "listRunSuspensions", "listEvents", "streamEvents", "listExternalEvents", "getTimeline"),
    *("listSuspensions", "getSuspension", "listMandates", "getMandate", "listInquiries", "listAttachments"),
    *("getAttachment", "listAgents", "listWebhookEvents", "exportOverrides", "listNotes", "forecastSuspension"),
)
_WEBHOOKS = (
    *("listEndpoints", "createEndpoint", "verifyEndpoint", "disableEndpoint", "rotateEndpoint", "deleteEndpoint"),
    *("listFailures", "redeliver"),
)
SCOPES: Mapping[str, tuple[KeyScope, ...]] = {
    **dict.fromkeys(_ASKS, ("ask",)),
    **dict.fromkeys(_READS, ("read", "ask", "run")),
    **dict.fromkeys(_WEBHOOKS, ("webhooks",)),
    "startRun": ("run",),
    "cancelRun": ("run", "ask"),
}
"""The scopes of which an agent's key needs one, by operation; a key with scopes has no other operation."""


def require_scope(principal: Principal, operation_id: str) -> None:
    """Raise `NotAllowed` where the key has scopes, and none of those that the operation needs."""
    given = principal.terms.scopes
    needed = SCOPES.get(operation_id, ())
    if given and needed and not {*given} & {*needed}:
        raise NotAllowed(
            f"This key has the scope {', '.join(given)}; {operation_id} needs {' or '.join(needed)}. "
            "Use a key with that scope.",
            scopes=list(given),
        )


def require_agent(principal: Principal, agent: str) -> None:
    """Raise `NotAllowed` where the key is limited to other agents."""
    agents = principal.terms.agents
    if agents and agent not in agents:
        raise NotAllowed(f"This key asks for {', '.join(agents)} only, not for {agent!r}. Use that agent's own key.")


def require_network(terms: KeyTerms, address: str) -> None:
    """Raise `NotAllowed` where a key is used from outside of its ranges of addresses."""
    if terms.networks and not _lies_in(address, terms.networks):
        place = address or "an unknown address"
        raise NotAllowed(f"This key cannot be used from {place}. Use it from its own network.")


def _lies_in(address: str, networks: Iterable[str]) -> bool:
    try:
        client = ip_address(address)
    except ValueError:
        return False
    client = client.ipv4_mapped or client if isinstance(client, IPv6Address) else client
    return any(client in ip_network(network) for network in networks)


def require_own_password(principal: Principal) -> None:
    """Raise `NotAllowed` where somebody else set the person's password: it makes no further credential."""
    if principal.password_by:
        raise NotAllowed(
            f"{principal.password_by} set your password. Change it first: on the page Me, or with `sayso password`."
        )


def is_monitor(principal: Principal) -> bool:
    """Return whether the caller has a monitoring key, which reads the diagnostics and the metrics alone."""
    return "monitor" in principal.terms.scopes


def require_person(principal: Principal) -> Principal:
    """Return the person; raises `NotAllowed` for an agent's key."""
    if principal.kind is not ActorKind.HUMAN:
        raise NotAllowed(
            "This needs a reviewer; an agent's key can only start, suspend and read its own runs. "
            "Sign in as a reviewer."
        )
    return principal
