"""Sayso's evidence: status and audit trail of every run, read over the API after the experiment."""

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.records.deliveries import DeliveryState
from sayso.core.records.events import EventType, TrailEntry
from sayso.core.records.suspensions import RunStatus
from tests.chaos.evidence.client_log import parse_ms
from tests.chaos.workload.clients import Clients
from tests.chaos.workload.plans import REVIEWERS

FILE = "trails.jsonl"
_PAGE = 200
_AT_ONCE = 8


class DeliveryLine(BaseModel):
    """The final state of one delivery of an item's card."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    suspension_id: str
    item_id: str
    channel: str
    person: str
    state: DeliveryState
    reason: str | None

    @property
    def proven(self) -> bool:
        """Whether it says that the provider accepted the card."""
        return self.state in (DeliveryState.SENT, DeliveryState.SEEN)


class Trail(BaseModel):
    """The final status of one run, its trail events, and the deliveries of its items."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    status: RunStatus
    entries: tuple[TrailEntry, ...]
    deliveries: tuple[DeliveryLine, ...] = ()
    fault: str | None = None


class _DeliveryView(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    channel: str
    person: str
    state: DeliveryState
    reason: str | None


class _ItemView(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    item_id: str
    deliveries: tuple[_DeliveryView, ...]


class _SuspensionView(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    items: tuple[_ItemView, ...]


class _RunView(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    status: RunStatus


class _EventView(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    seq: int
    at: str
    type: str
    data: JsonObject
    hash: str
    erased_by: int | None

    def as_entry(self) -> TrailEntry:
        return TrailEntry(at_ms=parse_ms(self.at), **self.model_dump(exclude={"at"}))


class _PageView(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    events: tuple[_EventView, ...]
    next_after: int
    head: dict[str, JsonValue] | None = None
    partial: bool = False
    fault: str | None = None


async def save_trails(clients: Clients, run_ids: Iterable[str], folder: Path) -> None:
    """Write the trails of these runs into the folder, one JSON line per run."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def read(run_id: str) -> Trail:
        async with slots:
            return await _read_trail(clients, run_id)

    with (folder / FILE).open("w", encoding="utf-8") as file:
        for found in asyncio.as_completed([read(run_id) for run_id in run_ids]):
            file.write((await found).model_dump_json() + "\n")


def read_trails(folder: Path) -> Iterator[Trail]:
    """Return the saved trails, one at a time."""
    with (folder / FILE).open(encoding="utf-8") as lines:
        yield from map(Trail.model_validate_json, lines)


async def _read_trail(clients: Clients, run_id: str) -> Trail:
    run = _RunView.model_validate(await clients.read(REVIEWERS[0], f"/api/v1/runs/{run_id}"))
    entries: list[TrailEntry] = []
    while True:
        path = f"/api/v1/runs/{run_id}/events?after={len(entries)}&limit={_PAGE}"
        page = _PageView.model_validate(await clients.read(REVIEWERS[0], path))
        entries += [event.as_entry() for event in page.events]
        if len(page.events) < _PAGE:
            break
    paused = [entry.data["payload"]["suspension_id"] for entry in entries if entry.type == EventType.RUN_PAUSED]
    deliveries = [one for suspension_id in paused for one in await read_deliveries(clients, suspension_id)]
    return Trail(
        run_id=run_id, status=run.status, entries=tuple(entries), deliveries=tuple(deliveries), fault=page.fault
    )


async def read_deliveries(clients: Clients, suspension_id: str) -> list[DeliveryLine]:
    """Return the deliveries of all items of a suspension."""
    found = _SuspensionView.model_validate(await clients.read(REVIEWERS[0], f"/api/v1/suspensions/{suspension_id}"))
    return [
        DeliveryLine(suspension_id=found.id, item_id=item.item_id, **one.model_dump())
        for item in found.items
        for one in item.deliveries
    ]
