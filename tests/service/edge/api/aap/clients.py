"""AAP clients for tests: a provisioner, its instances, and their requests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from httpx import ASGITransport, AsyncBaseTransport, AsyncClient, AsyncHTTPTransport, Response

from sayso.core.clock import new_uuid
from sayso.core.records.suspensions import Change, SuspensionRecord
from service.core.wiring import Wiring
from tests.builders import with_deadline
from tests.service.worlds import World

PREFIX = "/api/aap/v1"


async def make_provisioner(wiring: Wiring, name: str = "platform") -> str:
    """Create a provisioner and return its token."""
    _, token = await wiring.api_keys.create(name, kind="provisioner")
    return token


@dataclass
class InstanceClient:
    """An instance, with a client that sends its credential."""

    id: str
    token: str
    client: AsyncClient

    async def ask(self, tool: str = "refund", args: Any = None, key: str | None = None, **members: Any) -> Response:
        """Create a request for one call."""
        body = {"tool": tool, "arguments": args or {}, "timeout": "10m", **members}
        return await self.client.post("/requests", json=body, headers={"Idempotency-Key": key or new_uuid()})

    async def waiting(self, **members: Any) -> str:
        """Create a pending request and return its id."""
        answer = await self.ask(**members)
        assert (answer.status_code, answer.json()["status"]) == (201, "pending"), answer.text
        return str(answer.json()["id"])

    async def show(self, request_id: str, wait: str = "") -> dict[str, Any]:
        """Return the current request."""
        answer = await self.client.get(f"/requests/{request_id}", params={"wait": wait} if wait else {})
        assert answer.status_code == 200, answer.text
        shown: dict[str, Any] = answer.json()
        return shown

    async def consume(self, request_id: str, key: str = "k") -> Response:
        """Consume an approval."""
        return await self.client.post(f"/requests/{request_id}/consume", headers={"Idempotency-Key": key})


@asynccontextmanager
async def connected(where: World | str, token: str) -> AsyncIterator[AsyncClient]:
    """Yield a client with one credential, for the app in this process or at a URL."""
    transport: AsyncBaseTransport
    if isinstance(where, World):
        transport, base = ASGITransport(app=where.app), "http://sayso.test"
    else:
        transport, base = AsyncHTTPTransport(), where
    headers = {"Authorization": f"Bearer {token}"}
    async with AsyncClient(transport=transport, base_url=f"{base}{PREFIX}", headers=headers, timeout=40) as client:
        yield client


@asynccontextmanager
async def make_instance(where: World | str, provisioner: str, **members: Any) -> AsyncIterator[InstanceClient]:
    """Create an instance and yield its client."""
    async with connected(where, provisioner) as client:
        answer = await client.post("/instances", json=members, headers={"Idempotency-Key": new_uuid()})
    assert answer.status_code == 201, answer.text
    created = answer.json()
    async with connected(where, created["credential"]["token"]) as client:
        yield InstanceClient(created["instance"]["id"], created["credential"]["token"], client)


def suspension_of(request_id: str) -> str:
    """Return the suspension id of a request."""
    return f"sus_{request_id.replace('-', '')}"


async def find(wiring: Wiring, request_id: str) -> SuspensionRecord:
    """Return the suspension of a request."""
    record = (await wiring.desk.suspensions.read(suspension_of(request_id))).record
    assert record is not None
    return record


async def make_late(wiring: Wiring, request_id: str) -> None:
    """Move a request's deadline one second into the past, without a tick."""

    def verb(record: SuspensionRecord, now_ms: int) -> Change:
        (item,) = record.items
        late = with_deadline(record, item, now_ms - 1000)
        return Change(record.model_copy(update={"items": (late,), "created_at_ms": now_ms - 60_000}))

    await wiring.desk.suspensions.change(suspension_of(request_id), verb)


async def make_stale(wiring: Wiring, request_id: str) -> None:
    """Move the latest start of an approved call into the past."""

    def verb(record: SuspensionRecord, now_ms: int) -> Change:
        (item,) = record.items
        assert item.outcome is not None
        outcome = item.outcome.model_copy(update={"start_by_ms": now_ms - 1000, "at_ms": now_ms - 60_000})
        stale = item.model_copy(update={"outcome": outcome})
        return Change(record.model_copy(update={"items": (stale,), "due_at_ms": now_ms - 1000}))

    await wiring.desk.suspensions.change(suspension_of(request_id), verb)
