"""The restore of a backup into an empty store: load, verify, then void what may have run since.

The store has its format last, so no program starts on one whose restore did not end.
"""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from sayso.core.clock import iso_utc, new_id
from sayso.core.key_files import SecretKey
from sayso.core.records.freezes import ALL, Freeze
from sayso.errors import InvalidInput
from service.assembly import open_process
from service.core.operations.voiding import void_all_starts
from service.core.settings import Settings
from service.core.store.connection.adoption import survey
from service.core.store.connection.connecting import CURRENT, RESTORING, connect
from service.core.store.connection.macs import Macs
from service.core.store.freezes import FreezeStore
from service.core.store.keys import FORMAT, STORE
from service.core.wiring import Wiring
from service.features.backup.files import read_backup, read_header
from service.features.backup.store import NotVerified, compare, load

HOLDER = "restore"
_ALL = 10**9


async def restore(
    path: Path, key: Mapping[str, SecretKey], url: str, desks: Mapping[str, Settings], *, verify: bool
) -> AsyncIterator[str]:
    """Restore a backup and yield the lines to print; raises `InvalidInput`, `NotVerified` and `Unavailable`."""
    header = read_header(path)
    if header.format != str(CURRENT):
        raise InvalidInput(
            f"The backup {path} is of format {header.format}, and this version reads {CURRENT}. Restore it with the "
            "version of Sayso that wrote it."
        )
    _check_tenants(path, {name async for name in _list_tenants(path, key)}, desks)
    async with connect(url) as redis:
        if await redis.dbsize():
            raise InvalidInput(
                "The store is not empty. Stop all programs of Sayso, and name an empty store in SAYSO_REDIS_URL; "
                "nothing was changed."
            )
        await redis.set(FORMAT, RESTORING)
        counts = await load(redis, read_backup(path, key.get))
        yield f"{counts.total()} keys restored, as they were at {iso_utc(header.at_ms)} or moments later."
        if verify:
            await compare(redis, counts)
        await redis.set(STORE, new_id("store"))  # processes compare its commits with no earlier store's
    for settings in desks.values():
        async with open_process(settings) as process:
            if verify:
                yield await _verify(process.wiring)
            yield await _void(process.wiring, header.at_ms)
    async with connect(url) as redis:
        await redis.set(FORMAT, CURRENT)


async def _list_tenants(path: Path, key: Mapping[str, SecretKey]) -> AsyncIterator[str]:
    """Read the whole file, so that nothing of a damaged one is restored, and yield the tenants in it."""
    for entry in read_backup(path, key.get):
        if found := re.match(rb"sayso:\{([^}]*)\}:", entry.name):
            yield found[1].decode()


def _check_tenants(path: Path, found: set[str], desks: Mapping[str, Settings]) -> None:
    if unknown := sorted(found - set(desks)):
        raise InvalidInput(
            f"The backup {path} holds the tenants {', '.join(unknown)}, which the settings do not name for this store. "
            "Run it with the settings of the service; nothing was changed."
        )


async def _verify(wiring: Wiring) -> str:
    """Check all records, MACs, trails and their chains of a tenant; raises `NotVerified`."""
    records, unreadable = await wiring.inspections.look_through(most=_ALL)
    runs, faults = await wiring.inspections.look_through_trails(most=_ALL)
    wrong = [f"{record.suspension_id}: {record.reason}" for record in unreadable]
    wrong += [f"{run_id}: {fault}" for run_id, fault in faults.items()]
    macs = Macs(wiring.settings.key_file)
    if macs.active:
        found = await survey(wiring.settings.store_url, macs)
        wrong += [f"{name}: its MAC is missing or wrong" for name in found.named]
    if wrong:
        raise NotVerified(_describe(wiring.tenant, wrong))
    return f"{wiring.tenant}: {records} suspensions can be read, and the trails of {runs} runs are whole."


def _describe(tenant: str, wrong: Sequence[str]) -> str:
    more = f", and {len(wrong) - 20} more" if len(wrong) > 20 else ""
    return f"{tenant}: {'; '.join(wrong[:20])}{more}. The store stays closed. Empty it, and restore another backup."


async def _void(wiring: Wiring, at_ms: int) -> str:
    at = iso_utc(at_ms)
    why = f"This desk was restored from a backup of {at}. What happened since is not known: the call may have run."
    reason = f"The desk was restored from a backup of {at}. Check what ran since."
    freeze = Freeze(id=new_id("frz"), scope=ALL, reason=reason, by=HOLDER, at_ms=at_ms)  # deadlines move by all of it
    await wiring.part(FreezeStore).save(freeze)
    done = await void_all_starts(wiring, HOLDER, why)
    if done.unreadable:
        raise NotVerified(_describe(wiring.tenant, [f"{name} cannot be read" for name in done.unreadable]))
    await wiring.activity.record("desk_restored", "", door="restore", at=at)
    return (
        f"{wiring.tenant}: everything is frozen. {done.pending} suspensions wait for people, the calls of "
        f"{done.doubted} are in doubt, {done.failed} runs failed and can be retried. Check what ran, then unfreeze."
    )
