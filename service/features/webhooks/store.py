"""Endpoints and senders with their secrets, two of which are valid while one is replaced, and waiting announcements."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from redis.asyncio.client import Pipeline

from sayso.core.records.base import Immutable, Stored
from sayso.core.records.events import WebhookEvent
from sayso.wire.channels import EndpointState
from service.core.store.announcements import Announcement
from service.core.store.connection.connecting import text
from service.core.store.suspensions.reading import name_stored
from service.core.store.tenants import TenantStore


class StoredRow(Stored):
    """Base class for a row, which is stored under its id."""

    id: str
    created_by: str
    created_at_ms: int


Row = TypeVar("Row", bound=StoredRow)


class RowStore(Generic[Row]):
    """The rows of one hash of a tenant."""

    def __init__(self, store: TenantStore, key: str, model: type[Row], kind: str) -> None:
        self._redis, self._key, self._model = store.redis, key, model
        self._readings, self._kind = store.readings, kind

    async def list_all(self) -> list[Row]:
        """Return all rows, the oldest first."""
        raws = await self._redis.hgetall(self._key)
        rows = (self._readings.read_other(self._model, raw, f"{self._kind} {text(id_)}") for id_, raw in raws.items())
        return sorted((row for row in rows if row is not None), key=lambda row: (row.created_at_ms, row.id))

    async def count(self) -> int:
        """Return the number of rows, unreadable ones included."""
        return int(await self._redis.hlen(self._key))

    async def find(self, row_id: str) -> Row | None:
        """Return a row, or None; raises `Unreadable` for one of a later version."""
        raw = await self._redis.hget(self._key, row_id)
        return self._readings.require_other(self._model, raw, f"{self._kind} {row_id}") if raw else None

    async def add(self, row: Row) -> None:
        await self._redis.hset(self._key, row.id, self._seal(row))

    async def change(self, row_id: str, change: Callable[[Row], Row]) -> Row | None:
        """Change a row atomically and return it; None if it does not exist."""

        async def write(pipe: Pipeline) -> Row | None:
            raw = await pipe.hget(self._key, row_id)
            if raw is None:
                return None
            changed = change(self._readings.require_other(self._model, raw, f"{self._kind} {row_id}"))
            pipe.multi()  # type: ignore[no-untyped-call]
            pipe.hset(self._key, row_id, self._seal(changed))
            return changed

        changed: Row | None = await self._redis.transaction(write, self._key, value_from_callable=True)
        return changed

    async def delete(self, row_id: str) -> bool:
        """Delete a row; False if it does not exist."""
        return bool(await self._redis.hdel(self._key, row_id))

    def _seal(self, row: Row) -> str:
        return self._readings.seal_other(row, f"{self._kind} {row.id}")


MOST_SECRETS = 3  # the most secrets of one endpoint or sender. A rotation ends the oldest one beyond.


class TimedSecret(Immutable):
    """A secret, and when it ends; None for the current one."""

    secret: str
    ends_at_ms: int | None = None


def list_valid(secrets: Sequence[TimedSecret], now_ms: int) -> list[str]:
    """Return the secrets that have not ended, the newest first."""
    return [secret.secret for secret in secrets if secret.ends_at_ms is None or now_ms < secret.ends_at_ms]


def rotate(secrets: Sequence[TimedSecret], new: str, now_ms: int, overlap_s: int) -> tuple[TimedSecret, ...]:
    """Return the secrets with a new one first; the others end after the overlap, or earlier."""
    ends_at_ms = now_ms + overlap_s * 1000
    kept = (
        secret.model_copy(update={"ends_at_ms": min(secret.ends_at_ms or ends_at_ms, ends_at_ms)})
        for secret in secrets
        if secret.ends_at_ms is None or now_ms < secret.ends_at_ms
    )
    ending = [secret for secret in kept if secret.ends_at_ms is None or secret.ends_at_ms > now_ms]
    return (TimedSecret(secret=new), *ending)[:MOST_SECRETS]


class AnnouncementQueue:
    """The announcements of one tenant. The commit of a suspension writes them while an endpoint exists."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._key, self._readings = store.redis, store.keys.announcements, store.readings

    async def due(self, now_ms: int, limit: int = 200) -> list[tuple[str, Announcement | None]]:
        """Return waiting announcements with their stored form, the oldest first; None for an unreadable one."""
        raws: list[Any] = await self._redis.zrangebyscore(self._key, "-inf", now_ms, start=0, num=limit)
        read = self._readings.read_other
        return [(text(raw), read(Announcement, raw, name_stored("announcement", raw))) for raw in raws]

    async def defer(self, stored: str, again_at_ms: int) -> None:
        """Postpone an announcement that cannot be sent yet, so that it does not delay the others."""
        await self._redis.zadd(self._key, {stored: again_at_ms}, xx=True)

    async def remove(self, *stored: str) -> None:
        """Remove announcements whose messages are saved."""
        if stored:
            await self._redis.zrem(self._key, *stored)

    async def bring_forward(self, now_ms: int) -> None:
        """Make every announcement due now, after the clock went back."""
        later: list[Any] = await self._redis.zrangebyscore(self._key, f"({now_ms}", "+inf")
        if later:
            await self._redis.zadd(self._key, {text(raw): now_ms for raw in later}, xx=True)


ENDPOINT_PREFIX = "whe_"


class Endpoint(StoredRow):
    """A URL that receives events: of every run, or of the runs of `owner`."""

    url: str
    events: tuple[WebhookEvent, ...]
    owner: str | None = None
    description: str = ""
    state: EndpointState = "unverified"
    reason: str = ""
    secrets: tuple[TimedSecret, ...]

    def wants(self, event: WebhookEvent, owner: str) -> bool:
        """Return whether it receives this event of a run of `owner`."""
        return self.state == "active" and event in self.events and self.owner in (None, owner)


class Endpoints(RowStore[Endpoint]):
    """The endpoints of one tenant. Changes are announced only while one exists; undelivered messages end when due."""

    def __init__(self, store: TenantStore) -> None:
        super().__init__(store, store.keys.endpoints, Endpoint, "endpoint")

    async def disable(self, endpoint_id: str, reason: str) -> None:
        """Send it no more events until it is verified again."""
        update = {"state": "disabled", "reason": reason}
        await self.change(endpoint_id, lambda endpoint: endpoint.model_copy(update=update))


class Sender(StoredRow):
    """A system that sends signed decisions of one reviewer."""

    name: str
    reviewer: str
    revoked_at_ms: int | None = None
    secrets: tuple[TimedSecret, ...]


class Senders(RowStore[Sender]):
    """The senders of one tenant."""

    def __init__(self, store: TenantStore) -> None:
        super().__init__(store, store.keys.senders, Sender, "sender")
