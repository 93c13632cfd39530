"""The buckets of open items answer as a scan of all records does, and are rebuilt from them."""

import random
from itertools import chain

import pytest
from redis.asyncio import Redis

from sayso.core.records.items import Doubt, ItemDraft
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.transitions.closing import change_terms, put_item
from sayso.core.transitions.deciding import cancel, decide, extend, suspend
from service.core.store.connection.connecting import text
from service.core.store.keys import TenantKeys
from service.core.store.suspensions import buckets as module
from service.core.store.suspensions.buckets import Buckets
from service.core.store.suspensions.facets import (
    Audience,
    Facets,
    OpenItem,
    find_facets,
    list_places,
    read_facets,
    write_facets,
)
from service.core.store.suspensions.saving import Suspensions
from tests.builders import store_of
from tests.sayso.samples import ask, draft, person, word

KEYS = TenantKeys("default")


@pytest.fixture
def buckets(redis: Redis) -> Buckets:
    return Buckets(store_of(redis))


def make_id(number: int) -> str:
    return f"sus_{number:032x}"


async def begin(store: Suspensions, number: int, *drafts: ItemDraft) -> SuspensionRecord:
    run = draft().run.model_copy(update={"id": f"run_{number}"})
    base = draft(id=make_id(number), run=run)
    saved = await store.create(base.id, lambda now_ms: suspend(base, drafts or (ask(),), now_ms))
    return saved.record


async def list_names(redis: Redis) -> list[str]:
    return [name for name in map(text, await redis.hkeys(KEYS.buckets)) if name != "compared"]


def vary(number: int) -> ItemDraft:
    """A draft whose facets repeat every dozen."""
    one = ask(reviewers=((), ("ada",), ("ben", "group:ops"))[number % 3], quorum={"approve": 2}, extend_by_s=600)
    doubt = Doubt(begun_at_ms=1, holder="w", attempt=1, idempotency_key="k") if number % 4 == 0 else None
    tool = one.tool.model_copy(update={"name": ("refund", "payout")[number % 2]})
    return one.model_copy(update={"tool": tool, "doubt": doubt})


def scan(records: list[SuspensionRecord]) -> dict[OpenItem, object]:
    """The open items with their facets, without any index."""
    return {
        OpenItem(item.terms.deadline_at_ms, record.id, item.item_id): find_facets(record, item)
        for record in records
        for item in record.items
        if item.open and record.status == "pending"
    }


async def check(store: Suspensions, buckets: Buckets, ids: list[str], rng: random.Random) -> None:
    expected = scan(await store.read_many(ids))
    found = await buckets.read()
    assert found is not None
    assert {one.facets: one.size for one in found} == {
        facets: [*expected.values()].count(facets) for facets in set(expected.values())
    }
    wanted = [one.facets for one in found if rng.random() < 0.7]
    listed = sorted(one for one, facets in expected.items() if facets in wanted)
    until_ms = rng.choice([one.deadline_at_ms for one in expected] or [0])
    early = [one for one in listed if one.deadline_at_ms <= until_ms]
    assert await buckets.list_first(wanted, 1_000, until_ms=until_ms) == early
    assert sum(late for _, late in await buckets.count_due(wanted, [0, until_ms])) == len(early)
    limit = rng.choice((1, 3, 50))
    pages: list[list[OpenItem]] = []
    after: OpenItem | None = None
    while page := await buckets.list_first(wanted, limit, after):
        pages.append(page)
        after = page[-1]
    assert [*chain.from_iterable(pages)] == listed


@pytest.mark.parametrize("seed", range(5))
async def test_buckets_equal_a_scan_after_any_changes(store: Suspensions, buckets: Buckets, seed: int) -> None:
    ids: list[str] = []
    rng = random.Random(seed)  # noqa: S311  a repeatable walk, not a secret
    await buckets.complete(1)
    for number in range(60):
        if not ids or rng.random() < 0.5:
            ids.append((await begin(store, number, *(vary(rng.randrange(12)) for _ in range(rng.randint(1, 3))))).id)
        else:
            record = (await store.read(rng.choice(ids))).record
            await change(store, record, rng)
        if number % 6 == 0:
            await check(store, buckets, ids, rng)
    await check(store, buckets, ids, rng)
    assert await buckets.repair() == 0


async def change(store: Suspensions, record: SuspensionRecord, rng: random.Random) -> None:
    """Take a random step that a pending suspension allows."""
    waiting = [item for item in record.items if item.open]
    if record.status != "pending" or not waiting:
        return
    item, by = rng.choice(waiting), rng.choice(("ada", "ben"))
    allowed = not item.terms.reviewers or by in item.terms.reviewers
    repeated = any(one.by.id == by for one in item.decisions)
    step = rng.choice(("decide", "extend", "escalate", "cancel"))
    if step == "decide" and allowed and not repeated:
        action = rng.choice(("approve", "deny"))
        one = word(record, action, by, item_id=item.item_id)
        await store.change(record.id, lambda found, now_ms: decide(found, one, now_ms))
    elif step == "extend":
        until_ms = item.terms.deadline_at_ms + rng.choice((1, 1000))
        if allowed and not repeated and until_ms <= item.terms.extend_until_ms:
            await store.change(
                record.id, lambda found, now_ms: extend(found, item.item_id, until_ms, person(by), now_ms)
            )
    elif step == "escalate":
        reviewers = {"reviewers": (*item.terms.reviewers, f"r{rng.randrange(3)}")}
        await store.change(
            record.id,
            lambda found, now_ms: put_item(found, change_terms(found, item, reviewers, escalated=1), (), now_ms),
        )
    elif step == "cancel":
        await store.change(record.id, lambda found, now_ms: cancel(found, person("bot"), None, now_ms))


async def test_items_with_one_deadline_are_paged_without_gaps(store: Suspensions, buckets: Buckets) -> None:
    for number in range(7):
        await begin(store, number, ask(), ask(1))
    await buckets.complete(1)
    found = await buckets.read()
    assert found is not None
    first = await buckets.list_first([one.facets for one in found], 100)
    pages: list[OpenItem] = []
    after: OpenItem | None = None
    while page := await buckets.list_first([one.facets for one in found], 3, after):
        pages += page
        after = page[-1]
    assert pages == first
    assert len(pages) == 14


async def test_items_of_an_earlier_version_are_filed_once(store: Suspensions, buckets: Buckets, redis: Redis) -> None:
    record = await begin(store, 1, ask(), ask(1))
    names = [KEYS.bucket(name) for name in await list_names(redis)]
    await redis.delete(KEYS.buckets, *names)
    assert await buckets.read() is None
    assert await buckets.complete(1) == 2
    assert await buckets.complete(2) == 0
    found = await buckets.read()
    assert [(one.facets, one.size) for one in found or ()] == [(find_facets(record, record.items[0]), 2)]


async def test_repair_removes_items_that_are_no_longer_open(store: Suspensions, buckets: Buckets, redis: Redis) -> None:
    record = await begin(store, 1)
    (name,) = await list_names(redis)
    member = next(iter(list_places(record)))
    await store.change(record.id, lambda found, now_ms: decide(found, word(found), now_ms))
    assert await redis.hlen(KEYS.buckets) == 0, "an empty bucket is forgotten"
    await redis.zadd(KEYS.bucket(name), {member: 1, f"{2:032x} i1": 5})
    await redis.hset(KEYS.buckets, name, write_facets(find_facets(record, record.items[0])))
    assert await buckets.find_comparison() is None
    assert await buckets.repair() == 2
    assert await redis.exists(KEYS.bucket(name)) == 0
    assert await list_names(redis) == []
    found = await buckets.find_comparison()
    assert found is not None
    assert (found.wrong, found.at_ms > record.created_at_ms) == (2, True)


async def test_repair_moves_items_to_their_bucket(store: Suspensions, buckets: Buckets, redis: Redis) -> None:
    record = await begin(store, 1)
    member = next(iter(list_places(record)))
    (name,) = await list_names(redis)
    await redis.zadd(KEYS.bucket(name), {member: 1})
    await redis.zadd(KEYS.bucket("other"), {member: 1})
    await redis.hset(KEYS.buckets, "other", write_facets(find_facets(record, record.items[0])))
    assert await buckets.repair() == 1
    assert await redis.zscore(KEYS.bucket(name), member) == record.items[0].terms.deadline_at_ms
    assert await list_names(redis) == [name]


async def test_repair_leaves_a_record_that_changed_meanwhile(
    store: Suspensions, buckets: Buckets, redis: Redis
) -> None:
    base = draft(id=make_id(1))
    await store.create(base.id, lambda now_ms: suspend(base, (ask(),), now_ms + 60_000))
    (name,) = await list_names(redis)
    await redis.delete(KEYS.bucket(name))
    await redis.zadd(KEYS.bucket(name), {f"{1:032x} i9": 5})
    assert await buckets.repair() == 0
    assert await redis.zrange(KEYS.bucket(name), 0, -1) == [f"{1:032x} i9".encode()]


async def test_too_many_buckets_are_not_read(
    store: Suspensions, buckets: Buckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BUCKETS", 1)
    await buckets.complete(1)
    await begin(store, 1, vary(1), vary(2))
    assert await buckets.read() is None
    assert [one.suspension_id for one in await buckets.list_first(None, 5)] == [make_id(1)]


def test_facets_are_read_as_written() -> None:
    record = suspend(draft(), (vary(0),), 1).record
    facets = find_facets(record, record.items[0])
    assert read_facets(write_facets(facets)) == facets


def test_facets_of_a_person_are_read_as_they_were_written() -> None:
    """Facets without a person are stored as earlier versions store them."""
    alone = Audience(("ben",), True, "bot", (("ada", ""),))
    assert write_facets(Facets("pay", "bot", alone)).startswith('["pay","bot",[["ben"],true,"bot",[["ada",""]]],')
    for audience in (alone, alone._replace(person="mara")):
        facets = Facets("pay", "bot", audience)
        assert read_facets(write_facets(facets)) == facets
