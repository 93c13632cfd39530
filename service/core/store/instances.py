"""Instances of the Agent Approval Protocol. A deleted one cannot suspend: its mark is kept for seven days."""

from sayso.core.clock import DAY_MS
from sayso.core.records.base import Immutable, Stored
from service.core.store.connection.commits import Commit
from service.core.store.connection.connecting import name_shared, text
from service.core.store.keys import INSTANCE_KEYS
from service.core.store.people import InstanceKey
from service.core.store.suspensions.commits import Idempotency
from service.core.store.tenants import StorePart

KEPT_MS = 7 * DAY_MS  # how long the Idempotency-Key of an instance and the mark of a deleted one are kept


class Registration(Immutable):
    """The URL that receives an instance's decisions, and the secret that signs them."""

    url: str
    registration_id: str
    signing_secret: str


class Instance(Stored):
    """One installation of an agent; `scope` is its provisioner."""

    id: str
    tenant: str
    scope: str
    name: str
    created_at_ms: int
    credential_hash: str
    delivery: Registration | None = None
    version: int = 0

    @property
    def owner(self) -> str:
        return f"aap:{self.id}"


class Instances(StorePart):
    """The instances of one tenant."""

    async def read(self, instance_id: str) -> Instance | None:
        raw = await self._redis.get(self._keys.instance(instance_id))
        body = text(raw).partition("|")[2] if raw else None
        return self._readings.require_other(Instance, body, f"instance {instance_id}") if body else None

    async def is_gone(self, instance_id: str, scope: str) -> bool:
        """Return whether this scope's instance was deleted in the last seven days."""
        raw = await self._redis.get(self._keys.gone(instance_id))
        return raw is not None and text(raw) == f"1|{scope}"

    async def save(self, instance: Instance, seen: Idempotency) -> Instance | None:
        """Save a new or changed instance; return None, and save nothing, after a concurrent change."""
        keys = self._keys
        saved = instance.model_copy(update={"version": instance.version + 1})
        commit = Commit()
        commit.expect(keys.instance(instance.id), instance.version)
        body = self._readings.seal_other(saved, f"instance {saved.id}")
        commit.write("SET", keys.instance(instance.id), f"{saved.version}|{body}")
        seen.write(commit, keys)
        return saved if await self._send(commit) else None

    async def let_in(self, instance: Instance) -> None:
        key = InstanceKey(tenant=instance.tenant, instance_id=instance.id)
        await self._redis.set(name_shared(self._redis, INSTANCE_KEYS + instance.credential_hash), key.model_dump_json())

    async def delete(self, instance: Instance, now_ms: int) -> bool:
        """Delete an instance and schedule the cancellation of its requests; False after a concurrent change."""
        keys = self._keys
        commit = Commit()
        commit.expect(keys.instance(instance.id), instance.version)
        commit.write("DEL", keys.instance(instance.id))
        commit.write("SET", keys.gone(instance.id), f"1|{instance.scope}", "PX", KEPT_MS)
        commit.write("ZADD", keys.deliveries, now_ms, f"gone:{instance.id}")
        if not await self._send(commit):
            return False
        await self._redis.delete(name_shared(self._redis, INSTANCE_KEYS + instance.credential_hash))
        return True
