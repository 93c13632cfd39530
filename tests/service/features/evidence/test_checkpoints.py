"""Checkpoints cover what changed, reach their sinks, and show what somebody who writes to the store alone changed."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from sayso.core.key_files import create_key_file, read_key_file, rotate_key_file
from sayso.errors import Unavailable
from sayso.features.evidence.checkpoints import Checkpoint, find_public_key, read_checkpoint
from sayso.features.evidence.commands import find_faults
from sayso.wire.evidence import HeadToCheck
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.keys import keys_of
from service.core.store.rules import RuleStore, RuleVersion
from service.features.evidence import keeping
from service.features.evidence.checking import check_heads
from service.features.evidence.keeping import keep_checkpoints
from service.features.evidence.keeping import keys_of as keys_in
from service.features.evidence.store import CheckpointStore
from service.features.operate.diagnostics import diagnose
from tests.builders import approve, finish, make_pending
from tests.receivers import Receiver
from tests.service.worlds import POLICY, World
from tests.waits import until

KEYS = keys_of(TENANT)


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    create_key_file(tmp_path / "keys")
    sink = f"file://{tmp_path}/sink/checkpoints.jsonl"
    return Settings(redis_url=clean_store_url, policy=policy, key_file=tmp_path / "keys", checkpoints=(sink,))


@pytest.fixture(autouse=True)
def fresh_keys() -> None:
    keys_in.cache_clear()


def change_settings(world: World, **update: Any) -> None:
    object.__setattr__(world.wiring, "settings", world.wiring.settings.model_copy(update=update))


def read_sink(tmp_path: Path) -> list[Checkpoint]:
    return [read_checkpoint(line) for line in (tmp_path / "sink" / "checkpoints.jsonl").read_text().splitlines()]


def public_keys(tmp_path: Path) -> list[str]:
    return [find_public_key(key) for key in read_key_file(tmp_path / "keys")]


async def end_a_run(world: World) -> str:
    record = await approve(world.wiring, await make_pending(world.wiring))
    return (await finish(world.wiring, record)).run.id


async def make_hourly(world: World) -> None:
    """Make a checkpoint as if an hour had passed since the last checkpoint."""
    await world.wiring.store.redis.set(KEYS.checkpoint, await _age(world))
    await keep_checkpoints(world.wiring)


async def _age(world: World) -> str:
    last = await world.wiring.part(CheckpointStore).read_last()
    return f"{last.number}|{last.digest}|{last.at_ms - 3_600_000}"


async def find_differences(world: World, made: list[Checkpoint]) -> list[str]:
    """What the desk says of the latest heads of a sink's file."""
    latest = {leaf.chain: (leaf, checkpoint.at_ms) for checkpoint in made for leaf in checkpoint.leaves}
    heads = [HeadToCheck(chain=leaf.chain, seq=leaf.seq, hash=leaf.hash, at_ms=ms) for leaf, ms in latest.values()]
    return [fault.fault for fault in (await check_heads(world.wiring, heads)).faults]


async def test_first_checkpoint_covers_all_runs_and_later_ones_what_changed(world: World, tmp_path: Path) -> None:
    await world.wiring.store.redis.delete(KEYS.unchecked)  # runs of before checkpoints were turned on
    runs = {await end_a_run(world) for _ in range(3)}
    await world.wiring.store.redis.delete(KEYS.unchecked)
    await keep_checkpoints(world.wiring)
    await keep_checkpoints(world.wiring)
    later = await end_a_run(world)
    await make_hourly(world)
    await make_hourly(world)
    first, second, third = read_sink(tmp_path)
    covered = [
        {leaf.chain for leaf in checkpoint.leaves if leaf.chain.startswith("run ")}
        for checkpoint in (first, second, third)
    ]
    assert covered == [{f"run {run}" for run in runs}, {f"run {later}"}, set()]
    assert (second.before, third.before) == (first.digest, second.digest)
    assert list(find_faults([first, second, second, third], public_keys(tmp_path))) == []
    assert await find_differences(world, [first, second, third]) == []


async def test_a_thousand_events_make_a_checkpoint_at_once(world: World, tmp_path: Path) -> None:
    await keep_checkpoints(world.wiring)
    run = await end_a_run(world)
    await keep_checkpoints(world.wiring)
    assert len(read_sink(tmp_path)) == 1
    await world.wiring.store.redis.hset(KEYS.unchecked, run, keeping.EVENTS)
    await keep_checkpoints(world.wiring)
    assert f"run {run}" in [leaf.chain for leaf in read_sink(tmp_path)[-1].leaves]
    assert await world.wiring.store.redis.exists(KEYS.unchecked, KEYS.checking) == 0


async def test_erasure_is_covered_and_does_not_count_as_an_alteration(world: World, tmp_path: Path) -> None:
    run = await end_a_run(world)
    await keep_checkpoints(world.wiring)
    async with world.client("root") as root:
        assert (await root.post(f"/api/v1/runs/{run}/erase", json={"reason": "On request"})).status_code == 200
    assert await find_differences(world, read_sink(tmp_path)) == []
    await make_hourly(world)
    assert [leaf.chain for leaf in read_sink(tmp_path)[-1].leaves if leaf.chain.startswith("run ")] == [f"run {run}"]


Tamper = Callable[[Any, str], Awaitable[object]]


async def _alter(redis: Any, key: str) -> None:
    raw = await redis.lindex(key, 1)
    await redis.lset(key, 1, raw.replace(b'"order":"A-1"', b'"order":"A-2"', 1).replace(b"anna", b"ben", 1))


async def _reorder(redis: Any, key: str) -> None:
    first, second = await redis.lrange(key, 0, 1)
    await redis.lset(key, 0, second)
    await redis.lset(key, 1, first)


async def _delete_one(redis: Any, key: str) -> None:
    first, _, *others = await redis.lrange(key, 0, -1)
    await redis.delete(key)
    await redis.rpush(key, first, *others)


async def _rewrite(redis: Any, key: str) -> None:
    """Replace the trail by a valid chain of the same length."""
    from sayso.core.records.chain import write_events
    from sayso.core.records.events import Event, EventType, TrailHead

    count = await redis.llen(key)
    _, entries = write_events(TrailHead(), tuple(Event(EventType.WARNING) for _ in range(count)), 1)
    await redis.delete(key)
    await redis.rpush(key, *entries)


@pytest.mark.parametrize(
    ("tamper", "words"),
    [
        (_alter, "does not follow"),
        (_reorder, "does not follow"),
        (_delete_one, "was cut"),
        (lambda redis, key: redis.ltrim(key, 0, -2), "was cut"),
        (lambda redis, key: redis.delete(key), "was deleted"),
        (_rewrite, "was rewritten"),
    ],
    ids=["alter", "reorder", "delete one", "cut", "delete", "rewrite"],
)
async def test_what_a_writer_to_the_store_does_to_a_trail_is_named(
    world: World, tmp_path: Path, tamper: Tamper, words: str
) -> None:
    run = await end_a_run(world)
    await end_a_run(world)
    await keep_checkpoints(world.wiring)
    await tamper(world.wiring.store.redis, KEYS.trail(run))
    (fault,) = await find_differences(world, read_sink(tmp_path))
    assert words in fault


async def test_an_older_dump_is_noticed_at_the_desk_and_in_the_sink(world: World, tmp_path: Path) -> None:
    redis: Any = world.wiring.store.redis
    run = await make_pending(world.wiring)
    await keep_checkpoints(world.wiring)
    dump = {name: await redis.dump(name) for name in await redis.keys("sayso:{default}:*")}
    await approve(world.wiring, run)
    await make_hourly(world)
    await redis.delete(*await redis.keys("sayso:{default}:*"))
    for name, raw in dump.items():
        await redis.restore(name, 0, raw)
    (fault,) = [words for words in await find_differences(world, read_sink(tmp_path)) if "activity" not in words]
    assert "was cut" in fault

    async def third() -> bool:  # until the process has compared its commits, the store takes none
        await make_hourly(world)
        return len(read_sink(tmp_path)) == 3

    await until(third)
    faults = list(find_faults(read_sink(tmp_path), public_keys(tmp_path)))
    assert any("does not follow" in words for words in faults), faults


async def test_changed_activity_and_rules_are_named(world: World, tmp_path: Path) -> None:
    redis = world.wiring.store.redis
    async with world.client("root") as root:
        await root.post("/api/v1/freezes", json={"scope": "all", "reason": "Odd calls"})
    version = RuleVersion(version="v1", digest="", file="policy.yaml", text="too-much", rules="{}")
    await RuleStore(world.wiring.store).versions.save(version)
    await keep_checkpoints(world.wiring)
    chains = [leaf.chain for leaf in read_sink(tmp_path)[-1].leaves]
    assert {"activity", "rules v1"} <= {*chains}
    await redis.ltrim(KEYS.activity, 0, -2)
    key = KEYS.rule_version("v1")
    raw: Any = await redis.get(key)
    await redis.set(key, raw.replace(b"too-much", b"too-mild"))
    faults = await find_differences(world, read_sink(tmp_path))
    assert any("The activity log was cut" in words for words in faults)
    assert any("of the rules was altered" in words for words in faults)


async def test_altered_lines_of_a_sink_are_named(world: World, tmp_path: Path) -> None:
    await end_a_run(world)
    await keep_checkpoints(world.wiring)
    await make_hourly(world)
    first, second = read_sink(tmp_path)
    keys = public_keys(tmp_path)
    other = json.loads(first.line)
    other["leaves"][0][1] += 1
    assert "lists other heads" in "".join(find_faults([read_checkpoint(json.dumps(other))], keys))
    forged = json.loads(first.line)
    forged["statement"] = forged["statement"].replace('"number":1', '"number":7')
    assert "not signed" in "".join(find_faults([read_checkpoint(json.dumps(forged))], keys))
    assert "does not follow" in "".join(find_faults([second, first], keys))
    assert "not signed" in "".join(find_faults([first], ["A" * 43 + "="]))


async def test_rotated_key_signs_and_the_earlier_one_still_verifies(world: World, tmp_path: Path) -> None:
    await keep_checkpoints(world.wiring)
    rotate_key_file(tmp_path / "keys")
    keys_in.cache_clear()
    await make_hourly(world)
    made = read_sink(tmp_path)
    assert len({checkpoint.key for checkpoint in made}) == 2
    assert list(find_faults(made, public_keys(tmp_path))) == []


async def test_sinks_over_http_get_each_checkpoint_once_they_accept(
    world: World, tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = receiver.url.removeprefix("https://").removesuffix("/aap")
    sinks = (
        f"https://ada:secret@{place}/in",
        f"otlp+https://{place}/v1/logs",
        f"s3+https://AKIAIOSFODNN7EXAMPLE:word@{place}/desk/checkpoints",
    )
    change_settings(world, checkpoints=sinks, aap_allow_loopback=True)
    monkeypatch.setattr(world.wiring.posts, "_loopback", True)
    from starlette.responses import Response

    receiver.say = lambda _: Response(status_code=503)
    await keep_checkpoints(world.wiring)
    assert await world.wiring.part(CheckpointStore).read_delivered() == {}
    receiver.say, receiver.came[:] = (lambda _: Response(status_code=200)), []
    await keep_checkpoints(world.wiring)
    (posted, body), (_, record), (put, stored) = receiver.came
    assert posted["authorization"].startswith("Basic ")
    assert put["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/")
    assert read_checkpoint(body.decode()).number == read_checkpoint(stored.decode()).number == 1
    log = json.loads(record)["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]
    assert read_checkpoint(log["body"]["stringValue"]).line == body.decode()
    async with world.client("root") as root:
        page = (await root.get("/api/v1/checkpoints")).json()
    assert [sink["number"] for sink in page["sinks"]] == [1, 1, 1]
    assert "secret" not in str(page)
    assert "word" not in str(page)


async def test_decisions_are_refused_until_a_checkpoint_is_delivered(world: World, tmp_path: Path) -> None:
    waiting = await make_pending(world.wiring)
    check = world.wiring.freezes.check_delivered
    with pytest.raises(Unavailable, match="No checkpoint was delivered within 2 h"):
        await check(2)
    await check(None)
    await keep_checkpoints(world.wiring)
    await world.wiring.freezes.known(fresh=True)
    await check(2)
    assert (await approve(world.wiring, waiting)).items[0].outcome is not None


async def test_desk_without_sinks_keeps_no_list_and_covers_all_runs_later(world: World, tmp_path: Path) -> None:
    sinks = world.wiring.settings.checkpoints
    await keep_checkpoints(world.wiring)
    change_settings(world, checkpoints=())
    run = await end_a_run(world)
    await keep_checkpoints(world.wiring)
    assert not await world.wiring.store.redis.exists(KEYS.unchecked)
    change_settings(world, checkpoints=sinks)
    await make_hourly(world)
    assert f"run {run}" in [leaf.chain for leaf in read_sink(tmp_path)[-1].leaves]


async def test_reviewers_read_no_checkpoints(world: World) -> None:
    async with world.client("anna") as anna:
        assert (await anna.get("/api/v1/checkpoints")).status_code == 403
        assert (await anna.post("/api/v1/checkpoints/check", json={"heads": []})).status_code == 403


async def test_old_checkpoints_are_deleted_with_their_index(world: World) -> None:
    run = await end_a_run(world)
    await keep_checkpoints(world.wiring)
    store = world.wiring.part(CheckpointStore)
    made = await store.find_of(f"run {run}")
    assert made is not None
    await store.forget_old(made.at_ms)
    assert await store.find_of(f"run {run}") == made
    await store.forget_old(made.at_ms + 1)
    assert await store.find_of(f"run {run}") is None
    assert await world.wiring.store.redis.exists(KEYS.checkpoints, KEYS.checkpoint_of) == 0


async def test_doctor_says_when_no_checkpoint_is_delivered(world: World) -> None:
    async def find() -> tuple[bool, str]:
        findings = [finding async for finding in diagnose(world.wiring)]
        (finding,) = [finding for finding in findings if finding.part == "checkpoints"]
        return finding.ok, finding.message

    assert await find() == (False, "No sink has all of them yet.")
    await keep_checkpoints(world.wiring)
    assert (await find())[0]
