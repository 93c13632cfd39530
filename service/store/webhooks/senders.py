"""Senders of signed decisions, each with its own secrets and the reviewer in whose name it decides."""

from collections.abc import Callable

from sayso.core.records.base import Immutable
from service.store.tenants import TenantStore
from service.store.webhooks.rows import RowStore
from service.store.webhooks.secrets import TimedSecret


class Sender(Immutable):
    """A system that sends signed decisions of one reviewer."""

    id: str
    name: str
    reviewer: str
    created_by: str
    created_at_ms: int
    revoked_at_ms: int | None = None
    secrets: tuple[TimedSecret, ...]


class Senders:
    """The senders of one tenant."""

    def __init__(self, store: TenantStore) -> None:
        self._rows = RowStore(store, store.keys.senders, Sender)

    async def list_all(self) -> list[Sender]:
        """Return all senders, the oldest first."""
        return sorted(await self._rows.list_all(), key=lambda sender: (sender.created_at_ms, sender.id))

    async def find(self, sender_id: str) -> Sender | None:
        return await self._rows.find(sender_id)

    async def add(self, sender: Sender) -> None:
        await self._rows.add(sender.id, sender)

    async def change(self, sender_id: str, change: Callable[[Sender], Sender]) -> Sender | None:
        """Change a sender atomically and return it; None if it does not exist."""
        return await self._rows.change(sender_id, change)
