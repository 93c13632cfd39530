"""Reviewers, sessions, API keys and instances. Only hashes of passwords and tokens are stored."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from pydantic import Field
from redis.asyncio.client import Pipeline

from sayso.core.canonical_json import JsonObject
from sayso.core.records.base import Immutable, Stored, is_empty
from sayso.core.records.decisions import KeyKind, KeyScope
from sayso.errors import Unavailable
from service.core.settings.limits import LONGEST_SESSION_S
from service.core.store.connection.connecting import name_shared, text, texts
from service.core.store.directory import Group
from service.core.store.keys import EMPTIED, FORMAT, INSTANCE_KEYS, KEYS, SESSIONS, keys_of
from service.core.store.suspensions.reading import try_read
from service.core.store.tenants import Connections, StorePart, TenantStore

_SCANNED = 1_000
DIRECTORY: KeyKind = "directory"  # a company's directory: the kind of its key, and what manages its people
PERSON = "person:"  # the prefix of a person's name where uses of keys and of sessions are kept together
Kept = TypeVar("Kept", "Reviewer", "ApiKey")


FOREVER_MS = 2**53  # a moment that never comes


class Made(NamedTuple):
    """Who else made or reset a credential, and when; empty for a credential of its person alone."""

    by: str = ""
    at_ms: int = 0


class AuthenticatorApp(Immutable):
    """The app whose codes a person types; `seed` is encrypted. Codes up to those of `used_step` are refused."""

    seed: str
    added_at_ms: int
    used_step: int


class PasswordGiven(Immutable):
    """A person who gave their password at this time, and no code yet."""

    name: str
    at_ms: int


class Reviewer(Stored):
    """A person who may decide; an admin also manages people and keys."""

    name: str
    password_hash: str
    roles: tuple[str, ...] = ("reviewer",)
    active: bool = True
    manager: str | None = None  # set by admins; rules may ask the manager of a person
    created_at_ms: int
    password_set_at_ms: int = 0
    password_by: str = ""  # who set the password, until its person changes it; empty for the person
    reset_by: str = ""  # who else set a password last, and when; it stays when the person changes it
    reset_at_ms: int = 0
    sessions_end_at_ms: int = 0  # sessions opened earlier are invalid
    managed_by: str = Field(default="", exclude_if=is_empty)  # what adds and deactivates the person, if no admin does
    subject: str = Field(default="", exclude_if=is_empty)  # a digest of the person's issuer and subject there
    app: AuthenticatorApp | None = Field(default=None, exclude_if=is_empty)  # its codes go with the password

    @property
    def made(self) -> Made:
        """Who else made the password: of items asked before that; of all while a reset one is in use."""
        reset = bool(self.password_by) and self.reset_at_ms > self.created_at_ms
        return Made(self.reset_by, FOREVER_MS if reset else self.reset_at_ms) if self.reset_by else Made()


class Session(Stored):
    """One sign-in of one person; `address` and `client` come from the request that opened it."""

    tenant: str
    name: str
    roles: tuple[str, ...]
    csrf: str
    created_at_ms: int
    address: str = ""
    client: str = ""
    made_by: str = ""  # who else set the password with which it was opened
    made_at_ms: int = 0
    provider: str = Field(default="", exclude_if=is_empty)  # the identity provider that opened it
    passkey: str = Field(default="", exclude_if=is_empty)  # the passkey that opened it


class OpenSession(NamedTuple):
    """A valid session, the hash of its token, and its remaining idle time."""

    token_hash: str
    session: Session
    left_ms: int


class KeyTerms(Immutable):
    """What is said of an API key when it is made; an empty field narrows nothing."""

    context: JsonObject = Field(default_factory=dict)  # from the operator; rules read it
    owner: str | None = None  # the person who answers for the agent, set by admins
    scopes: tuple[KeyScope, ...] = Field(default=(), exclude_if=is_empty)
    agents: tuple[str, ...] = Field(default=(), exclude_if=is_empty)  # those as which it asks and starts runs
    networks: tuple[str, ...] = Field(default=(), exclude_if=is_empty)  # those from which it is used
    expires_at_ms: int | None = Field(default=None, exclude_if=is_empty)


NO_TERMS = KeyTerms()


class ApiKey(KeyTerms, Stored):
    """A credential of a machine; `kind` is its permission."""

    id: str
    tenant: str
    name: str
    kind: KeyKind = "agent"
    created_at_ms: int
    revoked_at_ms: int | None = None
    ends_at_ms: int | None = None
    predecessor_id: str | None = None
    created_by: str = ""  # the person who made the key; empty for setup, and for keys of earlier versions
    made_by: str = ""  # who else set the password of the session that made the key
    made_at_ms: int = 0
    withdrawn: bool = False  # whether all runs of this revoked key were withdrawn
    prefix: str = Field(default="", exclude_if=is_empty)  # the first characters of its secret, which find a leaked key

    def holds(self, at_ms: int) -> bool:
        """Return whether the key is neither revoked nor past its end after a rotation, nor expired."""
        return self.revoked_at_ms is None and (self.end_ms is None or at_ms < self.end_ms)

    @property
    def end_ms(self) -> int | None:
        """When it becomes invalid: past the overlap of a rotation, or as it was made."""
        return min((end for end in (self.ends_at_ms, self.expires_at_ms) if end is not None), default=None)

    @property
    def terms(self) -> KeyTerms:
        return KeyTerms(**{name: getattr(self, name) for name in KeyTerms.model_fields})


class StoredKey(NamedTuple):
    """An API key as the store has it. `listed` is false for one that is not in the index, so no Sayso made it."""

    key_hash: str
    key: ApiKey
    listed: bool


class People(StorePart):
    """Reviewers, sessions and API keys."""

    def __init__(self, store: TenantStore) -> None:
        super().__init__(store)
        self._read, self._pipeline = store.readings.read_other, store.connections.changes

    async def add_reviewer(self, reviewer: Reviewer) -> bool:
        """Save a new reviewer; return False, and save nothing, if the name is taken."""
        key = self._keys.reviewers
        return bool(await self._redis.hsetnx(key, reviewer.name, reviewer.model_dump_json()))

    async def save_reviewer(self, reviewer: Reviewer) -> None:
        await self._redis.hset(self._keys.reviewers, reviewer.name, reviewer.model_dump_json())

    async def change_reviewer(self, name: str, change: Callable[[Reviewer], Reviewer]) -> Reviewer | None:
        return await self._change(Reviewer, self._keys.reviewers, name, change)

    async def change_reviewer_among(
        self, name: str, change: Callable[[Reviewer, Sequence[Reviewer]], Reviewer]
    ) -> Reviewer | None:
        """Change a reviewer, given all reviewers, atomically and return it; None if the name is unknown."""

        async def write(pipe: Pipeline) -> Reviewer | None:
            kept: dict[Any, Any] = await pipe.hgetall(self._keys.reviewers)
            stored = {text(key): raw for key, raw in kept.items()}
            if name not in stored:
                return None
            known = self._readings.require_other(Reviewer, stored[name], f"person {name}")
            named = ((f"person {key}", raw) for key, raw in stored.items())
            changed = change(known, self._readings.read_others(Reviewer, named))
            pipe.multi()  # type: ignore[no-untyped-call]
            pipe.hset(self._keys.reviewers, name, changed.model_dump_json())
            return changed

        key = self._keys.reviewers
        changed: Reviewer | None = await self._redis.transaction(write, key, value_from_callable=True)
        return changed

    async def find_reviewer(self, name: str) -> Reviewer | None:
        raw = await self._redis.hget(self._keys.reviewers, name)
        return self._read(Reviewer, raw, f"person {name}") if raw else None

    async def find_active(self, name: str) -> Reviewer | None:
        reviewer = await self.find_reviewer(name)
        return reviewer if reviewer is not None and reviewer.active else None

    async def find_with_groups(self, name: str) -> tuple[Reviewer | None, tuple[str, ...]]:
        keys = self._keys
        raw, groups = await self._pipeline.ask_all(("HGET", keys.reviewers, name), ("SMEMBERS", keys.groups_of(name)))
        return (self._read(Reviewer, raw, f"person {name}") if raw else None), await self._check_groups(name, groups)

    async def list_reviewers(self) -> list[Reviewer]:
        stored = await self._redis.hgetall(self._keys.reviewers)
        named = ((f"person {text(name)}", raw) for name, raw in stored.items())
        return sorted(self._readings.read_others(Reviewer, named), key=lambda person: person.name)

    async def find_inactive(self) -> frozenset[str]:
        return frozenset(reviewer.name for reviewer in await self.list_reviewers() if not reviewer.active)

    async def list_groups_of(self, name: str) -> tuple[str, ...]:
        return await self._check_groups(name, await self._redis.smembers(self._keys.groups_of(name)))

    async def _check_groups(self, person: str, indexed: Iterable[Any]) -> tuple[str, ...]:
        """Return those of the groups in a person's index that name them; without MACs, the index is as good."""
        names = sorted(map(text, indexed))
        if not names or not self._pipeline.macs.active:
            return tuple(names)
        raws = await self._pipeline.ask("HMGET", self._keys.groups, *names)
        named = ((f"group {name}", raw) for name, raw in zip(names, raws, strict=True) if raw)
        return tuple(group.name for group in self._readings.read_others(Group, named) if person in group.members)

    async def save_given(self, token_hash: str, given: PasswordGiven, kept_ms: int) -> None:
        await self._redis.set(self._keys.password_given(token_hash), given.model_dump_json(), px=kept_ms)

    async def find_given(self, token_hash: str) -> PasswordGiven | None:
        raw = await self._redis.get(self._keys.password_given(token_hash))
        return try_read(PasswordGiven, raw) if raw is not None else None

    async def open_session(self, token_hash: str, session: Session, idle_ms: int) -> None:
        """Save a session that ends after `idle_ms` without use, and add it to the person's sessions."""
        index = self._keys.sessions_of(session.name)
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.set(name_shared(self._redis, SESSIONS + token_hash), session.model_dump_json(), px=idle_ms)
            pipe.zadd(index, {token_hash: session.created_at_ms})
            pipe.expire(index, LONGEST_SESSION_S)
            await pipe.execute()

    async def list_sessions(self, name: str) -> list[OpenSession]:
        """Return a person's sessions, the newest first; remove ended ones from the index."""
        index = self._keys.sessions_of(name)
        hashes = texts(await self._redis.zrange(index, 0, -1, desc=True))
        async with self._redis.pipeline(transaction=False) as pipe:
            for token_hash in hashes:
                pipe.get(name_shared(self._redis, SESSIONS + token_hash))
                pipe.pttl(name_shared(self._redis, SESSIONS + token_hash))
            replies = await pipe.execute()
        gone = [token_hash for token_hash, raw in zip(hashes, replies[::2], strict=True) if raw is None]
        if gone:
            await self._redis.zrem(index, *gone)
        return [
            OpenSession(token_hash, session, left_ms)
            for token_hash, raw, left_ms in zip(hashes, replies[::2], replies[1::2], strict=True)
            if raw is not None and (session := self._readings.read_other(Session, raw, f"session {token_hash[:12]}"))
        ]

    async def save_key(self, key_hash: str, key: ApiKey) -> None:
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.set(name_shared(self._redis, KEYS + key_hash), key.model_dump_json())
            pipe.hset(self._keys.api_keys, key.id, key_hash)
            await pipe.execute()

    async def change_key(self, key_hash: str, change: Callable[[ApiKey], ApiKey]) -> ApiKey | None:
        return await self._change(ApiKey, name_shared(self._redis, KEYS + key_hash), None, change)

    async def find_key_hash(self, key_id: str) -> str | None:
        raw = await self._redis.hget(self._keys.api_keys, key_id)
        return text(raw) if raw else None

    async def list_keys(self) -> list[ApiKey]:
        """Return all API keys of the tenant, including revoked ones, the oldest first."""
        hashes = texts(await self._redis.hvals(self._keys.api_keys))
        raws = await self._redis.mget([name_shared(self._redis, KEYS + hash_) for hash_ in hashes]) if hashes else []
        named = ((f"key {hash_[:12]}", raw) for hash_, raw in zip(hashes, raws, strict=True) if raw)
        return sorted(self._readings.read_others(ApiKey, named), key=lambda key: key.created_at_ms)

    async def scan_keys(self) -> list[StoredKey]:
        """Return all API keys of the tenant, the oldest first: every record of a key, also beside the index."""
        index: Any
        index = await self._redis.hgetall(self._keys.api_keys)
        names = [
            text(name) async for name in self._redis.scan_iter(f"{name_shared(self._redis, KEYS)}*", count=_SCANNED)
        ]
        records: list[Any] = []
        for begin in range(0, len(names), _SCANNED):
            records += await self._redis.mget(names[begin : begin + _SCANNED])
        listed = {(text(key_id), text(key_hash)) for key_id, key_hash in index.items()}
        stored = []
        for name, raw in zip(names, records, strict=True):
            key_hash = name.removeprefix(name_shared(self._redis, KEYS))
            key = self._read(ApiKey, raw, f"key {key_hash[:12]}") if raw else None
            if key is not None and key.tenant == self._keys.tenant:
                stored.append(StoredKey(key_hash, key, (key.id, key_hash) in listed))
        return sorted(stored, key=lambda record: (record.key.created_at_ms, record.key.name))

    async def list_uses(self) -> dict[str, int]:
        """Return when each key, by id, and each person, by `PERSON` and name, was last here; ms."""
        return {text(name): int(at_ms) for name, at_ms in (await self._redis.hgetall(self._keys.used)).items()}

    async def _change(
        self, model: type[Kept], key: str, name: str | None, change: Callable[[Kept], Kept]
    ) -> Kept | None:
        described = f"key {key.removeprefix(name_shared(self._redis, KEYS))[:12]}" if name is None else f"person {name}"

        async def write(pipe: Pipeline) -> Kept | None:
            raw = await (pipe.get(key) if name is None else pipe.hget(key, name))
            if raw is None:
                return None
            changed = change(self._readings.require_other(model, raw, described))
            pipe.multi()  # type: ignore[no-untyped-call]
            packed = changed.model_dump_json()
            pipe.set(key, packed) if name is None else pipe.hset(key, name, packed)
            return changed

        changed: Kept | None = await self._redis.transaction(write, key, value_from_callable=True)
        return changed


class InstanceKey(Stored):
    """The instance of a credential of the Agent Approval Protocol."""

    tenant: str
    instance_id: str


class Tokens:
    """Look-ups by the hash of a token, for all tenants."""

    def __init__(self, connections: Connections) -> None:
        self._redis, self._pipeline = connections.redis, connections.changes
        self._was_set_up = False

    async def check_store(self) -> None:
        """Raise `Unavailable` if the store was set up, and has been emptied since: then it knows no token."""
        if await self._redis.exists(name_shared(self._redis, FORMAT)):
            self._was_set_up = True
        elif self._was_set_up:
            raise Unavailable(EMPTIED)

    async def find(self, token_hash: str) -> ApiKey | Session | None:
        key, session = await self._pipeline.ask_all(
            ("GET", name_shared(self._redis, KEYS + token_hash)),
            ("GET", name_shared(self._redis, SESSIONS + token_hash)),
        )
        if key is not None:
            return try_read(ApiKey, key)
        return try_read(Session, session) if session is not None else None

    async def find_key(self, token_hash: str) -> ApiKey | None:
        raw = await self._redis.get(name_shared(self._redis, KEYS + token_hash))
        return try_read(ApiKey, raw) if raw else None

    async def find_instance(self, token_hash: str) -> InstanceKey | None:
        raw = await self._redis.get(name_shared(self._redis, INSTANCE_KEYS + token_hash))
        return try_read(InstanceKey, raw) if raw else None

    async def extend_session(self, token_hash: str, idle_ms: int) -> bool:
        """Restart the idle time of a session; return False if it has ended."""
        return bool(await self._pipeline.ask("PEXPIRE", name_shared(self._redis, SESSIONS + token_hash), idle_ms))

    async def note_use(self, tenant: str, holder: str, at_ms: int) -> None:
        await self._redis.hset(keys_of(tenant).used, holder, at_ms)

    async def close_session(self, token_hash: str) -> None:
        await self._redis.delete(name_shared(self._redis, SESSIONS + token_hash))
