"""The texts of open items find what their records say, and bound what one item costs."""

from itertools import chain

import pytest
from redis.asyncio import Redis

from sayso.core.canonical_json import JsonObject
from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.transitions.deciding import decide, extend, suspend
from service.core.operations.masking import mask_record
from service.core.operations.queries import parse_query
from service.core.store.connection.connecting import text
from service.core.store.keys import TenantKeys
from service.core.store.suspensions import texts as module
from service.core.store.suspensions.buckets import Buckets
from service.core.store.suspensions.facets import OpenItem, find_facets, list_places, name_bucket
from service.core.store.suspensions.saving import Suspensions
from service.core.store.suspensions.texts import Matches, Texts
from tests.builders import store_of
from tests.sayso.samples import ask, draft, person, word

KEYS = TenantKeys("default")
ARGS: tuple[JsonObject, ...] = (
    {"order": "A-1", "amount": 4_990.5, "note": "Parcel arrived\tdamaged"},
    {"order": "A-2", "amount": "5000", "lines": [{"sku": "CUP", "net": {"amount": 12}}]},
    {"order": "B-3", "amount": 5_001, "note": "Straße", "big": 2**53 + 1},
    {"order": "B-4", "amount": "1_200", "limit": -3, "empty": {}},
    {"title": "x" * 4_000 + " hidden needle", "amount": 7},
    {},
)
SEARCHES = (
    "a-1",
    "parcel",
    '"arrived\tdamaged"',
    "STRASSE",
    "cup",
    "sku",
    "amount>5000",
    "amount>=5000",
    "amount=5000",
    "amount<13",
    "amount>=1200",
    "net.amount=12",
    "limit<0",
    f"big={2**53 + 1}",
    "needle",
    "refund",
    "amount>0 cup",
    "zebra",
    "amount<1e300",
    "amount>-1e999",
    "%d",
    "a.1",
)


@pytest.fixture
def texts(redis: Redis) -> Texts:
    return Texts(store_of(redis))


def vary(args: JsonObject, **fields: object) -> ItemDraft:
    one = ask(**fields)  # type: ignore[arg-type]
    return one.model_copy(update={"tool": one.tool.model_copy(update={"args": args})})


async def begin(store: Suspensions, number: int, one: ItemDraft) -> SuspensionRecord:
    run = draft().run.model_copy(update={"id": f"run_{number}"})
    base = draft(id=f"sus_{number:032x}", run=run)
    return (await store.create(base.id, lambda now_ms: suspend(base, (one,), now_ms))).record


async def search(texts: Texts, records: list[SuspensionRecord], search: str, limit: int = 50) -> Matches:
    wanted = list(dict.fromkeys(find_facets(record, item) for record in records for item in record.items))
    return await texts.find(wanted, parse_query(search).probes, limit)


def fit(record: SuspensionRecord, search: str) -> bool:
    masked = mask_record(record)
    return parse_query(search).matches(masked, masked.items[0], mine=True)


@pytest.mark.parametrize("sought", SEARCHES)
async def test_search_finds_every_item_that_fits(texts: Texts, store: Suspensions, sought: str) -> None:
    records = [await begin(store, number, vary(args)) for number, args in enumerate(ARGS)]
    found = await search(texts, records, sought)
    fitting = {record.id for record in records if fit(record, sought)}
    assert fitting <= {item.suspension_id for item in found.items}
    assert found.certain + found.uncertain == len(found.items)
    assert found.certain <= len(fitting) <= found.certain + found.uncertain


FLAGGED: tuple[tuple[JsonObject, tuple[str, ...]], ...] = (
    ({"to": "ann@example.com", "note": "two\tparts\nof a text"}, ()),
    ({"to": "Straße 5, über den Fluß"}, ()),
    ({"to": "p\u0430ypal"}, ("lookalike",)),
    ({"t\u200bo": "ann"}, ("hidden",)),
    ({"to": ["p\u0430ypal", {"of": "a\u200bb"}]}, ("lookalike", "hidden")),
    ({"to": "bell \x07 and escape \x1e"}, ("hidden",)),
    ({"body": "word " * 1_000, "to": "a\u200bb"}, ("hidden",)),
    ({"body": "word " * 1_000}, ()),
)


@pytest.mark.parametrize("flag", ["lookalike", "hidden"])
async def test_flag_is_decided_by_marks_and_not_by_records(texts: Texts, store: Suspensions, flag: str) -> None:
    records = [await begin(store, number, vary(args)) for number, (args, _) in enumerate(FLAGGED)]
    matches = await search(texts, records, f"is:{flag}")
    flagged = {record.id for record, (_, flags) in zip(records, FLAGGED, strict=True) if flag in flags}
    assert {item.suspension_id for item in matches.items} == flagged
    assert (matches.certain, matches.uncertain) == (len(flagged), 0)
    assert {record.id for record in records if fit(record, f"is:{flag}")} == flagged


async def test_flag_of_much_text_is_left_to_its_record(texts: Texts, store: Suspensions) -> None:
    record = await begin(store, 1, vary({"body": "Straße " * 1_000}))
    assert (await search(texts, [record], "is:hidden")).uncertain == 1


async def test_flag_of_a_text_without_marks_is_left_to_its_record(
    texts: Texts, store: Suspensions, redis: Redis
) -> None:
    records = [
        await begin(store, number, vary({"to": to})) for number, to in enumerate(("Zürich", "plain", "a\u200bb"))
    ]
    for record in records:
        ((member, place),) = list_places(record).items()
        name = KEYS.texts(name_bucket(place.facets))
        stored = await redis.hget(name, member)
        assert stored is not None
        deadline, _, body = text(stored).split("\x1f", 2)
        await redis.hset(name, member, f"{deadline}\x1f\x1f{body}")
    matches = await search(texts, records, "is:hidden")
    assert {item.suspension_id for item in matches.items} == {records[0].id, records[2].id}
    assert (matches.certain, matches.uncertain) == (0, 2)


async def test_search_is_paged_by_deadline_and_counts_all(
    texts: Texts, store: Suspensions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SLICE", 7)
    records = [await begin(store, number, vary({"n": number}, timeout_s=9_000 - number)) for number in range(60)]
    wanted = list(dict.fromkeys(find_facets(record, record.items[0]) for record in records))
    probes = parse_query("n>=10").probes
    pages: list[list[OpenItem]] = []
    after: OpenItem | None = None
    while not pages or pages[-1]:
        found = await texts.find(wanted, probes, 20, after)
        assert (found.certain, found.uncertain) == (50, 0)
        pages.append(found.items)
        after = found.items[-1] if found.items else None
    listed = [*chain.from_iterable(pages)]
    assert listed == sorted(listed)
    assert {item.suspension_id for item in listed} == {record.id for record in records[10:]}
    soon = await texts.find(wanted, probes, 20, None, listed[4].deadline_at_ms)
    assert soon.items == listed[:5]


async def test_secret_argument_has_no_text(texts: Texts, store: Suspensions) -> None:
    record = await begin(store, 1, vary({"order": "A-1", "card": "4111"}, secrets=("card",)))
    assert (await search(texts, [record], "4111")).items == []
    assert len((await search(texts, [record], "a-1")).items) == 1


async def test_long_item_is_bounded_and_left_to_its_record(texts: Texts, store: Suspensions, redis: Redis) -> None:
    record = await begin(store, 1, vary({"first": "short", "body": "word " * 100_000}))
    ((facets, _),) = list_places(record).values()
    (stored,) = await redis.hvals(KEYS.texts(name_bucket(facets)))
    assert len(stored) < module.MOST_CHARS + 100
    assert await search(texts, [record], "short") == Matches((await search(texts, [record], "short")).items, 1, 0)
    assert (await search(texts, [record], "zebra")).uncertain == 1


NOTES: JsonObject = {"body": " ".join(f"line{number} of a text" for number in range(500)), "last": {"amount": 4_990}}


@pytest.mark.parametrize(
    ("sought", "count"),
    [
        ("line499", 1),
        ("amount>100", 1),
        ("t line2", 1),
        ("of", 1),
        ("xy", 1),
        ("lines4", 0),
        ("zebra", 0),
        ("weight>1", 0),
    ],
)
async def test_filter_of_the_rest_excludes_an_item_of_some_length(
    texts: Texts, store: Suspensions, sought: str, count: int
) -> None:
    record = await begin(store, 1, vary(NOTES))
    assert len((await search(texts, [record], sought)).items) == count
    assert fit(record, sought) <= count


async def test_filter_is_small_and_misses_no_part_of_the_rest(texts: Texts, store: Suspensions, redis: Redis) -> None:
    body = "".join(f"{number * 7919 % 10_007:x}é" for number in range(2_500))
    record = await begin(store, 1, vary({"body": body}))
    ((facets, _),) = list_places(record).values()
    (stored,) = await redis.hvals(KEYS.texts(name_bucket(facets)))
    assert len(stored) < module.MOST_CHARS + len(body)
    for first in range(0, len(body) - 9, 211):
        assert (await search(texts, [record], body[first : first + 9])).items
    absent = [await search(texts, [record], f"{number:08o}zebra") for number in range(200)]
    assert not any(matches.items for matches in absent)


async def test_number_is_never_cut(texts: Texts, store: Suspensions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CHARS", 100)
    record = await begin(store, 1, vary({"n": 12_345, "m": 12_345}))
    for sought in ("n<100", "m<100", "n>100", "m>100"):
        matches = await search(texts, [record], sought)
        assert (matches.certain > 0) <= fit(record, sought) <= len(matches.items)


async def test_decided_item_has_no_text_and_a_longer_deadline_is_kept(
    texts: Texts, store: Suspensions, redis: Redis
) -> None:
    record = await begin(store, 1, vary({"order": "A-1"}, extend_by_s=600))
    until_ms = record.items[0].terms.deadline_at_ms + 60_000
    saved = await store.change(record.id, lambda old, now_ms: extend(old, "i1", until_ms, person("ada"), now_ms))
    (item,) = (await search(texts, [saved.record], "a-1")).items
    assert item.deadline_at_ms == saved.record.items[0].terms.deadline_at_ms
    await store.change(record.id, lambda old, now_ms: decide(old, word(old, "approve"), now_ms))
    assert [name async for name in redis.scan_iter(f"{KEYS.texts('')}*")] == []


async def test_items_of_an_earlier_version_get_texts(texts: Texts, store: Suspensions, redis: Redis) -> None:
    buckets = Buckets(store_of(redis))
    record = await begin(store, 1, vary({"order": "A-1"}))
    ((facets, _),) = list_places(record).values()
    await redis.delete(KEYS.texts(name_bucket(facets)))
    await redis.hset(KEYS.buckets, "complete", "1")
    await buckets.read()
    assert not buckets.searchable
    assert await buckets.complete(5) == 1
    assert len((await search(texts, [record], "a-1")).items) == 1
    assert await buckets.complete(6) == 0


async def test_repair_writes_a_missing_text_and_removes_a_strange_one(
    texts: Texts, store: Suspensions, redis: Redis
) -> None:
    buckets = Buckets(store_of(redis))
    record = await begin(store, 1, vary({"order": "A-1"}))
    ((facets, _),) = list_places(record).values()
    await redis.delete(KEYS.texts(name_bucket(facets)))
    assert await buckets.repair() == 1
    assert len((await search(texts, [record], "a-1")).items) == 1
    assert await buckets.repair() == 0
