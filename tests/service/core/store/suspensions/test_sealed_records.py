"""Records and states of runs are encrypted in the store, each in its own place; what was stored before is readable."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from sayso.core.canonical_json import JsonObject
from sayso.core.key_files import create_key_file, read_key_file, rotate_key_file
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import Change
from sayso.core.transitions.deciding import suspend
from sayso.errors import InvalidInput, Unreadable
from service.core.store.runs.external_events import ExternalEvent, ExternalEvents
from service.core.store.runs.runs import Runs
from service.core.store.suspensions.saving import Suspensions
from service.core.store.tenants import TenantStore
from tests.builders import store_of
from tests.sayso.samples import T0, ask, draft

CANARY = "canary-4711-secret"
STATE = seal_state(f'{{"messages":["{CANARY}"]}}'.encode())


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    create_key_file(tmp_path / "keys")
    return tmp_path / "keys"


async def save(store: TenantStore, suspension_id: str = "sus_1", run_id: str = "run_1") -> None:
    """Save a suspension that asks about a call with a secret, and the state of its run."""
    record = draft(id=suspension_id)
    record = record.model_copy(update={"run": record.run.model_copy(update={"id": run_id}), "state": STATE.ref})
    asked = ask()
    asked = asked.model_copy(update={"tool": asked.tool.model_copy(update={"args": {"token": CANARY}})})
    change = suspend(record, (asked,), T0)
    await Suspensions(store).create(suspension_id, lambda _: Change(change.record, change.events, state=STATE))


async def read(store: TenantStore) -> tuple[object, bytes]:
    """Return the argument and the state as a process reads them."""
    record = (await Suspensions(store).read("sus_1")).record
    return record.items[0].tool.args["token"], await Runs(store).state("run_1", STATE.ref)


async def stored(store: TenantStore, key: str) -> bytes:
    """Return the stored bytes of a key."""
    raw: Any = await store.redis.get(key)
    return bytes(raw)


async def test_record_and_state_hold_no_secret_in_clear(redis: Redis, key_file: Path) -> None:
    store = store_of(redis, key_file=key_file)
    await save(store)
    assert await read(store_of(redis, key_file=key_file)) == (CANARY, STATE.blob)
    name, state = store.keys.suspension("sus_1"), store.keys.state("run_1")
    key_id = read_key_file(key_file)[0].id
    for raw in (await stored(store, name), await stored(store, state)):
        assert f"sealed:v1:{key_id}:".encode() in raw
        assert CANARY.encode() not in raw


async def test_record_of_before_the_key_file_is_readable_and_sealed_when_it_changes(
    redis: Redis, key_file: Path
) -> None:
    await save(store_of(redis))
    store = store_of(redis, key_file=key_file)
    assert await read(store) == (CANARY, STATE.blob)
    extended = lambda record, now_ms: Change(record.model_copy(update={"updated_at_ms": now_ms}))  # noqa: E731
    await Suspensions(store).change("sus_1", extended)
    assert b"sealed:v1:" in await stored(store, store.keys.suspension("sus_1"))
    assert (await read(store))[0] == CANARY


def drop_earlier(key_file: Path) -> str:
    """Remove all keys but the first from the file; return the id of the second."""
    keys, lines = read_key_file(key_file), key_file.read_text().splitlines(keepends=True)
    key_file.write_text(lines[0])
    return keys[1].id


async def test_rotated_key_file_opens_earlier_records(redis: Redis, key_file: Path) -> None:
    running = store_of(redis, key_file=key_file)
    await save(running)
    rotate_key_file(key_file)
    await save(store_of(redis, key_file=key_file), "sus_2", "run_2")
    assert await read(store_of(redis, key_file=key_file)) == (CANARY, STATE.blob)
    assert (await Suspensions(running).read("sus_2")).record.id == "sus_2"
    earlier = drop_earlier(key_file)
    with pytest.raises(Unreadable, match=f"encrypted with the key {earlier}, which SAYSO_KEY_FILE does not hold"):
        await Suspensions(store_of(redis, key_file=key_file)).read("sus_1")


async def test_external_events_hold_no_secret_in_clear_and_open_in_their_place(redis: Redis, key_file: Path) -> None:
    store = store_of(redis, key_file=key_file)
    said: JsonObject = {"type": "x", "data": {"text": CANARY}}
    await save(store)
    await save(store, "sus_2", "run_2")
    before, events = ExternalEvents(store_of(redis)), ExternalEvents(store)
    await before.add("run_1", "agent", "afk", [ExternalEvent(1, None, said)])
    await events.add("run_1", "agent", "afk", [ExternalEvent(2, 5, said)])
    assert [event.event for event in await events.read_all("run_1")] == [said, said]
    raws: Any = await redis.lrange(store.keys.external_events("run_1"), 0, -1)
    assert [CANARY.encode() in raw for raw in raws] == [True, False]
    await redis.rpush(store.keys.external_events("run_2"), *raws)
    assert [event.seq for event in await events.read_all("run_2")] == [1]


Harm = Callable[[bytes, bytes], bytes]
HARMS: dict[str, Harm] = {
    "moved": lambda _, other: other,
    "older header": lambda mine, _: mine.replace(b"1|", b"2|", 1),
    "body of another": lambda mine, other: b"|".join([*mine.split(b"|", 4)[:4], other.split(b"|", 4)[4]]),
    "flipped": lambda mine, _: mine[:-1] + bytes([mine[-1] ^ 1]),
}


@pytest.mark.parametrize("harm", HARMS)
async def test_moved_or_altered_record_is_not_read(redis: Redis, key_file: Path, harm: str) -> None:
    store = store_of(redis, key_file=key_file)
    await save(store)
    await save(store, "sus_2", "run_2")
    mine, other = [await stored(store, store.keys.suspension(name)) for name in ("sus_1", "sus_2")]
    await redis.set(store.keys.suspension("sus_1"), HARMS[harm](mine, other))
    with pytest.raises(Unreadable, match="altered, or copied from another place"):
        await Suspensions(store_of(redis, key_file=key_file)).read("sus_1")


async def test_moved_state_is_not_read(redis: Redis, key_file: Path) -> None:
    store = store_of(redis, key_file=key_file)
    await save(store)
    await save(store, "sus_2", "run_2")
    await redis.copy(store.keys.state("run_2"), store.keys.state("run_1"), replace=True)
    with pytest.raises(InvalidInput, match="copied from another place"):
        await Runs(store).state("run_1", STATE.ref)
