"""A request is known again by its key, and another one under the same key is refused."""

from dataclasses import replace

import pytest

from sayso.errors import IdempotencyConflict
from service.core.store.attempts import Replays
from service.core.store.connection.connecting import connect
from service.core.store.keys import TenantKeys
from service.core.store.suspensions.commits import IDEMPOTENCY_MS, Idempotency
from tests.builders import store_of

SEEN = Idempotency(actor="root", key="k", fingerprint="f" * 32, ref="key_1|2")


async def test_what_was_remembered_is_recalled_for_a_day(clean_store_url: str) -> None:
    async with connect(clean_store_url) as redis:
        replays = Replays(store_of(redis))
        assert await replays.recall(SEEN) is None
        await replays.remember(SEEN)
        await replays.remember(replace(SEEN, ref="key_2"))
        assert await replays.recall(SEEN) == "key_1|2"
        assert await replays.recall(replace(SEEN, actor="anna")) is None
        left_ms = await redis.pttl(TenantKeys("default").idempotency("root", "k"))
        assert 0 < left_ms <= IDEMPOTENCY_MS


async def test_another_request_under_the_same_key_is_refused(clean_store_url: str) -> None:
    async with connect(clean_store_url) as redis:
        replays = Replays(store_of(redis))
        await replays.remember(SEEN)
        with pytest.raises(IdempotencyConflict):
            await replays.recall(replace(SEEN, fingerprint="0" * 32))
