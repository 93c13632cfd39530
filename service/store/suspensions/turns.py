"""Number the turns of a thread: how many times its owner has asked in it, this time included."""

from hashlib import sha256

from redis.asyncio import Redis

from service.store.connection.connecting import text, translated

MOST_TURNS = 10_000
"""Up to here the turns of a thread are counted; all later ones have this number."""

_KEPT_S = 30 * 86_400


async def number_turn(redis: Redis, thread: str, ask: str) -> int:
    """Return the number of this ask in the thread, from 1; the same ask has the same number whenever it is sent again.

    Two that come at the same moment may have one number. A thread is forgotten 30 days after its last turn.
    """
    field = sha256(ask.encode()).hexdigest()[:16]
    async with translated():
        async with redis.pipeline(transaction=False) as pipe:
            pipe.hget(thread, field)
            pipe.hlen(thread)
            known, count = await pipe.execute()
        if known is not None:
            return int(text(known))
        if count >= MOST_TURNS:
            return MOST_TURNS
        async with redis.pipeline(transaction=False) as pipe:
            pipe.hsetnx(thread, field, count + 1)
            pipe.expire(thread, _KEPT_S)
            await pipe.execute()
    return int(count) + 1
