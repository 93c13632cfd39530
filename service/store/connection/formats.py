"""Keep the version of the format in which the store is written, so that no earlier Sayso works on what it cannot read.

It is written at the first start. A version that writes what this one cannot read takes the next number.
"""

import re

from redis.asyncio import Redis

from sayso.errors import SaysoError
from service.store.connection.connecting import connect, text, translated
from service.store.keys import FORMAT

CURRENT = 1
"""The format that this version writes, and the latest that it reads."""


class LaterFormat(SaysoError):
    """The store was written by a later version of Sayso; start that version, or use another store."""


async def check_format(url: str) -> None:
    """Note the format in a store that names none; raises `LaterFormat` for a later one, and `Unavailable`."""
    async with connect(url) as redis:
        await claim_format(redis)


async def claim_format(redis: Redis) -> None:
    """Do what `check_format` does, on a connection that is there."""
    async with translated():
        await redis.set(FORMAT, CURRENT, nx=True)
        raw = await redis.get(FORMAT)
    found = text(raw) if raw is not None else str(CURRENT)
    if not re.fullmatch(r"[1-9][0-9]{0,8}", found) or int(found) > CURRENT:
        raise LaterFormat(
            f"The store is written in format {found[:40]!r}, and this version of Sayso reads formats up to {CURRENT}. "
            "Start the version that wrote it, or set SAYSO_REDIS_URL to another store. Nothing was changed."
        )
