"""The rules in force, their versions with who attested them, and the calls that each rule decided."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from pydantic import Field

from sayso.core.clock import DAY_MS
from sayso.core.records.base import Stored
from sayso.core.records.events import Event, EventType
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.errors import Conflict, NotFound
from service.core.store.connection.commits import Commit, Update
from service.core.store.connection.connecting import text, texts
from service.core.store.connection.macs import REFUSED
from service.core.store.keys import TenantKeys
from service.core.store.lua import read_script
from service.core.store.suspensions.reading import name_stored
from service.core.store.tenants import TenantStore

ALIVE_MS = 20_000  # how long after its last report a process counts as alive
_SCRIPT = read_script("rules")


class Holder(NamedTuple):
    """A live process, the file it reads its rules from, and their version."""

    process: str
    file: str
    version: str


class Published(NamedTuple):
    """The version in force; whether a live process or a person holds it; and why the published one is held back."""

    version: str
    alive: bool
    held_back: str


class RuleStore:
    """The rules in force for each tenant."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys, self._macs = store.redis, store.keys, store.connections.macs
        self.versions = VersionStore(store)
        self._publish = store.redis.register_script(_SCRIPT)

    async def publish(
        self, holder: Holder, how: str, rules: str = "", *, digest: str = "", needed: int = 0
    ) -> Published:
        """Report the version of a process; put `rules` in force if newer and attested by `needed` people."""
        keys = self._keys
        missing = needed - await self.versions.count_attestations(digest) if needed else 0
        protected = self._macs.add(keys.rulebook, rules) if rules else ""
        args: list[str | int] = [holder.process, holder.file, holder.version, protected, how, ALIVE_MS]
        args += [max(0, missing), digest, MOST_CHANGES]
        reply: Any = await self._publish(keys=[keys.rules, keys.rulebook, keys.rule_changes], args=args)
        return Published(text(reply[0]), bool(reply[1]), text(reply[2]))

    async def read_rules(self) -> tuple[str, str]:
        keys = self._keys
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.hget(keys.rules, "in-force")
            pipe.get(keys.rulebook)
            version, rules = await pipe.execute()
        return text(version or b""), (rules or b"").decode(errors="replace")

    async def count_hits(self, days: int) -> dict[str, int]:
        """Return how many calls each rule decided today and on the days before, `days` in all; UTC."""
        return {name: count for name, count in (await self._count(days)).items() if not name.startswith(SHADOW)}

    async def count_shadow_hits(self, rule_id: str, days: int) -> dict[str, int]:
        """Return how often a shadow rule would have taken each action in the last `days`; `failed` counts errors."""
        begin = f"{SHADOW}{rule_id}:"
        hits = await self._count(days)
        return {name.removeprefix(begin): count for name, count in hits.items() if name.startswith(begin)}

    async def _count(self, days: int) -> dict[str, int]:
        seconds, _ = await self._redis.time()
        today = seconds * 1000 // DAY_MS
        async with self._redis.pipeline(transaction=False) as pipe:
            for day in range(today - days + 1, today + 1):
                pipe.hgetall(self._keys.rule_hits(day))
            replies = await pipe.execute()
        hits: Counter[str] = Counter()
        for counts in replies:
            hits.update({text(name): int(count) for name, count in counts.items()})
        return dict(hits)

    async def list_asked(self, rule_id: str) -> list[tuple[str, str]]:
        """Return the suspension and item ids of the last items that the rule asked for, the newest first."""
        refs: list[Any] = await self._redis.lrange(self._keys.asked_by(rule_id), 0, -1)
        return [(suspension_id, item_id) for suspension_id, _, item_id in (text(ref).partition(" ") for ref in refs)]

    async def list_holders(self) -> list[Holder]:
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.hgetall(self._keys.rules)
            pipe.time()
            reports, (seconds, _) = await pipe.execute()
        holders: list[Holder] = []
        for name, report in reports.items():
            if text(name).startswith("p:"):
                version, at_ms, file = text(report).split("|", 2)
                if int(at_ms) > seconds * 1000 - ALIVE_MS:
                    holders.append(Holder(text(name)[2:], file, version))
        return sorted(holders)

    async def remove(self, process: str) -> None:
        await self._redis.hdel(self._keys.rules, f"p:{process}")


MOST_VERSIONS = 500  # the limit of kept versions. That in force is among the latest saved or has a later change.
MOST_CHANGES = 1_000
_RESTORE = read_script("restore")


def digest_files(raw: bytes, lists: Mapping[str, str]) -> str:
    """Return the SHA-256 of a file of rules; with lists, that of a line with digest and name for each."""
    own = sha256(raw).hexdigest()
    lines = [f"{sha256(text.encode()).hexdigest()}  {name}\n" for name, text in sorted(lists.items())]
    return sha256("".join([f"{own}\n", *lines]).encode()).hexdigest() if lines else own


class RuleVersion(Stored):
    """A version of the rules: the texts of its file and `lists`, their `digest_files`, and the rules as JSON."""

    version: str
    digest: str
    file: str
    text: str
    lists: dict[str, str] = Field(default_factory=dict)
    rules: str
    saved_at_ms: int = 0


class ForceChange(Stored):
    """A version that came into force. `how` is `start`, `changed` or `restored`, and `by` the process or the person."""

    version: str
    digest: str
    at_ms: int
    how: str
    by: str


class Attestation(NamedTuple):
    """A person who attests the exact bytes of a file."""

    by: str
    at_ms: int


class VersionStore:
    """The versions of one tenant."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys, self._readings = store.redis, store.keys, store.readings
        self._macs = store.connections.macs
        self._restore = store.redis.register_script(_RESTORE)

    async def save(self, version: RuleVersion) -> None:
        """Save a version unless its bytes are saved already; the oldest beyond the limit are deleted."""
        keys = self._keys
        raw = await self._redis.get(keys.rule_version(version.version))
        seconds, micros = await self._redis.time()
        known = self._readings.read_other(RuleVersion, raw, f"version {version.version} of the rules") if raw else None
        if known is not None and known.digest == version.digest:
            return
        now_ms = seconds * 1000 + micros // 1000
        saved = version.model_copy(update={"saved_at_ms": now_ms})
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.set(keys.rule_version(version.version), saved.model_dump_json())
            pipe.zadd(keys.rule_versions, {version.version: now_ms})
            pipe.zrange(keys.rule_versions, 0, -MOST_VERSIONS - 1)
            *_, old = await pipe.execute()
        kept = {await self._redis.hget(keys.rules, "in-force"), version.version.encode()}
        kept |= {json.loads(shadow)["version"].encode() for shadow in await self._redis.lrange(keys.shadows, 0, 0)}
        if gone := [name for name in old if name not in kept]:
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.unlink(*(keys.rule_version(text(name)) for name in gone))
                pipe.zrem(keys.rule_versions, *gone)
                await pipe.execute()

    async def read(self, version: str) -> RuleVersion:
        """Return a version; raises `NotFound`."""
        raw = await self._redis.get(self._keys.rule_version(version))
        if raw is None:
            raise NotFound(f"There is no version {version!r} of the rules. The latest {MOST_VERSIONS} are kept.")
        return self._readings.require_other(RuleVersion, raw, f"version {version} of the rules")

    async def list_all(self) -> list[RuleVersion]:
        names = texts(await self._redis.zrevrange(self._keys.rule_versions, 0, -1))
        raws = await self._redis.mget([self._keys.rule_version(name) for name in names]) if names else []
        named = ((f"version {name} of the rules", raw) for name, raw in zip(names, raws, strict=True) if raw)
        return self._readings.read_others(RuleVersion, named)

    async def list_changes(self) -> list[ForceChange]:
        raws: list[Any] = await self._redis.lrange(self._keys.rule_changes, 0, -1)
        named = ((name_stored("change of the rules", raw), raw) for raw in reversed(raws))
        return self._readings.read_others(ForceChange, named)

    async def attest(self, digest: str, by: str, now_ms: int) -> None:
        """Record that a person attests these bytes; a second time changes nothing."""
        await self._redis.hsetnx(self._keys.attestations(digest), by, str(now_ms))

    async def list_attestations(self, digest: str) -> list[Attestation]:
        stored: dict[Any, Any] = await self._redis.hgetall(self._keys.attestations(digest))
        attestations = (Attestation(text(by), int(at_ms)) for by, at_ms in stored.items() if at_ms != REFUSED)
        return sorted(attestations, key=lambda attestation: attestation.at_ms)

    async def count_attestations(self, digest: str) -> int:
        return len(await self.list_attestations(digest))

    async def read_withdrawn(self) -> frozenset[str]:
        """Return the versions that earlier ones replaced, and the digests of their bytes; none comes back by itself."""
        return frozenset(text(await self._redis.hget(self._keys.rules, "withdrawn") or b"").split())

    async def read_in_force(self) -> str:
        """Return the version in force; empty before the first publication."""
        return text(await self._redis.hget(self._keys.rules, "in-force") or b"")

    async def restore(self, version: RuleVersion, by: str, replaces: str, digest: str) -> None:
        """Put a version in force and withdraw `replaces`, which has this digest; raises `Conflict` unless that is."""
        keys = self._keys
        rules = self._macs.add(keys.rulebook, version.rules)
        args: list[str | int] = [version.version, rules, version.digest, by, replaces, digest, MOST_CHANGES]
        reply: Any = await self._restore(keys=[keys.rules, keys.rulebook, keys.rule_changes], args=args)
        if text(reply) != version.version:
            raise Conflict(f"Version {text(reply)} came into force meanwhile. Read the versions again.")


DEFAULT = "-"  # the name of the default among rules; no rule id begins with it
HITS_KEPT_MS = 40 * DAY_MS
MOST_ITEMS = 20


SHADOW = "shadow:"  # the beginning of the counts of shadow rules, `shadow:<rule>:<action>`; no rule id has a colon
FAILED = "failed"  # the action of a shadow rule that could not be evaluated


def note_rules(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Count the calls that rules decided, and list the items that they ask for."""
    if hits := count_hits(update.change.events):
        key = keys.rule_hits(update.at_ms // DAY_MS)
        for rule_id, count in hits.items():
            commit.write("HINCRBY", key, rule_id, count)
        commit.write("PEXPIRE", key, HITS_KEPT_MS)
    for rule_id, entries in list_asked(update.before, update.change).items():
        key = keys.asked_by(rule_id)
        commit.write("LPUSH", key, *entries)
        commit.write("LTRIM", key, 0, MOST_ITEMS - 1)


def count_hits(events: Sequence[Event]) -> Counter[str]:
    """Return how many calls each rule decided, and what shadow rules would have done."""
    hits: list[str] = []
    for event in events:
        if event.type is EventType.POLICY_DECISION:
            data = event.data
            by_default = data.get("rule_version") and not data.get("error")
            if name := data.get("policy_id") or (DEFAULT if by_default else None):
                hits.append(name)
            shadows = data.get("shadow")
            rows = (row for row in shadows if isinstance(row, dict)) if isinstance(shadows, list) else ()
            hits += [f"{SHADOW}{row['rule_id']}:{row.get('action', FAILED)}" for row in rows]
    return Counter(hits) if hits else Counter()


def list_asked(before: SuspensionRecord | None, change: Change) -> dict[str, list[str]]:
    """Return the entries of new items that wait for a person, by their rule; calls in doubt have none."""
    known = {item.item_id for item in before.items} if before is not None else set()
    new = [(change.record.id, item) for item in change.record.items if item.item_id not in known]
    if change.following is not None:
        new += [(change.following.id, item) for item in change.following.items]
    asked: dict[str, list[str]] = {}
    for suspension_id, item in new:
        if item.open and item.doubt is None and item.drill is None:
            asked.setdefault(item.terms.rule_id or DEFAULT, []).append(f"{suspension_id} {item.item_id}")
    return asked
