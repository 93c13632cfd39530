"""The restore of a backup into an empty store: load, verify, then void what may have run since.

The store has its format last, so no program starts on one whose restore did not end.
"""

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sayso.core.clock import iso_utc, new_id
from sayso.core.key_files import SecretKey
from sayso.core.records.freezes import ALL, Freeze
from sayso.errors import InvalidInput, Unreadable
from service.assembly import open_process
from service.core.settings import Settings
from service.core.settings.stores import read_cluster
from service.core.store.connection.adoption import survey
from service.core.store.connection.connecting import Client, connect, name_shared
from service.core.store.connection.formats import CURRENT, RESTORING, OtherMacs, check_macs
from service.core.store.connection.macs import Macs, find_kind
from service.core.store.freezes import FreezeStore
from service.core.store.keys import FORMAT, PREFIX, STORE
from service.core.wiring import Wiring
from service.features.backup.files import Entry, read_backup, read_header
from service.features.backup.store import EXPIRED, Copy, NotVerified, compare, load

HOLDER = "restore"
_MARK = "moving"
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
    cluster = read_cluster(url)
    only = cluster.tenant if cluster is not None else None
    gone = _check_tenants(path, key, desks, only)
    async with connect(url) as redis:
        if await redis.get(name_shared(redis, FORMAT)) == RESTORING.encode():
            raise InvalidInput(
                "A restore into this store has not ended, so no program starts on it. If it was cut off, empty the "
                "store, then restore again; nothing was changed."
            )
        if await _holds_keys(redis):
            raise InvalidInput(
                "The store is not empty. Stop all programs of Sayso, and name an empty store in SAYSO_REDIS_URL; "
                "nothing was changed."
            )
        await redis.set(name_shared(redis, FORMAT), RESTORING)
        counts = await load(redis, (entry for entry in _read(path, key, only) if _is_restored(entry, gone)))
        if only is not None:
            counts -= await Copy(redis, only).drop_others()
        yield f"{counts.total()} keys restored, as they were at {iso_utc(header.at_ms)} or moments later."
        if verify:
            await compare(redis, counts)
        # A new id, so that processes do not compare its commits with those of an earlier store.
        await redis.set(name_shared(redis, STORE), new_id("store"))
    for settings in desks.values():
        await _check_keys(settings)
        async with open_process(settings) as process:
            if verify:
                yield await verify_tenant(process.wiring)
            yield await _void(process.wiring, header.at_ms)
    async with connect(url) as redis:
        await redis.set(name_shared(redis, FORMAT), CURRENT)


async def _check_keys(settings: Settings) -> None:
    """Raise `NotVerified` where the records cannot be read because they carry other MACs."""
    try:
        async with connect(settings.store_url, macs=Macs(settings.key_file)) as redis:
            await check_macs(redis)
    except OtherMacs as error:
        raise NotVerified(
            "SAYSO_KEY_FILE does not fit the restored records: set the file with the key of their MACs, or none for "
            "records without MACs. The store stays closed. Empty it, and restore again."
        ) from error


async def _holds_keys(redis: Client) -> bool:
    """Return whether the store, or in a cluster the tenant's part of it, has any key."""
    if redis.tenant is None:
        return bool(await redis.dbsize())
    return bool([name async for name in redis.scan_iter(f"{name_shared(redis, PREFIX)}*", count=1_000)])


def _is_restored(entry: Entry, gone: set[str]) -> bool:
    kind = find_kind(entry.name)
    if kind == _MARK:
        return entry.expires_ms < 0  # that of a move under way is void
    return entry.name != FORMAT.encode() and kind not in EXPIRED and _find_tenant(entry) not in gone


def _find_tenant(entry: Entry) -> str:
    named = re.match(rb"sayso:\{([^}]*)\}:", entry.name)
    return named[1].decode() if named is not None else ""


def _read(path: Path, key: Mapping[str, SecretKey], only: str | None) -> Iterator[Entry]:
    """Yield the entries of a backup; with a tenant its own, and those outside of any tenant."""
    return (entry for entry in read_backup(path, key.get) if only is None or _find_tenant(entry) in ("", only))


def _check_tenants(
    path: Path, key: Mapping[str, SecretKey], desks: Mapping[str, Settings], only: str | None
) -> set[str]:
    """Read the whole file, so that nothing of a damaged one is restored; return the tenants that moved elsewhere."""
    tenants, marked = set[str](), set[str]()
    for entry in _read(path, key, only):
        tenants.add(_find_tenant(entry))
        if find_kind(entry.name) == _MARK and entry.dump is not None and entry.expires_ms < 0:
            marked.add(_find_tenant(entry))
    gone = marked - set(desks)
    if unknown := sorted(tenants - {""} - gone - set(desks)):
        raise InvalidInput(
            f"The backup {path} holds the tenants {', '.join(unknown)}, which the settings do not name for this store. "
            "Run it with the settings of the service; nothing was changed."
        )
    return gone


_RESTORED = "The store stays closed. Empty it, and restore another backup."


async def verify_tenant(wiring: Wiring, prefix: str = "", advice: str = _RESTORED) -> str:
    """Check all records, MACs, trails and their chains of a tenant; raises `NotVerified`."""
    records, unreadable = await wiring.inspections.look_through(most=_ALL)
    runs, faults = await wiring.inspections.look_through_trails(most=_ALL)
    wrong = [f"{record.suspension_id}: {record.reason}" for record in unreadable]
    wrong += [f"{run_id}: {fault}" for run_id, fault in faults.items()]
    macs = Macs(wiring.settings.key_file)
    if macs.active:
        named = (await survey(wiring.settings.store_url, macs, prefix=prefix)).named
        wrong += [f"{name}: its MAC is missing or wrong" for name in named]
    if wrong:
        raise NotVerified(_describe(wiring.tenant, wrong, advice))
    return f"{wiring.tenant}: {records} suspensions can be read, and the trails of {runs} runs are whole."


def _describe(tenant: str, wrong: Sequence[str], advice: str = _RESTORED) -> str:
    more = f", and {len(wrong) - 20} more" if len(wrong) > 20 else ""
    return f"{tenant}: {'; '.join(wrong[:20])}{more}. {advice}"


class _Voided(NamedTuple):
    """How many suspensions are pending, in doubt and failed now, and the ids of the unreadable ones."""

    pending: int
    doubted: int
    failed: int
    unreadable: Sequence[str]


async def _void(wiring: Wiring, at_ms: int) -> str:
    at = iso_utc(at_ms)
    why = f"This desk was restored from a backup of {at}. What happened since is not known: the call may have run."
    reason = f"The desk was restored from a backup of {at}. Check what ran since."
    freeze = Freeze(id=new_id("frz"), scope=ALL, reason=reason, by=HOLDER, at_ms=at_ms)  # deadlines move by all of it
    await wiring.part(FreezeStore).save(freeze)
    voided = await _void_starts(wiring, why)
    if voided.unreadable:
        raise NotVerified(_describe(wiring.tenant, [f"{name} cannot be read" for name in voided.unreadable]))
    await wiring.activity.record("desk_restored", "", door="restore", at=at)
    return (
        f"{wiring.tenant}: everything is frozen. {voided.pending} suspensions wait for people, the calls of "
        f"{voided.doubted} are in doubt, {voided.failed} runs failed and can be retried. Check what ran, then unfreeze."
    )


async def _void_starts(wiring: Wiring, why: str) -> _Voided:
    """Void the permits and leases of all suspensions that have not ended. Nothing may run meanwhile."""
    statuses: list[str] = []
    unreadable: list[str] = []
    for suspension_id in await wiring.schedule.everything():
        try:
            statuses.append((await wiring.desk.void_starts(suspension_id, HOLDER, why)).record.status)
        except Unreadable:
            unreadable.append(suspension_id)
    keys, redis = wiring.store.keys, wiring.store.redis
    handed = [name async for name in redis.scan_iter(match=f"{keys.handed('')}*", count=1_000)]
    await redis.delete(keys.ready, keys.waiting, *handed)
    pending, failed = statuses.count("pending"), statuses.count("failed")
    return _Voided(pending, len(statuses) - pending - failed, failed, unreadable)
