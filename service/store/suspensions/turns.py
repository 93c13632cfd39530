"""Numbers of the turns of a thread."""

from hashlib import sha256

from redis.asyncio import Redis

from service.store.connection.connecting import text, translated

MOST_TURNS = 10_000  # the highest number of a turn; all later turns share it
_KEPT_S = 30 * 86_400


async def number_turn(redis: Redis, thread: str, turn: str) -> int:
    """Return the turn's number in the thread, from 1; concurrent turns may share one. Threads last 30 days."""
    field = sha256(turn.encode()).hexdigest()[:16]
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
