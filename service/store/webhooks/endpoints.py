"""Endpoints: the URLs that receive events, each with its own signing secrets."""

from collections.abc import Callable
from typing import Literal

from sayso.core.records.base import Immutable
from service.store.suspensions.announcements import WebhookEvent
from service.store.tenants import TenantStore
from service.store.webhooks.rows import RowStore
from service.store.webhooks.secrets import TimedSecret

ENDPOINT_PREFIX = "whe_"

EndpointState = Literal["unverified", "active", "disabled"]
"""An endpoint receives events once it returned a challenge, until it answers 410 or an admin disables it."""


class Endpoint(Immutable):
    """A URL that receives events: of every run, or of the runs of `owner`."""

    id: str
    url: str
    events: tuple[WebhookEvent, ...]
    owner: str | None = None
    description: str = ""
    created_by: str
    created_at_ms: int
    state: EndpointState = "unverified"
    reason: str = ""
    secrets: tuple[TimedSecret, ...]

    def wants(self, event: WebhookEvent, owner: str) -> bool:
        """Return whether it receives this event of a run of `owner`."""
        return self.state == "active" and event in self.events and self.owner in (None, owner)


class Endpoints:
    """The endpoints of one tenant. Changes are announced only while one exists."""

    def __init__(self, store: TenantStore) -> None:
        self._rows = RowStore(store, store.keys.endpoints, Endpoint)

    async def list_all(self) -> list[Endpoint]:
        """Return all endpoints, the oldest first."""
        return sorted(await self._rows.list_all(), key=lambda endpoint: (endpoint.created_at_ms, endpoint.id))

    async def count(self) -> int:
        """Return the number of endpoints, unreadable ones included."""
        return await self._rows.count()

    async def find(self, endpoint_id: str) -> Endpoint | None:
        return await self._rows.find(endpoint_id)

    async def add(self, endpoint: Endpoint) -> None:
        await self._rows.add(endpoint.id, endpoint)

    async def change(self, endpoint_id: str, change: Callable[[Endpoint], Endpoint]) -> Endpoint | None:
        """Change an endpoint atomically and return it; None if it does not exist."""
        return await self._rows.change(endpoint_id, change)

    async def disable(self, endpoint_id: str, reason: str) -> None:
        """Send it no more events until it is verified again."""
        update = {"state": "disabled", "reason": reason}
        await self._rows.change(endpoint_id, lambda endpoint: endpoint.model_copy(update=update))

    async def delete(self, endpoint_id: str) -> bool:
        """Delete an endpoint; False if it does not exist. Its undelivered messages end when they are due."""
        return await self._rows.delete(endpoint_id)
