"""A tenant moves between stores: one copy at most is live, whatever step ends the move, and nothing is lost."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient
from redis import Redis

from launch.server import running_server
from sayso.core.key_files import create_key_file
from sayso.core.records.suspensions import Status
from sayso.errors import Conflict, InvalidInput, Unavailable
from service.app import create_app
from service.assembly import open_process
from service.core.auth.reviewers import hash_token
from service.core.settings import Settings
from service.core.settings.tenants import list_desks
from service.core.store.connection.formats import check_format
from service.core.store.connection.macs import Macs
from service.core.store.keys import INSTANCE_KEYS, KEYS, SESSIONS, keys_of
from service.core.store.loss.commit_counts import CommitCounts
from service.core.store.loss.moves import read_move
from service.core.store.people import InstanceKey
from service.core.wiring import Wiring
from service.features.backup import moving
from service.features.backup.files import write_backup
from service.features.backup.moving import TenantMove, between
from service.features.backup.restoring import restore
from service.features.backup.store import Copy, NotVerified, read_store
from tests.builders import approve, finish, make_agent, make_pending, make_person
from tests.service.core.store.flipping import flip

ACME = keys_of("acme")
HOSTS = {"acme": "http://acme.example", "globex": "http://globex.example"}


@pytest.fixture(scope="module")
def other_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(tmp_path_factory.mktemp("other")) as url:
        yield url


@pytest.fixture
def stores(clean_store_url: str, other_url: str) -> Iterator[tuple[Any, Any]]:
    with Redis.from_url(clean_store_url) as old, Redis.from_url(other_url) as new:
        new.flushall()
        yield old, new


@pytest.fixture
async def desks(clean_store_url: str, stores: Any, tmp_path: Path) -> dict[str, Settings]:
    """Two tenants of one store, whose records carry MACs."""
    create_key_file(tmp_path / "keys")
    file = tmp_path / "tenants.yaml"
    file.write_text(json.dumps({"tenants": {name: {"public_url": url} for name, url in HOSTS.items()}}))
    settings = Settings(redis_url=clean_store_url, tenants=file, home=tmp_path, key_file=tmp_path / "keys")
    await check_format(clean_store_url, Macs(settings.key_file))
    return dict(list_desks(settings))


def moved(desk: Settings, url: str) -> Settings:
    """The settings after the line of the file was changed."""
    return desk.model_copy(update={"redis_url": url})


def find_state(store: Any) -> str | None:
    mark = read_move(store.get(ACME.moving))
    return mark.state if mark is not None else None


async def move(desk: Settings, url: str) -> list[str]:
    async with between(desk, url) as pair:
        return [line async for line in pair.run()]


async def move_until_copied(desk: Settings, url: str, then: Callable[[], Awaitable[None]]) -> None:
    """Move; do something once all keys are copied."""
    async with between(desk, url) as pair:
        async for line in pair.run():
            if "credentials and sessions" in line:
                await then()


async def go_back(desk: Settings, url: str) -> str:
    async with between(desk, url) as pair:
        return await pair.go_back()


@asynccontextmanager
async def opened(desk: Settings) -> AsyncIterator[Wiring]:
    async with open_process(desk) as process:
        await process.wiring.store.counts.compare()
        yield process.wiring


async def fill(desk: Settings) -> list[str]:
    """Make people, keys and runs in all states; return the ids of the suspensions."""
    async with opened(desk) as wiring:
        await make_person(wiring, "anna")
        pending = await make_pending(wiring)
        approved = await approve(wiring, await make_pending(wiring))
        ended = await finish(wiring, await approve(wiring, await make_pending(wiring)))
        return [pending.id, approved.id, ended.id]


async def is_live(desk: Settings) -> bool:
    """Return whether a process with these settings saves a change."""
    async with opened(desk) as wiring:
        try:
            await make_pending(wiring)
        except Unavailable:
            return False
        return True


async def test_everything_of_the_tenant_moves_with_its_ends(desks: Any, stores: Any, other_url: str) -> None:
    old, new = stores
    ids = await fill(desks["acme"])
    await fill(desks["globex"])
    async with opened(desks["acme"]) as wiring, opened(desks["globex"]) as other:
        agent, session = await make_agent(wiring, "bot"), await make_person(wiring, "root", "admin")
        foreign = await make_agent(other, "bot")
    old.set(INSTANCE_KEYS + "i", InstanceKey(tenant="acme", instance_id="x").model_dump_json())
    old.set(f"{ACME.prefix}logout-token:x", "1", px=500_000)
    globex = {name: old.dump(name) for name in old.keys("sayso:{globex}:*")}
    lines = await move(desks["acme"], other_url)
    assert "3 suspensions can be read, and the trails of 3 runs are whole" in "\n".join(lines)
    assert f"acme: redis_url: {other_url}" in lines[-1]
    assert {name.decode() for name in new.keys("sayso:keys:*")} == {KEYS + hash_token(agent)}
    assert {SESSIONS + hash_token(session), INSTANCE_KEYS + "i"} <= {name.decode() for name in new.keys("sayso:*")}
    assert new.pttl(SESSIONS + hash_token(session)) > 0
    assert 0 < new.pttl(f"{ACME.prefix}logout-token:x") <= 500_000
    assert not new.keys("sayso:{globex}:*")
    assert not new.exists(KEYS + hash_token(foreign))
    assert {name: old.dump(name) for name in globex} == globex
    async with opened(moved(desks["acme"], other_url)) as wiring:
        records = [(await wiring.desk.suspensions.read(id_)).record for id_ in ids]
        assert [record.status for record in records] == [Status.PENDING, Status.DECIDED, Status.RESUMED]
        await approve(wiring, records[0])
    assert new.xlen(ACME.activity) if new.type(ACME.activity) == b"stream" else new.exists(ACME.activity)
    assert await is_live(desks["globex"])


async def test_old_copy_refuses_and_the_new_one_is_live_once_opened(desks: Any, stores: Any, other_url: str) -> None:
    await fill(desks["acme"])
    await move(desks["acme"], other_url)
    assert find_state(stores[1]) == "ready"
    async with opened(desks["acme"]) as wiring:
        with pytest.raises(Unavailable, match="was moved to another store"):
            await make_pending(wiring)
    assert await is_live(moved(desks["acme"], other_url))
    assert not stores[1].exists(ACME.moving)
    with pytest.raises(Conflict, match="is live in"):
        await go_back(desks["acme"], other_url)
    assert not await is_live(desks["acme"])


async def test_requests_of_a_held_tenant_get_503_and_those_of_others_are_served(desks: Any, stores: Any) -> None:
    async with AsyncExitStack() as running:
        clients, counts = dict[str, AsyncClient](), dict[str, CommitCounts]()
        for name, desk in desks.items():
            app = create_app(desk)
            await running.enter_async_context(app.router.lifespan_context(app))
            key = await make_agent(app.state.process.wiring, "bot")
            client = AsyncClient(transport=ASGITransport(app=app), base_url=HOSTS[name])
            clients[name] = await running.enter_async_context(client)
            client.headers["Authorization"] = f"Bearer {key}"
            counts[name] = app.state.process.wiring.store.counts
        pair = TenantMove(desks["acme"], "redis://other", None, None, ("a", "b"))  # type: ignore[arg-type]
        stores[0].set(ACME.moving, pair._make("draining", "mov_1").pack(), px=60_000)
        await counts["acme"].compare()
        for path in ("/api/v1/runs", "/"):
            answer = await clients["acme"].get(path)
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
            assert "is being moved to another store" in answer.text
        assert (await clients["acme"].get("/healthz")).status_code == 200
        assert (await clients["globex"].get("/api/v1/runs")).status_code == 200
        stores[0].delete(ACME.moving)
        await counts["acme"].compare()
        assert (await clients["acme"].get("/api/v1/runs")).status_code == 200


class Killed(Exception):
    """Stands for a kill -9: nothing more of the move reaches a store."""


class Dying(Copy):
    """A copy whose process is killed before or after a change of a mark, counted over both copies."""

    def __init__(self, redis: Any, tenant: str, at: int, after: bool, changes: list[str]) -> None:
        super().__init__(redis, tenant)
        self.at, self.after, self.changes = at, after, changes

    async def swap(self, before: str, after: str, end_ms: int = 0) -> bool:
        if before != after:
            self.changes.append(after)
        if len(self.changes) > self.at or (len(self.changes) == self.at and not self.after):
            raise Killed
        swapped = await super().swap(before, after, end_ms)
        if len(self.changes) == self.at:
            raise Killed
        return swapped


async def die(desk: Settings, url: str, at: int, after: bool, *, back: bool = False) -> bool:
    """Move, or go back, until the kill; return whether it came."""
    changes: list[str] = []
    async with between(desk, url) as pair:
        pair._old = Dying(pair._old.redis, "acme", at, after, changes)
        pair._new = Dying(pair._new.redis, "acme", at, after, changes)
        try:
            if back:
                await pair.go_back()
            else:
                [line async for line in pair.run()]
        except Killed:
            return True
    return False


def end_hold(old: Any) -> None:
    """Let the mark of the old copy end, if it ends by itself."""
    if old.pttl(ACME.moving) > 0:
        old.delete(ACME.moving)


async def list_live(desk: Settings, url: str) -> list[str]:
    return [name for name, at in (("old", desk), ("new", moved(desk, url))) if await is_live(at)]


async def check_all_there(desk: Settings, ids: list[str]) -> None:
    async with opened(desk) as wiring:
        for suspension_id in ids:
            await wiring.desk.suspensions.read(suspension_id)
        assert not (await wiring.inspections.look_through(most=1_000))[1]


@pytest.mark.parametrize("at", range(1, 6))
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("way", ["again", "back"])
async def test_killed_move_leaves_one_copy_and_ends_either_way(
    desks: Any, stores: Any, other_url: str, at: int, after: bool, way: str
) -> None:
    desk, ids = desks["acme"], await fill(desks["acme"])
    assert await die(desk, other_url, at, after)
    end_hold(stores[0])
    if find_state(stores[1]) == "arriving":
        assert await list_live(desk, other_url) in (["old"], [])
    if way == "back":
        assert "is live in the old store" in await go_back(desk, other_url)
        assert await is_live(desk)
        assert not stores[1].keys("sayso:{acme}:s:*")
        assert not stores[1].exists(ACME.moving) or not await is_live(moved(desk, other_url))
    await move(desk, other_url)
    assert await list_live(desk, other_url) == ["new"]
    await check_all_there(moved(desk, other_url), ids)


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("after", [False, True])
async def test_killed_way_back_leaves_one_copy_and_ends_either_way(
    desks: Any, stores: Any, other_url: str, at: int, after: bool
) -> None:
    desk, ids = desks["acme"], await fill(desks["acme"])
    await move(desk, other_url)
    assert await die(desk, other_url, at, after, back=True)
    if at == 1 and not after:
        assert await list_live(desk, other_url) == ["new"]
        return
    assert await list_live(desk, other_url) in (["old"], [])
    await go_back(desk, other_url)
    assert await list_live(desk, other_url) == ["old"]
    await check_all_there(desk, ids)


async def test_hold_that_ended_moves_nothing(desks: Any, stores: Any, other_url: str) -> None:
    desk, ids = desks["acme"], await fill(desks["acme"])

    async def end() -> None:
        stores[0].delete(ACME.moving)
        ids.append(await make_one(desk))

    with pytest.raises(Unavailable, match="hold of the tenant ended"):
        await move_until_copied(desk, other_url, end)
    assert await list_live(desk, other_url) == ["old"]
    await check_all_there(desk, ids)


async def make_one(desk: Settings) -> str:
    async with opened(desk) as wiring:
        return (await make_pending(wiring)).id


async def test_second_move_at_the_same_time_is_refused(desks: Any, stores: Any, other_url: str) -> None:
    await fill(desks["acme"])
    async with between(desks["acme"], other_url) as pair:
        async for line in pair.run():
            if "is held" in line:
                with pytest.raises(Conflict, match="is under way"):
                    await move(desks["acme"], other_url)
                with pytest.raises(Conflict, match="is under way"):
                    await go_back(desks["acme"], other_url)
    assert await list_live(desks["acme"], other_url) == ["new"]


async def test_store_with_a_tenant_of_that_name_is_refused(desks: Any, stores: Any, other_url: str) -> None:
    await fill(desks["acme"])
    await check_format(other_url, Macs(desks["acme"].key_file))
    assert await is_live(moved(desks["acme"], other_url))
    with pytest.raises(Conflict, match="of its own"):
        await move(desks["acme"], other_url)
    assert await list_live(desks["acme"], other_url) == ["old", "new"]  # two tenants of one name, as before


async def test_missing_key_is_noticed_before_the_old_copy_is_given_up(desks: Any, stores: Any, other_url: str) -> None:
    await fill(desks["acme"])

    async def delete() -> None:
        stores[1].delete(next(stores[1].scan_iter("sayso:{acme}:s:*")))

    with pytest.raises(NotVerified, match="Keys are missing"):
        await move_until_copied(desks["acme"], other_url, delete)
    assert await list_live(desks["acme"], other_url) == ["old"]
    await move(desks["acme"], other_url)


async def test_altered_record_is_noticed_before_the_old_copy_is_given_up(
    desks: Any, stores: Any, other_url: str
) -> None:
    (pending, *_) = await fill(desks["acme"])
    raw = stores[0].get(ACME.suspension(pending))
    stores[0].set(ACME.suspension(pending), flip(raw, 100))
    with pytest.raises(NotVerified, match=pending):
        await move(desks["acme"], other_url)
    assert not stores[0].exists(ACME.moving)


async def test_tenant_moves_there_and_back_and_its_remains_are_erased(desks: Any, stores: Any, other_url: str) -> None:
    desk, ids = desks["acme"], await fill(desks["acme"])
    there = moved(desk, other_url)
    await move(desk, other_url)
    with pytest.raises(Conflict, match="is no store from which"):
        async with between(there, desk.store_url) as pair:
            await pair.erase()
    assert await is_live(there)
    async with between(there, desk.store_url) as pair:
        await pair.erase()
    assert stores[0].keys("sayso:{acme}:*") == [ACME.moving.encode()]
    assert await list_live(desk, other_url) == ["new"]
    await move(there, desk.store_url)
    assert await list_live(desk, other_url) == ["old"]
    await check_all_there(desk, ids)


async def test_same_store_and_no_url_are_refused(desks: Any, stores: Any) -> None:
    desk = desks["acme"]
    with pytest.raises(InvalidInput, match="is the store in which acme is"):
        await move(desk, desk.store_url)
    with pytest.raises(InvalidInput, match="is no URL of a store"):
        await move(desk, "ftp://other")


async def test_backup_of_a_store_restores_no_tenant_that_moved_away(
    desks: Any, stores: Any, other_url: str, tmp_path: Path
) -> None:
    await fill(desks["acme"])
    await fill(desks["globex"])
    await move(desks["acme"], other_url)
    write_backup(tmp_path / "backup", "2", 1, None, read_store(desks["globex"].store_url))
    stores[0].flushall()
    rest = {"globex": desks["globex"]}
    [line async for line in restore(tmp_path / "backup", {}, desks["globex"].store_url, rest, verify=True)]
    assert stores[0].keys("sayso:{acme}:*") == [ACME.moving.encode()]
    assert await list_live(desks["acme"], other_url) == ["new"]


async def test_process_that_does_not_hear_of_the_move_stops_it(
    desks: Any, stores: Any, other_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(desks["acme"])
    monkeypatch.setattr(moving, "HEARD_S", 0)
    stores[0].hset(ACME.comparing, "deaf", f"server {2**52}")
    with pytest.raises(Unavailable, match="1 processes of acme do not answer"):
        await move(desks["acme"], other_url)
    stores[0].hdel(ACME.comparing, "deaf")
    assert await list_live(desks["acme"], other_url) == ["old"]
