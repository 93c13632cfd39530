"""A writer to the store alone: each byte of a desk is flipped, moved or deleted; nothing is approved or forged."""

import os
from collections.abc import AsyncIterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from sayso.core.key_files import create_key_file, rotate_key_file
from sayso.errors import Altered
from service.assembly import open_process
from service.core.auth.reviewers import hash_token
from service.core.metrics import PROCESS
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.connection.adoption import survey
from service.core.store.connection.connecting import connect
from service.core.store.connection.macs import PLAIN, REFUSED, Macs, find_kind
from service.core.store.keys import TenantKeys
from service.edge.web.sessions import cookie_name
from service.features.operate.diagnostics import diagnose
from tests.builders import approve
from tests.service.core.store.flipping import POLICY, Probe, flip, flip_all, furnish, read_values, sample
from tests.service.worlds import World

KEYS = TenantKeys(TENANT)
FLIPS, SEED = int(os.environ.get("FLIPS") or "200"), int(os.environ.get("SEED") or "1")
"""How many flips of bytes go through the whole service; the MACs of all bytes are always checked."""
SHARES = 4


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    create_key_file(tmp_path / "keys")
    return Settings(
        home=tmp_path,  # of its own: after a loss, a process reads the starts in its home
        redis_url=clean_store_url,
        policy=policy,
        key_file=tmp_path / "keys",
        aap_allow_loopback=True,
    )


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
    assert kinds >= {"grants", "mandates", "aap", "aap-keys", "passkey", "passkey-challenge", "emergencies"}
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


@pytest.mark.parametrize("share", range(SHARES))
async def test_flipped_bytes_approve_and_show_nothing(world: World, store: Any, share: int) -> None:
    desk = await furnish(world)
    values = [value for value in await read_values(store) if value.raw]
    probe = Probe(world, desk)
    assert not await probe.check("nothing")
    tally = await flip_all(store, probe, islice(sample(values, FLIPS, SEED), share, None, SHARES))
    print(f"{tally}, of {sum(len(value.raw) for value in values)} bytes of {len(values)} values")
    assert tally.accepted == []
    assert tally.refused > tally.flipped // 10
    assert not await probe.check("all restored")


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
        assert {one["id"] for one in page["suspensions"]} == {
            record.id for record in (desk.polled, desk.voted, desk.requested)
        }
        html = (await anna.get("/", headers={"Accept": "text/html"})).text
        assert "Traceback" not in html
    with pytest.raises(Altered, match=desk.waiting.id):
        await approve(world.wiring, desk.waiting)
    found = {one.part: one async for one in diagnose(world.wiring)}
    assert not found["macs"].ok
    assert key in found["macs"].message
    assert desk.waiting.id in found["records"].message
    assert (PROCESS.get_sample_value("sayso_refused_records_total") or 0) > 0


async def test_count_of_commits_that_is_no_number_freezes_everything(world: World, store: Any) -> None:
    desk = await furnish(world)
    (process,) = await store.hkeys(KEYS.commits)
    for count in (None, "many"):  # a process that ended remembers how many there were
        if count is not None:
            await store.hset(KEYS.commits, process, count)
        async with open_process(world.wiring.settings) as other:
            assert (await other.wiring.desk.suspensions.read(desk.waiting.id)).record == desk.waiting
            lost = [freeze.lost for freeze in await other.wiring.freezes.in_force(fresh=True) if freeze.lost]
            assert bool(lost) == (count is not None)


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
