"""The format of a store, which every process checks at its start: the version that wrote it, and its MACs."""

import re
from secrets import token_hex

from sayso.errors import Altered, SaysoError
from service.core.store.connection.connecting import Client, connect, name_shared, text
from service.core.store.connection.macs import Macs
from service.core.store.keys import FORMAT, MACS, STORE

CURRENT = 2  # the format that this version reads and writes; format 2 renamed stored fields and keys
RESTORING = "restoring"  # instead of a format, until a restore has ended
_UNNUMBERED = "1"  # the format of a store with keys of Sayso but no number
_BY_PROCESSES = frozenset(
    (
        *("agents", "clock", "definitions", "starts", "waiting", "retained", "buckets", "activity", "refusals"),
        *("rules", "rulebook", "rule-changes", "rule-version", "rule-versions", "commits", "comparing"),
        *("store", "macs", "attempts"),  # in a cluster
    )
)
"""What service, workers and clock write although nobody has set the store up."""


class OtherFormat(SaysoError):
    """Another version of Sayso wrote the store. Start that version, or use another store."""


class OtherMacs(OtherFormat):
    """The records of the store carry other MACs than this process adds. Correct SAYSO_KEY_FILE, or run `sayso macs`."""


async def check_format(url: str, macs: Macs | None = None) -> None:
    """Write the format into an empty store. Raises `OtherFormat` for any other format or MACs, and `Unavailable`."""
    async with connect(url, macs=macs) as redis:
        raw = await redis.get(name_shared(redis, FORMAT))
        if raw is None:
            async for key in redis.scan_iter(match=f"sayso:{{{redis.tenant or '*'}", count=1000):
                if text(key).partition("}:")[2].partition(":")[0] not in _BY_PROCESSES:
                    break
            else:
                if redis.macs.active:
                    await redis.set(name_shared(redis, MACS), "1", nx=True)
                await redis.set(name_shared(redis, FORMAT), CURRENT, nx=True)
                raw = await redis.get(name_shared(redis, FORMAT))
        await check_macs(redis)
    number = _UNNUMBERED if raw is None else text(raw)
    if number == RESTORING:
        raise OtherFormat("A restore into this store has not ended. Wait for it, or empty the store and restore again.")
    if number != str(CURRENT):
        later = re.fullmatch(r"[1-9][0-9]{0,8}", number) and int(number) > CURRENT
        wrote = "A later version" if later else "An earlier version" if number == "1" else "Another version"
        raise OtherFormat(
            f"{wrote} of Sayso wrote this store, in format {number[:40]!r}; this version reads format {CURRENT} only. "
            "Start the version that wrote it, or set SAYSO_REDIS_URL to another store. Nothing was changed."
        )
    async with connect(url) as redis:
        await redis.set(name_shared(redis, STORE), token_hex(8), nx=True)


async def check_macs(redis: Client) -> None:
    """Raise `OtherMacs` unless the records of the store and those of this process both carry MACs, or both none."""
    try:
        marked = await redis.get(name_shared(redis, MACS)) is not None
    except Altered as error:
        raise OtherMacs(
            "The records of this store carry MACs of a key that the file in SAYSO_KEY_FILE does not have. Put that key "
            "back into the file. Nothing was changed."
        ) from error
    if redis.macs.active and not marked and await redis.exists(name_shared(redis, FORMAT)):
        raise OtherMacs(
            "The records of this store carry no MACs, which SAYSO_KEY_FILE turns on. Compare the store with a backup, "
            "run `sayso macs` with the settings of the service, then start again. Nothing was changed."
        )
    if marked and not redis.macs.active:
        raise OtherMacs(
            "The records of this store carry MACs. Set SAYSO_KEY_FILE to the file with their key. Nothing was changed."
        )
