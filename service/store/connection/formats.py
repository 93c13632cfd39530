"""The version of the store's format; a process of another format does not start."""

import re

from redis.asyncio import Redis

from sayso.errors import SaysoError
from service.store.connection.connecting import connect, text, translated
from service.store.keys import FORMAT

CURRENT = 2  # the format that this version reads and writes; format 2 renamed stored fields and keys
_UNNUMBERED = "1"  # the format of a store with keys of Sayso but no number
_BY_PROCESSES = frozenset(
    (
        *("agents", "clock", "definitions", "starts", "waiting", "retained", "buckets", "activity", "refusals"),
        *("rules", "rulebook", "rule-changes", "rule-version", "rule-versions"),
    )
)
"""What service, workers and clock write although nobody has set the store up."""


class OtherFormat(SaysoError):
    """Another version of Sayso wrote the store. Start that version, or use another store."""


async def check_format(url: str) -> None:
    """Write the format into an empty store. Raises `OtherFormat` for any other format, and `Unavailable`."""
    async with connect(url) as redis:
        await claim_format(redis)


async def claim_format(redis: Redis) -> None:
    """Run `check_format` on an open connection."""
    async with translated():
        raw = await redis.get(FORMAT)
        if raw is None and not await _holds_data(redis):
            await redis.set(FORMAT, CURRENT, nx=True)
            raw = await redis.get(FORMAT)
    number = _UNNUMBERED if raw is None else text(raw)
    if number != str(CURRENT):
        later = re.fullmatch(r"[1-9][0-9]{0,8}", number) and int(number) > CURRENT
        wrote = "A later version" if later else "An earlier version" if number == "1" else "Another version"
        raise OtherFormat(
            f"{wrote} of Sayso wrote this store, in format {number[:40]!r}; this version reads format {CURRENT} only. "
            "Start the version that wrote it, or set SAYSO_REDIS_URL to another store. Nothing was changed."
        )


async def _holds_data(redis: Redis) -> bool:
    """Return whether the store holds more than what running processes write into one that was emptied."""
    async for key in redis.scan_iter(match="sayso:{*", count=1000):
        if text(key).partition("}:")[2].partition(":")[0] not in _BY_PROCESSES:
            return True
    return False
