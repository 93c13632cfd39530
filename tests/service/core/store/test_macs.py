"""A writer to the store alone: each byte of a desk is flipped, moved or deleted; nothing is approved or forged."""

import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from sayso.core.clock import now_ms
from sayso.core.key_files import create_key_file, rotate_key_file
from sayso.core.records.suspensions import SuspensionRecord
from sayso.errors import Altered, NotFound, SaysoError, Unreadable
from service.assembly import open_process
from service.core.auth.reviewers import hash_token
from service.core.auth.roles import find_rights
from service.core.metrics import PROCESS
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.attempts import Replays
from service.core.store.connection.adoption import survey
from service.core.store.connection.connecting import connect
from service.core.store.connection.macs import PLAIN, REFUSED, Macs, find_kind
from service.core.store.directory import Role, RoleStore
from service.core.store.keys import TenantKeys
from service.core.store.suspensions.commits import Idempotency
from service.core.wiring import Wiring
from service.edge.web.sessions import cookie_name
from service.features.operate.diagnostics import diagnose
from tests.builders import approve, ask, finish, make_pending, make_person, person
from tests.service.worlds import POLICY, World

KEYS = TenantKeys(TENANT)
ORDER = "ORDER-7341"
FLIPS = int(os.environ.get("FLIPS", "300"))
"""How many flips of bytes go through the whole service; the MACs of all bytes are always checked."""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    create_key_file(tmp_path / "keys")
    return Settings(redis_url=clean_store_url, policy=policy, key_file=tmp_path / "keys", aap_allow_loopback=True)


class Desk(NamedTuple):
    """The suspensions of a desk with one of each kind of record."""

    waiting: SuspensionRecord
    approved: SuspensionRecord
    ended: SuspensionRecord
    polled: SuspensionRecord


async def furnish(world: World) -> Desk:
    wiring = world.wiring
    waiting = await make_pending(wiring, ask(order=ORDER))
    approved = await approve(wiring, await make_pending(wiring, ask(order=ORDER)))
    ended = await finish(wiring, await approve(wiring, await make_pending(wiring, ask(order=ORDER))))
    world.tokens["mallory"] = await make_person(wiring, "mallory", "auditor")
    await wiring.groups.create("payments", ("anna",), (), "root")
    await wiring.duty.add_absence("anna", now_ms() + 86_400_000, now_ms() + 96_400_000, None, "anna")
    code = await wiring.contacts.create_code("anna", "telegram")
    await wiring.contacts.redeem_code("telegram", code.code, "4711")
    await wiring.contacts.create_code("anna", "telegram")
    await wiring.roles.save(Role(name="refunds", permissions=("read_items",)), find_rights(("admin",), {}))
    await wiring.freezes.freeze("agent:nobody", "", person("root"))
    await wiring.rules.versions.attest("0" * 64, "anna", 1)
    await wiring.part(Replays).remember(Idempotency("demo", "one", "fingerprint", waiting.id))
    async with world.client("root") as root:
        hook = await root.post("/api/v1/webhooks/endpoints", json={"url": "https://127.0.0.1:9/hook"})
        assert hook.status_code == 201, hook.text
    async with world.client("demo") as demo:
        definition = {"parameters": {"type": "object", "properties": {"order": {"type": "string"}}}}
        call = {"tool": "pay_back", "args": {"order": ORDER}, "definition": definition}
        body = {"mode": "poll", "agent": "demo", "calls": [call]}
        made = await demo.post("/api/v1/suspensions", json=body, headers={"Idempotency-Key": "one"})
        assert made.status_code == 201, made.text
    polled = (await wiring.desk.suspensions.read(made.json()["id"])).record
    return Desk(waiting, approved, ended, polled)


class Value(NamedTuple):
    """One stored value: its key, its type, its field or number, and its bytes."""

    key: str
    type: str
    place: Any
    raw: bytes

    async def write(self, store: Any, raw: bytes) -> None:
        if self.type == "string":
            await store.set(self.key, raw, keepttl=True)
        elif self.type == "hash":
            await store.hset(self.key, self.place, raw)
        elif self.type == "list":
            await store.lset(self.key, self.place, raw)
        elif self.type == "zset":
            score = await store.zscore(self.key, self.raw)
            await store.zrem(self.key, self.raw)
            await store.zadd(self.key, {raw: score or 0})
        else:
            await store.srem(self.key, self.raw)
            await store.sadd(self.key, raw)


async def read_values(store: Any) -> list[Value]:
    """Every value of every key."""
    values: list[Value] = []
    for name in sorted([key.decode() async for key in store.scan_iter(match="sayso:*")]):
        kind = (await store.type(name)).decode()
        if kind == "string":
            values.append(Value(name, kind, "", await store.get(name)))
        elif kind == "hash":
            values += [Value(name, kind, field, raw) for field, raw in sorted((await store.hgetall(name)).items())]
        elif kind == "list":
            values += [Value(name, kind, at, raw) for at, raw in enumerate(await store.lrange(name, 0, -1))]
        elif kind == "zset":
            values += [Value(name, kind, "", raw) for raw in await store.zrange(name, 0, -1)]
        elif kind == "set":
            values += [Value(name, kind, "", raw) for raw in sorted(await store.smembers(name))]
    return values


def flip(raw: bytes, at: int) -> bytes:
    """Return the bytes with another one in one place, which is text where the former was."""
    return raw[:at] + bytes([raw[at] ^ (1 if at % 2 else 0x10)]) + raw[at + 1 :]


@pytest.fixture
async def store(clean_store_url: str) -> AsyncIterator[Any]:
    async with Redis.from_url(clean_store_url) as client:
        yield client


async def test_every_value_is_bound_to_its_bytes_place_key_and_tenant(world: World, store: Any) -> None:
    await furnish(world)
    macs = Macs(world.wiring.settings.key_file)
    kept = [value for value in await read_values(store) if find_kind(value.key) not in PLAIN]
    kinds = {find_kind(value.key) for value in kept}
    assert kinds >= {"s", "r", "e", "idem", "keys", "sessions", "reviewers", "groups", "roles", "contacts", "absences"}
    assert kinds >= {"freezes", "agents", "definitions", "rulebook", "rule-version", "attestations", "endpoints"}
    flips = 0
    with capture_logs():
        for value in kept:
            field = value.place if value.type == "hash" else ""
            assert macs.check(value.key, value.raw, field) == value.raw[:-54]
            for at in range(len(value.raw)):
                assert macs.open(value.key, flip(value.raw, at), field) is None, (value.key, at)
            flips += len(value.raw)
            for cut in (b"", value.raw[:-54], value.raw[:-1], value.raw + b" "):
                assert macs.check(value.key, cut, field) == REFUSED
            other = value.key.replace("{default}", "{other}") if "{" in value.key else f"{value.key}0"
            assert macs.check(other, value.raw, field) == REFUSED
            if value.type == "hash":
                assert macs.check(value.key, value.raw, b"another field") == REFUSED
    assert flips > 10_000


class Probe:
    """Asks everything that a value of the store could change, and compares it with the desk as it was made."""

    def __init__(self, world: World, desk: Desk) -> None:
        self.world, self.desk = world, desk
        self.refused = 0

    async def check(self, what: str) -> None:
        """Fail where somebody gains something, or sees a changed call as authentic."""
        with capture_logs() as logs:
            async with open_process(self.world.wiring.settings) as process:
                await self._check_inside(process.wiring, what)
            await self._check_outside(what)
        assert not [log for log in logs if log.get("exc_info")], (what, logs)

    async def _check_inside(self, wiring: Wiring, what: str) -> None:
        for record in self.desk:
            try:
                read = (await wiring.desk.suspensions.read(record.id)).record
            except (Unreadable, NotFound):
                self.refused += 1
            else:
                assert read == record, what
            with suppress(SaysoError):
                assert (await wiring.runs.read(record.run.id)).suspension_id == record.id, what
        for name, roles in (("anna", ("reviewer",)), ("mallory", ("auditor",)), ("root", ("reviewer", "admin"))):
            with suppress(SaysoError):
                found, groups = await wiring.reviewers._people.find_with_groups(name)
                assert found is None or found.roles == roles, what
                assert set(groups) <= ({"payments"} if name == "anna" else set()), what
            with suppress(SaysoError):
                assert (await wiring.credentials.identify(self.world.tokens[name])).name == name, what
        with suppress(SaysoError):
            assert {role.permissions for role in await wiring.part(RoleStore).list_all()} <= {("read_items",)}, what
        with suppress(SaysoError):
            assert await wiring.rules.versions.count_attestations("0" * 64) <= 1, what
            assert not await wiring.rules.versions.count_attestations("1" * 64), what

    async def _check_outside(self, what: str) -> None:
        waiting, approved, _, polled = self.desk
        self.world.wiring.desk.suspensions._recent.clear()
        async with self.world.client("anna") as anna, self.world.client("demo") as demo:
            for client in (anna, demo):
                for record in (waiting, approved):
                    answer = await client.get(f"/api/v1/suspensions/{record.id}")
                    self._check_answer(answer.status_code, answer.headers["content-type"], what)
                    if answer.status_code == 200:
                        (item,) = answer.json()["items"]
                        assert item["tool"]["args"]["order"] == ORDER, what
                        assert (item["outcome"] is None) == (record is waiting), what
            page = await anna.get("/api/v1/suspensions")
            self._check_answer(page.status_code, page.headers["content-type"], what)
        yes = {"action": "approve", "digest": polled.items[0].digest}
        for who, step in (("mallory", "decision"), ("demo", "decision"), ("demo", "redeem")):
            async with self.world.client(who) as client:
                place = f"/api/v1/suspensions/{polled.id}/items/i1/{step}"
                answer = await client.post(place, json=yes if step == "decision" else None)
                assert answer.status_code >= 400, (what, answer.text)

    def _check_answer(self, status: int, kind: str, what: str) -> None:
        assert kind.startswith("application/json" if status == 200 else "application/problem+json"), (what, status)
        self.refused += status != 200


def sample(values: Sequence[Value]) -> Iterator[tuple[Value, int]]:
    """Yield flips spread evenly over all bytes, and at least one of each value."""
    total = sum(len(value.raw) for value in values)
    every = max(1, total // FLIPS)
    for value in values:
        yield from ((value, at) for at in range(len(value.raw) // 3, len(value.raw), every))


async def test_flipped_bytes_approve_and_show_nothing(world: World, store: Any) -> None:
    desk = await furnish(world)
    values = [value for value in await read_values(store) if value.raw]
    probe = Probe(world, desk)
    await probe.check("nothing")
    assert probe.refused == 0
    for value, at in sample(values):
        await value.write(store, flip(value.raw, at))
        await probe.check(f"{value.key} {value.place!r} byte {at}")
        await value._replace(raw=flip(value.raw, at)).write(store, value.raw)
    assert probe.refused > 10
    probe.refused = 0
    await probe.check("all restored")
    assert probe.refused == 0


async def test_moved_and_deleted_values_approve_and_show_nothing(world: World, store: Any) -> None:
    desk = await furnish(world)
    values = [value for value in await read_values(store) if find_kind(value.key) not in PLAIN]
    probe = Probe(world, desk)
    for value in values:
        like = [other for other in values if find_kind(other.key) == find_kind(value.key) and other.raw != value.raw]
        for raw in {other.raw for other in like[:2]}:
            await value.write(store, raw)
            await probe.check(f"{value.key} {value.place!r} with the bytes of another")
            await value.write(store, value.raw)
    assert probe.refused > 10
    for value in values:
        kept = await store.dump(value.key)
        await (store.hdel(value.key, value.place) if value.type == "hash" else store.delete(value.key))
        await probe.check(f"{value.key} {value.place!r} deleted")
        await store.restore(value.key, 0, kept, replace=True)


async def test_forged_index_of_groups_makes_nobody_a_member(world: World, store: Any) -> None:
    await furnish(world)
    await store.sadd(KEYS.groups_of("mallory"), "payments")
    assert await world.wiring.reviewers._people.list_groups_of("mallory") == ()
    assert await world.wiring.reviewers._people.list_groups_of("anna") == ("payments",)


async def test_attestation_of_another_writer_does_not_count(world: World, store: Any) -> None:
    versions = world.wiring.rules.versions
    await versions.attest("1" * 64, "anna", 7)
    await store.hset(KEYS.attestations("1" * 64), "mallory", "7")
    assert await versions.count_attestations("1" * 64) == 1


async def test_altered_record_is_one_problem_and_others_go_on(world: World, store: Any) -> None:
    desk = await furnish(world)
    key = KEYS.suspension(desk.waiting.id)
    raw = await store.get(key)
    await store.set(key, raw[:-54])
    async with world.client("anna") as anna:
        answer = await anna.get(f"/api/v1/suspensions/{desk.waiting.id}")
        assert (answer.status_code, answer.json()["type"]) == (500, "/problems/altered")
        assert desk.waiting.id in answer.json()["detail"]
        assert "its MAC is missing or wrong" in answer.json()["detail"]
        page = (await anna.get("/api/v1/suspensions")).json()
        assert [one["suspension_id"] for one in page["unreadable"]] == [desk.waiting.id]
        assert [one["id"] for one in page["suspensions"]] == [desk.polled.id]
        html = (await anna.get("/", headers={"Accept": "text/html"})).text
        assert "Traceback" not in html
    with pytest.raises(Altered, match=desk.waiting.id):
        await approve(world.wiring, desk.waiting)
    found = {one.part: one async for one in diagnose(world.wiring)}
    assert not found["macs"].ok
    assert key in found["macs"].message
    assert desk.waiting.id in found["records"].message
    assert (PROCESS.get_sample_value("sayso_refused_records_total") or 0) > 0


async def test_altered_session_is_named_and_signing_in_again_works(world: World, store: Any) -> None:
    (name,) = [key async for key in store.scan_iter("sayso:sessions:*")][:1]
    tokens = {hash_token(token): token for token in world.tokens.values()}
    token = tokens[name.decode().removeprefix("sayso:sessions:")]
    await store.set(name, b"{}")
    async with world.client() as client:
        answer = await client.get("/api/v1/suspensions", headers={"Authorization": f"Bearer {token}"})
        assert (answer.status_code, answer.json()["type"]) == (500, "/problems/altered")
        client.cookies.set(cookie_name(world.wiring.settings), token)
        page = await client.get("/sign-in")
        assert page.status_code == 200, page.text


async def test_rotation_keeps_earlier_records_until_they_have_new_macs(
    world: World, store: Any, clean_store_url: str, tmp_path: Path
) -> None:
    desk = await furnish(world)
    running = world.wiring
    rotate_key_file(tmp_path / "keys")
    async with open_process(running.settings) as restarted:
        assert (await restarted.wiring.desk.suspensions.read(desk.waiting.id)).record == desk.waiting
        decided = await approve(restarted.wiring, desk.waiting)
    read = await running.desk.suspensions.read(decided.id)
    assert read.record == decided, "a process that was not restarted reads the new key"
    macs = Macs(tmp_path / "keys")
    found = await survey(clean_store_url, macs)
    assert found.refused == 0
    assert found.earlier > found.current > 0
    await survey(clean_store_url, macs, add=True)
    found = await survey(clean_store_url, macs)
    assert (found.earlier, found.refused) == (0, 0)
    lines = (tmp_path / "keys").read_text().splitlines(keepends=True)
    (tmp_path / "keys").write_text(lines[0])
    async with open_process(running.settings) as restarted:
        assert (await restarted.wiring.desk.suspensions.read(decided.id)).record == decided


async def test_client_of_another_key_reads_nothing(clean_store_url: str, tmp_path: Path) -> None:
    create_key_file(tmp_path / "keys")
    create_key_file(tmp_path / "others")
    async with connect(clean_store_url, macs=Macs(tmp_path / "keys")) as own:
        await own.hset(KEYS.reviewers, mapping={"anna": "{}", "bert": "{}"})
        assert await own.hmget(KEYS.reviewers, ["anna", "bert", "none"]) == [b"{}", b"{}", None]
    async with connect(clean_store_url, macs=Macs(tmp_path / "others")) as other:
        assert await other.hgetall(KEYS.reviewers) == {b"anna": REFUSED, b"bert": REFUSED}
        with pytest.raises(Altered, match="reviewers anna"):
            await other.hget(KEYS.reviewers, "anna")
