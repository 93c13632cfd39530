"""Secrets of channels, endpoints, senders and instances are encrypted in the store; rows of before remain readable."""

from pathlib import Path

import pytest
from redis.asyncio import Redis

from sayso.core.key_files import create_key_file
from sayso.errors import Unreadable
from service.core.store.channels import Installs, Subscription, Subscriptions
from service.core.store.instances import Instance, Instances, Registration
from service.core.store.suspensions.commits import Idempotency
from service.core.store.tenants import TenantStore
from service.features.webhooks.store import Endpoint, Endpoints, Sender, Senders, TimedSecret
from tests.builders import store_of

CANARY = "canary-4711-secret"
SECRETS = (TimedSecret(secret=CANARY),)
ENDPOINT = Endpoint(id="whe_1", url="https://a.example", events=(), secrets=SECRETS, created_by="ann", created_at_ms=1)
SENDER = Sender(id="snd_1", name="erp", reviewer="ann", secrets=SECRETS, created_by="ann", created_at_ms=1)
SUBSCRIPTION = Subscription(endpoint=f"https://push.example/{CANARY}", p256dh="p", auth="a")
DELIVERY = Registration(url="https://a.example", registration_id="r", signing_secret=CANARY)
INSTANCE = Instance(
    id="i", tenant="default", scope="s", name="n", created_at_ms=1, credential_hash="h", delivery=DELIVERY
)


async def save_all(store: TenantStore) -> None:
    await Endpoints(store).add(ENDPOINT)
    await Senders(store).add(SENDER)
    await Subscriptions(store).save(SUBSCRIPTION)
    await Subscriptions(store).keep_key(CANARY)
    await Installs(store).save_token("slack", CANARY)
    await Instances(store).save(INSTANCE, Idempotency("a", "k", "f", "r"))


async def check_all(store: TenantStore) -> None:
    assert await Endpoints(store).list_all() == [ENDPOINT] == [await Endpoints(store).find("whe_1")]
    assert await Senders(store).list_all() == [SENDER]
    assert await Subscriptions(store).find(SUBSCRIPTION.address) == SUBSCRIPTION
    assert await Subscriptions(store).keep_key("another") == CANARY
    assert await Installs(store).find_token("slack") == CANARY
    instance = await Instances(store).read("i")
    assert instance is not None
    assert instance.delivery == DELIVERY


async def dump(redis: Redis) -> bytes:
    return b"".join([key + (await redis.dump(key) or b"") async for key in redis.scan_iter()])


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    create_key_file(tmp_path / "keys")
    return tmp_path / "keys"


async def test_rows_hold_no_secret_in_clear(redis: Redis, key_file: Path) -> None:
    store = store_of(redis, key_file=key_file)
    await save_all(store)
    assert CANARY.encode() not in await dump(redis)
    await check_all(store)
    await Endpoints(store).disable("whe_1", "gone")
    await Installs(store).replace_token("slack", CANARY, f"{CANARY} anew")
    assert CANARY.encode() not in await dump(redis)
    assert await Installs(store).find_token("slack") == f"{CANARY} anew"


async def test_rows_of_before_the_key_file_remain_readable(redis: Redis, key_file: Path) -> None:
    await save_all(store_of(redis))
    assert CANARY.encode() in await dump(redis)
    await check_all(store_of(redis, key_file=key_file))


async def test_rows_without_their_key_or_in_another_place_are_unreadable(redis: Redis, key_file: Path) -> None:
    store = store_of(redis, key_file=key_file)
    await save_all(store)
    with pytest.raises(Unreadable, match="which SAYSO_KEY_FILE does not hold"):
        await Endpoints(store_of(redis)).find("whe_1")
    sealed = await redis.hget(store.keys.endpoints, "whe_1")
    assert sealed is not None
    await redis.hset(store.keys.endpoints, "whe_2", sealed)
    await redis.hset(store.keys.senders, "snd_1", sealed)
    assert await Endpoints(store).list_all() == [ENDPOINT]
    assert await Senders(store).list_all() == []
    assert [record.suspension_id for record in store.readings.list_unreadable()] == ["endpoint whe_2", "sender snd_1"]
