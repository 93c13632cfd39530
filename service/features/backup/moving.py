"""A move of one tenant to another store. At most one copy is live at any instant, also after a kill.

The old copy is held by a mark that ends by itself unless this process renews it. It becomes `moved` in one step, and
only while the hold has lasted; until then the old copy is live again once the hold is over. The new copy becomes live
with the first process that opens it; until then the tenant can go back.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from sayso.core.clock import monotonic_ms, new_id, now_ms
from sayso.core.records.suspensions import Status
from sayso.errors import Conflict, InvalidInput, NotFound, Unavailable, Unreadable
from service.assembly import assemble
from service.core.settings import Settings
from service.core.settings.stores import check_store_url, hide_password, name_tenant, read_cluster
from service.core.store.connection.connecting import check_durability, connect, name_shared, text
from service.core.store.connection.formats import check_format
from service.core.store.connection.macs import Macs, find_kind
from service.core.store.keys import STORE
from service.core.store.loss.moves import Move, State, read_move
from service.core.wiring import Wiring
from service.features.backup.files import Entry
from service.features.backup.restoring import verify_tenant
from service.features.backup.store import APART, Copy, Link, compare, load

HOLD_MS = 20_000
HEARD_S = 30  # how long the processes have to hear of the move
DRAIN_S = 30  # how long workers have to end the runs that they drive
_POLL_S = 0.2
_ACTIVE_MS = 10_000  # how long after its last comparison of commits a process counts as running
_CONFIRMED_MS = 5_000
_FORGOTTEN_MS = 3_600_000
_FAULTY = "The old copy stays live. `sayso doctor` says more."
_AGAIN = "Nothing was lost, and the old copy is live. Run the command again."


class TenantMove:
    """The two copies of a tenant, and the steps between them. Each step may be repeated."""

    def __init__(self, settings: Settings, url: str, old: Copy, new: Copy, ids: tuple[str, str]) -> None:
        self._settings, self._url, self._old, self._new = settings, url, old, new
        self._source, self._target = ids

    async def run(self) -> AsyncIterator[str]:
        """Move the tenant, or end a move that was cut off; yield the lines to print. Raises `SaysoError`."""
        before = read_move(await self._old.read_mark() or None)
        if before is not None and before.state != "moved":
            raise Conflict(
                f"Another move of {self._tenant} is under way, or was cut off less than {HOLD_MS // 1000} s ago. Wait "
                "until it ends, then run the command again."
            )
        move = before or self._make("draining", new_id("mov"))
        if before is None:
            async with self._held(move) as held:
                async for line in self._copy(move, held):
                    yield line
        else:
            self._check_target(before)
        yield await self._finish(move.id)

    async def go_back(self) -> str:
        """Make the old copy live again, unless a process has opened the new one."""
        raw_old, raw_new = await self._old.read_mark(), await self._new.read_mark()
        old, new = read_move(raw_old or None), read_move(raw_new or None)
        if old is not None and old.state != "moved":
            raise Conflict(f"A move is under way. Stop it, or wait {HOLD_MS // 1000} s, then run the command again.")
        if old is not None:
            self._check_target(old)
        if new is None and not await self._new.is_empty():
            raise Conflict(
                f"{self._tenant} is live in {hide_password(self._url)} already: a process has opened it there. Move it "
                "from there instead, with the settings that name that store."
            )
        gone = ""
        if new is not None:
            if new.source != self._source or new.state not in ("arriving", "ready"):
                raise Conflict(f"The copy in {hide_password(self._url)} is not one of this store. Nothing was changed.")
            gone = new.model_copy(update={"state": "arriving"}).pack()
            if not await self._new.swap(raw_new, gone):
                raise Conflict("A process has opened the new copy just now. Nothing was changed.")
        if raw_old and not await self._old.swap(raw_old, ""):
            raise Conflict("Another process changed the move just now. Run the command again.")
        if gone:
            await self._new.delete()
            await self._new.swap(gone, gone, _FORGOTTEN_MS)
        return f"{self._tenant} is live in the old store; nothing of it is left in {hide_password(self._url)}."

    async def erase(self) -> str:
        """Delete what the tenant left in the other store, from which it moved here; the mark stays there."""
        left, live = read_move(await self._new.read_mark() or None), await self._old.read_mark()
        if live or left is None or left.state != "moved" or left.target != self._source:
            raise Conflict(
                f"{hide_password(self._url)} is no store from which {self._tenant} has moved to that of the "
                "settings. Nothing was changed."
            )
        await self._new.delete()
        return f"Nothing of {self._tenant} is left in {hide_password(self._url)} but a mark that it has moved."

    def _check_target(self, move: Move) -> None:
        if move.target != self._target:
            raise Conflict(f"{self._tenant} has moved to another store than {hide_password(self._url)}. Name that one.")

    @property
    def _tenant(self) -> str:
        return self._settings.tenant

    def _make(self, state: State, move_id: str) -> Move:
        return Move(id=move_id, state=state, source=self._source, target=self._target, at_ms=now_ms())

    @asynccontextmanager
    async def _held(self, move: Move) -> AsyncIterator["_Hold"]:
        """Hold the old copy during the block, and end the hold unless it has become the mark of a moved copy."""
        hold = _Hold(self._old, move)
        await hold.begin()
        renewing = asyncio.create_task(hold.renew())
        try:
            yield hold
        finally:
            renewing.cancel()
            with suppress(Unavailable):
                await self._old.swap(hold.raw, "")

    async def _copy(self, move: Move, hold: "_Hold") -> AsyncIterator[str]:
        arriving = await self._claim_place(move)
        mark = self._new.keys.moving, arriving
        yield f"{self._tenant} is held: requests get 503, and workers take no run of it."
        await self._await_heard()
        if running := await self._await_workers():
            yield f"{running} runs have not ended within {DRAIN_S} s: their calls may be in doubt."
        await hold.change(move.model_copy(update={"state": "held"}))
        prefix = self._old.keys.prefix
        with closing(Link(self._settings.store_url, prefix)) as link:
            counts = await load(self._new.redis, _own(link.read_all()), mark)
            others = await self._old.list_others()
            if await self._new.find_taken(others):
                raise Conflict(f"Another tenant has the same key in {hide_password(self._url)}. Rotate it first.")
            await load(self._new.redis, link.read(others), mark)
            async with self._opened(self._url) as wiring:
                yield await verify_tenant(wiring, prefix, _FAULTY)
            counts += await load(self._new.redis, _own(link.read_changed()), mark)
            latest = await self._old.list_others()
            await load(self._new.redis, link.read(latest), mark)
            await self._new.remove([name for name in others if name not in latest])
        yield f"{counts.total()} keys of the tenant and {len(latest)} credentials and sessions are there."
        await compare(self._new.redis, counts, prefix, APART)
        async with self._opened(self._url) as wiring:
            await wiring.activity.record("tenant_moved", "", door="move")
        await hold.change(move.model_copy(update={"state": "moved"}), 0)

    async def _claim_place(self, move: Move) -> str:
        """Mark the new copy as not live, and remove what an earlier move left; return the text of the mark."""
        raw = await self._new.read_mark()
        there = read_move(raw or None)
        ours = there is not None and (
            (there.state == "moved" and there.target == self._source)
            or (there.state in ("arriving", "ready") and there.source == self._source)
        )
        if not ours and (raw or not await self._new.is_empty()):
            raise Conflict(
                f"{hide_password(self._url)} has a tenant {self._tenant} of its own. Name another store; nothing was "
                "changed."
            )
        arriving = move.model_copy(update={"state": "arriving"}).pack()
        if not await self._new.swap(raw, arriving):
            raise Conflict("Another process uses the new store just now. Run the command again.")
        await self._new.delete()
        return arriving

    async def _await_heard(self) -> None:
        """Wait until no process of the tenant serves or works without knowing of the move."""
        until_ms = monotonic_ms() + HEARD_S * 1000
        while active := await self._old.list_active(_ACTIVE_MS):
            if monotonic_ms() >= until_ms:
                raise Unavailable(f"{len(active)} processes of {self._tenant} do not answer. Stop them. {_AGAIN}")
            await asyncio.sleep(_POLL_S)

    async def _await_workers(self) -> int:
        """Wait until workers have ended the runs that they drive; return how many they have not."""
        until_ms = monotonic_ms() + DRAIN_S * 1000
        async with self._opened(self._settings.store_url) as wiring:
            driven = await _list_driven(wiring, await wiring.schedule.everything())
            while driven and monotonic_ms() < until_ms:
                await asyncio.sleep(_POLL_S)
                driven = await _list_driven(wiring, driven)
        return len(driven)

    async def _finish(self, move_id: str) -> str:
        """Let the first process that opens the new copy make it live; return what the operator does now."""
        if not await self._old.is_confirmed(self._settings.replicas, _CONFIRMED_MS):
            raise Unavailable(
                f"The replicas have not confirmed within {_CONFIRMED_MS // 1000} s that {self._tenant} has moved, so "
                "neither copy is live. Run the command again once they have."
            )
        raw = await self._new.read_mark()
        there = read_move(raw or None)
        if there is not None and there.state == "arriving" and there.id == move_id:
            await self._new.swap(raw, there.model_copy(update={"state": "ready"}).pack())
        elif there is not None and there.state != "ready":
            raise Conflict(f"The copy in {hide_password(self._url)} is of another move. Go back with --back.")
        place = f"{self._settings.tenants}: {self._tenant}:" if self._settings.tenants else "SAYSO_REDIS_URL is now"
        name = "redis_url: " if self._settings.tenants else ""
        return (
            f"{self._tenant} has moved. Change this line, with its user and password, and restart all programs:\n"
            f"{place} {name}{hide_password(self._url)}\n"
            "Until a program has started there, the same command with --back undoes it."
        )

    @asynccontextmanager
    async def _opened(self, url: str) -> AsyncIterator[Wiring]:
        """Open the copy in a store, with a home of its own, in which processes remember no commits."""
        with TemporaryDirectory() as home:
            async with assemble(self._settings.model_copy(update={"redis_url": url, "home": Path(home)})) as wiring:
                yield wiring


class _Hold:
    """The mark of the old copy, which ends by itself unless it is renewed."""

    def __init__(self, copy: Copy, move: Move) -> None:
        self._copy, self.raw = copy, move.pack()
        self._turn = asyncio.Lock()

    async def begin(self) -> None:
        if not await self._copy.swap("", self.raw, HOLD_MS):
            raise Conflict("Another move of the tenant has begun just now. Nothing was changed.")

    async def renew(self) -> None:
        while True:
            await asyncio.sleep(HOLD_MS / 5000)
            async with self._turn:
                with suppress(Unavailable):
                    await self._copy.swap(self.raw, self.raw, HOLD_MS)

    async def change(self, move: Move, end_ms: int = HOLD_MS) -> None:
        """Replace the mark; raises `Unavailable` where the hold has ended meanwhile."""
        raw = move.pack()
        async with self._turn:
            if not await self._copy.swap(self.raw, raw, end_ms):
                raise Unavailable(f"The hold of the tenant ended before its move. {_AGAIN}")
            if end_ms:
                self.raw = raw


def _own(entries: Iterable[Entry]) -> Iterator[Entry]:
    return (entry for entry in entries if find_kind(entry.name) not in APART)


async def _list_driven(wiring: Wiring, suspension_ids: list[str]) -> list[str]:
    """Return the suspensions that a worker drives under a lease."""
    driven = []
    for suspension_id in suspension_ids:
        with suppress(NotFound, Unreadable):
            record = (await wiring.desk.suspensions.read(suspension_id)).record
            if record.status is Status.RESUMING and record.resume.mode == "worker":
                driven.append(suspension_id)
    return driven


@asynccontextmanager
async def between(settings: Settings, url: str) -> AsyncIterator[TenantMove]:
    """Connect to the store of the tenant and to the one of the URL; raises `InvalidInput` and `SaysoError`."""
    try:
        check_store_url(url)
    except ValueError as error:
        raise InvalidInput(f"{hide_password(url)} is no URL of a store: {error}.") from error
    if read_cluster(url) is not None and settings.queue_url is None:
        raise InvalidInput(
            "A cluster needs a store for the queue. Set SAYSO_QUEUE_URL, restart all programs, and run the command "
            "again; nothing was changed."
        )
    place, macs = name_tenant(url, settings.tenant), Macs(settings.key_file)
    await check_durability(place, allow_weak=settings.allow_weak_durability, stated=settings.states_durability)
    for each in (settings.store_url, place):
        await check_format(each, macs)
    async with connect(settings.store_url) as old, connect(place) as new:
        ids = text(await old.get(name_shared(old, STORE)) or b""), text(await new.get(name_shared(new, STORE)) or b"")
        if ids[0] == ids[1]:
            raise InvalidInput(f"{hide_password(url)} is the store in which {settings.tenant} is. Name another one.")
        yield TenantMove(settings, url, Copy(old, settings.tenant), Copy(new, settings.tenant), ids)
