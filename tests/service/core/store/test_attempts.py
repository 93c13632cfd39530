"""Attempts are counted for all processes together, and never with the names they were made under."""

import pytest

from sayso.errors import TooManyRequests
from service.core.store.attempts import Allowance, Attempts
from service.core.store.connection.connecting import connect

THREE = Allowance("try", most=3, window_s=60)


async def test_attempt_over_the_limit_gets_retry_after(clean_store_url: str) -> None:
    async with connect(clean_store_url) as redis, connect(clean_store_url) as other:
        attempts = [Attempts(redis), Attempts(other)]
        for number in range(3):
            await attempts[number % 2].count(THREE, "anna")
        with pytest.raises(TooManyRequests) as refused:
            await attempts[1].count(THREE, "anna")
        assert 1 <= int(str(refused.value.facts["retry_after_s"])) <= 60
        await attempts[0].count(THREE, "ben")
        await attempts[0].count(Allowance("other", most=3, window_s=60), "anna")
        assert not [name for name in await redis.keys() if b"anna" in name]


async def test_what_is_forgotten_is_counted_anew(clean_store_url: str) -> None:
    async with connect(clean_store_url) as redis:
        attempts = Attempts(redis)
        for _ in range(3):
            await attempts.count(THREE, "anna")
        await attempts.forget(THREE, "anna")
        await attempts.count(THREE, "anna")


async def test_a_name_that_is_no_text_is_counted_too(clean_store_url: str) -> None:
    async with connect(clean_store_url) as redis:
        await Attempts(redis).count(THREE, "\ud800\0")
