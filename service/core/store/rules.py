"""The rules in force, and the version of each live process."""

from collections import Counter
from typing import Any, NamedTuple

from sayso.core.clock import DAY_MS
from service.core.store.connection.connecting import text, translated
from service.core.store.lua import read_script
from service.core.store.tenants import TenantStore
from service.features.rulebook.store import MOST_CHANGES, SHADOW
from service.features.whatif.store import RuleHistory

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
        self._redis, self._keys = store.redis, store.keys
        self.history = RuleHistory(store)
        self._publish = store.redis.register_script(_SCRIPT)

    async def publish(
        self, holder: Holder, how: str, rules: str = "", *, digest: str = "", needed: int = 0
    ) -> Published:
        """Report the version of a process, and with `rules` put it in force if it is newer.

        It must be attested by `needed` people, who saw the bytes of this digest.
        """
        keys = self._keys
        names = [keys.rules, keys.rulebook, keys.rule_changes, keys.attestations(digest)]
        held: list[str | int] = [holder.process, holder.file, holder.version, rules, how, ALIVE_MS]
        async with translated():
            reply: Any = await self._publish(keys=names, args=[*held, needed, digest, MOST_CHANGES])
        return Published(text(reply[0]), bool(reply[1]), text(reply[2]))

    async def read_version(self) -> str | None:
        """Return the version in force, or None before the first publication."""
        async with translated():
            version = await self._redis.hget(self._keys.rules, "in-force")
        return text(version) if version else None

    async def read_rules(self) -> tuple[str, str]:
        """Return the version in force and its rules, as of one moment."""
        keys = self._keys
        async with translated(), self._redis.pipeline(transaction=True) as pipe:
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
        async with translated():
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
        async with translated():
            refs: list[Any] = await self._redis.lrange(self._keys.asked_by(rule_id), 0, -1)
        return [(suspension_id, item_id) for suspension_id, _, item_id in (text(ref).partition(" ") for ref in refs)]

    async def list_holders(self) -> list[Holder]:
        """Return the live processes, by name."""
        async with translated(), self._redis.pipeline(transaction=True) as pipe:
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
        async with translated():
            await self._redis.hdel(self._keys.rules, f"p:{process}")
