"""Check at start that the store keeps every confirmed write."""

from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from sayso.errors import SaysoError
from service.store.connection.connecting import connect, text, translated
from service.store.connection.faults import WAIT_S, await_store

WANTED = {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}
"""Settings of the server with which a confirmed write survives any crash."""


class WeakDurability(SaysoError):
    """The store may lose confirmed writes. See docs/operations.md."""


async def check_durability(url: str, *, allow_weak: bool, wait_s: float = WAIT_S) -> str | None:
    """Wait for the store; return its weak settings, or None. Raises `WeakDurability` and `Unavailable`."""
    await await_store(url, wait_s)
    async with connect(url) as redis:
        weakness = await _find_weakness(redis)
    if weakness is not None and not allow_weak:
        raise WeakDurability(
            f"The store may forget what it confirmed: {weakness}. Set it up as docs/operations.md says, "
            "or set SAYSO_ALLOW_WEAK_DURABILITY=true if that may happen here."
        )
    return weakness


async def _find_weakness(redis: Redis) -> str | None:
    options: dict[str, str] = {}
    for name in WANTED:
        async with translated():
            try:
                reply: Any = await redis.config_get(name)
            except ResponseError:
                return "it does not tell how it is set up (CONFIG GET is refused)"
        options |= {text(key): text(value) for key, value in reply.items()}
    wrong = [(name, value) for name, value in WANTED.items() if options.get(name) != value]
    return "; ".join(f"{name} is {options.get(name, 'unknown')}, not {value}" for name, value in wrong) or None
