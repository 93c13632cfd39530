"""Diagnostics: one finding for each part of a running Sayso."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from pydantic import TypeAdapter

from sayso.core.clock import HOUR_MS, now_ms
from sayso.core.sentences.deadlines import describe_clock
from sayso.core.sentences.deliveries import end_sentence
from sayso.errors import SaysoError, Unavailable
from service.core.jobs import count_workers
from service.core.operations.known_names import find_warnings
from service.core.operations.queue_store import QueueStore
from service.core.outgoing.connections import host_and_port
from service.core.outgoing.http import OpenCircuit
from service.core.store.channels import ChannelNotes
from service.core.store.connection.adoption import survey
from service.core.store.connection.connecting import UNCHECKED, check_durability
from service.core.store.connection.macs import Macs
from service.core.store.deliveries import Deliveries
from service.core.store.suspensions.buckets import Buckets
from service.core.store.suspensions.schedule import describe_bound, describe_queue, is_behind
from service.core.wiring import Wiring
from service.features.archive.keeping import describe_archive
from service.features.operate.cards import CardCounts, count_cards
from service.features.operate.limits import NEAR, find_limits
from service.features.rulebook.versions import describe_held_back
from service.features.webhooks.endpoints import DISABLED_BY
from service.features.webhooks.store import Endpoints

KEPT_MS = 20_000
_NAME = "circuits"
_CIRCUITS = TypeAdapter(list[OpenCircuit])


async def save_circuits(notes: ChannelNotes, channel: str, circuits: Sequence[OpenCircuit]) -> None:
    """Save the open circuits of a channel, in place of earlier ones."""
    await notes.save(channel, _NAME, _CIRCUITS.dump_json([*circuits[:20]]).decode(), KEPT_MS)


async def read_circuits(notes: ChannelNotes, channel: str) -> list[OpenCircuit]:
    """Return the open circuits of a channel as its process published them last."""
    note = await notes.read(channel, _NAME)
    return _CIRCUITS.validate_json(note) if note else []


CLOCK_DRIFT_MS = 2_000
QUEUED_MS = 60_000  # idle workers take a ready run at once
OVERDUE_MS = 5_000  # a running clock ticks ten times a second, so nothing stays due for this long
LATE_CHECKPOINT_MS = 2 * HOUR_MS  # one is made each hour
_NAMED, _MOST_MACS = 5, 50_000


class Finding(NamedTuple):
    """The state of one part, whether it works, and what to do."""

    part: str
    ok: bool
    message: str
    todo: str = ""


async def diagnose(
    wiring: Wiring, channels: Mapping[str, str] = MappingProxyType({}), *, fresh: bool = True
) -> AsyncIterator[Finding]:
    """Yield a finding for each part; `channels` has their kinds. Only with `fresh`, the whole archive is read again."""
    yield await _check_durability(wiring)
    yield _check_secrets(wiring)
    try:
        yield await _check_time(wiring)
        yield await _check_clock(wiring)
        yield await _check_workers(wiring)
        yield await _check_queue(wiring)
        yield await _check_freezes(wiring)
        yield await _check_homes(wiring)
        yield await _check_limits(wiring)
        yield await _check_records(wiring)
        if wiring.settings.key_file is not None:
            yield await _check_macs(wiring)
        yield await _check_buckets(wiring)
        yield await _check_trails(wiring)
        yield await _check_keys(wiring)
        yield await _check_activity(wiring)
        if wiring.settings.checkpoints:
            yield await _check_checkpoints(wiring)
        yield Finding("archive", *await describe_archive(wiring.store, fresh=fresh))
        yield await _check_holders(wiring)
        if (held := wiring.rules.held_back) is not None:
            yield Finding("rules held back", False, *describe_held_back(held))
        async for finding in _check_cards(wiring, channels):
            yield finding
        async for finding in _check_circuits(wiring, channels):
            yield finding
        yield await _check_endpoints(wiring)
    except SaysoError as error:
        yield Finding("store", False, f"The store does not answer: {error.message}", "Start it, or correct its URL.")
    yield _check_rules(wiring)
    async for finding in _check_warnings(wiring):
        yield finding
    yield _check_channels(wiring)


async def _check_durability(wiring: Wiring) -> Finding:
    try:
        settings = wiring.settings
        weakness = await check_durability(settings.store_url, allow_weak=True, replicas=settings.replicas, wait_s=0)
    except Unavailable as error:
        return Finding("durability", False, error.message, "Start the store, or correct its URL.")
    if weakness is None:
        return Finding("durability", True, "The store keeps confirmed writes.")
    if weakness == UNCHECKED and wiring.settings.states_durability:
        text = "The operator states that the store keeps confirmed writes (SAYSO_STORE_DURABILITY=stated)"
        return Finding("durability", True, f"{text}; {weakness}.")
    text = f"The store may lose confirmed writes: {weakness}."
    return Finding("durability", False, text, "Set it up as docs/operations.md says.")


def _check_secrets(wiring: Wiring) -> Finding:
    key_id = wiring.store.sealer.key_id
    if key_id is not None:
        return Finding("secrets", True, f"Secrets are encrypted in the store with the key {key_id}.")
    return Finding("secrets", True, "Secrets lie in the store in clear. SAYSO_KEY_FILE encrypts them.")


async def _check_time(wiring: Wiring) -> Finding:
    drift_ms = now_ms() - await wiring.schedule.now_ms()
    text = f"The service and the store are {abs(drift_ms)} ms apart."
    todo = "Synchronize both machines with one time server. Deadlines use the store's clock."
    return Finding("time", abs(drift_ms) <= CLOCK_DRIFT_MS, text, todo if abs(drift_ms) > CLOCK_DRIFT_MS else "")


async def _check_clock(wiring: Wiring) -> Finding:
    due = await wiring.schedule.due(await wiring.schedule.now_ms() - OVERDUE_MS, limit=1)
    if not due:
        return Finding("clock", True, "Nothing is overdue.")
    return Finding("clock", False, "Deadlines are overdue: no clock runs.", "Start `python -m workers.clock`.")


async def _check_workers(wiring: Wiring) -> Finding:
    if fault := await wiring.feature(QueueStore).find_fault():
        return Finding("workers", False, f"They get no jobs. {fault}", "Approved calls start once the queue is back.")
    number = await asyncio.to_thread(count_workers, wiring.settings.jobs_url, wiring.tenant)
    if number:
        return Finding("workers", True, f"{number} running.")
    return Finding("workers", False, "No worker runs, so approved calls do not start.", "Start `python -m workers`.")


async def _check_queue(wiring: Wiring) -> Finding:
    queue, limits = await wiring.schedule.read_queue(), wiring.settings
    if not queue.runs:
        return Finding("queue", True, "No run waits for a worker.")
    text, todo = describe_queue(queue), "Start more workers: `python -m workers`, or raise SAYSO_WORKERS."
    if is_behind(queue, limits):
        text += f" New requests are refused until workers keep up. {describe_bound(limits)}"
        return Finding("queue", False, text, todo)
    return Finding("queue", queue.oldest_ms < QUEUED_MS, text, todo if queue.oldest_ms >= QUEUED_MS else "")


async def _check_freezes(wiring: Wiring) -> Finding:
    freezes = await wiring.freezes.in_force(fresh=True)
    if not freezes:
        return Finding("freezes", True, "No freeze is in force.")
    named = "; ".join(
        f"{freeze.scope} by {freeze.by} since {describe_clock(freeze.at_ms)}"
        + (f" ({freeze.reason})" if freeze.reason else "")
        for freeze in freezes[:_NAMED]
    )
    more = f"; and {len(freezes) - _NAMED} more" if len(freezes) > _NAMED else ""
    text = f"{len(freezes)} in force, so nothing in their scope starts: {named}{more}."
    todo = "Unfreeze on /operate, or with `sayso unfreeze`, once the cause is gone."
    if any(freeze.lost is not None for freeze in freezes):
        todo += " After the store went back, first find out which calls ran, and say what was checked."
    return Finding("freezes", False, text, todo)


async def _check_homes(wiring: Wiring) -> Finding:
    number = await wiring.store.counts.count_forgetful()
    if not number:
        return Finding("homes", True, "Every process remembers its commits on disk.")
    text = (
        f"Processes that cannot write their home: {number}. Once all have restarted, none knows that a store went back."
    )
    return Finding("homes", False, text, "Set SAYSO_HOME to a folder that they can write; their logs name this one.")


async def _check_checkpoints(wiring: Wiring) -> Finding:
    await wiring.freezes.known(fresh=True)
    at_ms = wiring.freezes.delivered_ms()
    text = f"All sinks have those up to {describe_clock(at_ms)}." if at_ms else "No sink has all of them yet."
    if await wiring.schedule.now_ms() - at_ms <= LATE_CHECKPOINT_MS:
        return Finding("checkpoints", True, text)
    todo = "Start a clock with SAYSO_CHECKPOINTS and correct the sinks that its log names."
    return Finding("checkpoints", False, text, todo)


async def _check_limits(wiring: Wiring) -> Finding:
    limits, opened = wiring.settings, await wiring.intake.count_open()
    text = f"{opened.all} of {limits.pending_limit} items are open"
    text += f"; {opened.owner} has most, {opened.most} of {limits.pending_per_key}." if opened.most else "."
    text += f" A key may send {limits.asks_per_minute_per_key} requests a minute."
    nearest = max(await find_limits(wiring, await wiring.schedule.read_queue()), key=lambda limit: limit.share)
    if nearest.share < NEAR:
        return Finding("limits", True, text)
    if nearest.share < 1:
        text += f" {nearest.setting} ({nearest.most}) is {nearest.share:.0%} used."
        return Finding("limits", False, text, f"Raise {nearest.setting} before requests are refused with 429.")
    todo = f"Decide or cancel open items, or raise {nearest.setting}. New ones are refused with 429."
    return Finding("limits", False, text, todo)


async def _check_records(wiring: Wiring) -> Finding:
    count, unreadable = await wiring.inspections.look_through()
    if not unreadable:
        return Finding("records", True, f"All {count} checked records can be read.")
    named = "; ".join(f"{record.suspension_id}: {record.reason}" for record in unreadable[:_NAMED])
    more = f" And {len(unreadable) - _NAMED} more." if len(unreadable) > _NAMED else ""
    text = f"{len(unreadable)} of {count} cannot be read, so nothing about them is decided or started. {named}{more}"
    todo = "Run the version of Sayso that wrote them, or restore them from a backup, as docs/operations.md says."
    return Finding("records", False, text, todo)


async def _check_buckets(wiring: Wiring) -> Finding:
    comparison = await wiring.part(Buckets).find_comparison()
    if comparison is None:
        return Finding("inbox", True, "Workers compare filters and counts with the records once an hour.")
    if not comparison.wrong:
        return Finding("inbox", True, f"Filters and counts had every open item at {describe_clock(comparison.at_ms)}.")
    missed = f"{comparison.wrong} open {'item' if comparison.wrong == 1 else 'items'}"
    text = f"Filters and counts missed {missed} until {describe_clock(comparison.at_ms)}."
    return Finding("inbox", False, text, "Stop processes of earlier versions. They are compared again within the hour.")


async def _check_trails(wiring: Wiring) -> Finding:
    count, faults = await wiring.inspections.look_through_trails()
    if not faults:
        text = f"The newest {count} are whole: events fit the ones before, and calls started after decisions."
        return Finding("trails", True, text)
    named = " ".join(f"{run_id}: {fault}" for run_id, fault in list(faults.items())[:_NAMED])
    more = f" And {len(faults) - _NAMED} more." if len(faults) > _NAMED else ""
    text = f"{len(faults)} of {count} are damaged. {named}{more}"
    return Finding("trails", False, text, "Find out who can write to the store, and compare with a backup of it.")


async def _check_keys(wiring: Wiring) -> Finding:
    keys, at_ms = await wiring.api_keys.scan(), now_ms()
    forged = [stored.key for stored in keys if not stored.listed and stored.key.holds(at_ms)]
    if not forged:
        return Finding("keys", True, f"All {len(keys)} keys were made by Sayso.")
    named = "; ".join(f"{key.id} of the {key.kind} {key.name}" for key in forged[:_NAMED])
    text = f"{len(forged)} of {len(keys)} keys were written into the store beside Sayso: {named}."
    return Finding("keys", False, text, "Revoke them on /keys, and find out who can write to the store.")


async def _check_activity(wiring: Wiring) -> Finding:
    broken = await wiring.activity.check()
    if broken is None:
        return Finding("activity", True, "Each entry of the activity log fits the one before it.")
    text = f"Entry {broken} of the activity log was changed, or entries before it are missing."
    return Finding("activity", False, text, "Find out who can write to the store, and compare with a backup of it.")


async def _check_macs(wiring: Wiring) -> Finding:
    macs = await survey(wiring.settings.store_url, Macs(wiring.settings.key_file), most=_MOST_MACS)
    text = f"{macs.current + macs.earlier} stored values have their MACs, {macs.earlier} of them of an earlier key."
    if macs.cut:
        text = f"{text} More were not read."
    if not macs.refused:
        return Finding("macs", True, text)
    text = f"{text} {macs.refused} are refused: {', '.join(macs.named[:_NAMED])}."
    return Finding("macs", False, text, "Find out who can write to the store, and restore these from a backup of it.")


async def _check_holders(wiring: Wiring) -> Finding:
    version, holders = await wiring.rules.list_holders()
    others = [holder for holder in holders if holder.version != version]
    if not others:
        return Finding("rules held", True, f"{len(holders)} services and workers hold version {version or 'none'}.")
    named = "; ".join(f"{holder.process} holds {holder.version} of {holder.file}" for holder in others[:_NAMED])
    text = f"{len(others)} of {len(holders)} hold other rules than version {version}, which is in force: {named}."
    return Finding("rules held", False, text, "Give every service and worker the same file of rules.")


def _check_rules(wiring: Wiring) -> Finding:
    wiring.rulebook.refresh()
    error = wiring.rulebook.error
    if error is None:
        return Finding("rules", True, f"The file can be read: version {wiring.rulebook.policy.version}.")
    text = f"The file is invalid; the last valid rules stay in force: {error.message}"
    return Finding("rules", False, text, "Correct the file.")


async def _check_warnings(wiring: Wiring) -> AsyncIterator[Finding]:
    try:
        for text in await find_warnings(wiring):
            yield Finding("rules", False, text, "Correct the rule. `sayso policy check` checks a file.")
    except SaysoError as error:
        yield Finding("rules", False, f"They could not be checked: {error.message}", "Start the store.")


def _check_channels(wiring: Wiring) -> Finding:
    hook = "open" if wiring.settings.webhook_secret else "closed (SAYSO_WEBHOOK_SECRET is not set)"
    return Finding("channels", True, f"Pages at {wiring.settings.public_url}; the webhook for decisions is {hook}.")


async def _check_cards(wiring: Wiring, channels: Mapping[str, str]) -> AsyncIterator[Finding]:
    """Yield a finding for each channel that is configured, or that waiting items name."""
    counts, at_ms = await count_cards(wiring), await wiring.schedule.now_ms()
    for name in sorted({*channels, *counts}):
        yield _check_card_counts(name, channels.get(name), counts.get(name, CardCounts()), at_ms)


async def _check_circuits(wiring: Wiring, channels: Mapping[str, str]) -> AsyncIterator[Finding]:
    for name in sorted(channels):
        for circuit in await read_circuits(wiring.part(ChannelNotes), name):
            reason = end_sentence(circuit.reason or "No reason is known")
            since = describe_clock(circuit.since_ms)
            text = f"{name}: {circuit.destination} keeps failing, so it is only probed since {since}."
            todo = f"Correct the channel, or wait for the provider. `sayso channels test {name}` sends a test card."
            yield Finding("channels", False, f"{text} {reason}", todo)


async def _check_endpoints(wiring: Wiring) -> Finding:
    endpoints = await wiring.part(Endpoints).list_all()
    disabled = [endpoint for endpoint in endpoints if endpoint.state == "disabled"]
    gone = [endpoint for endpoint in disabled if not endpoint.reason.startswith(DISABLED_BY)]
    known = {endpoint.id for endpoint in endpoints}
    failures = await wiring.part(Deliveries).list_failures(await wiring.schedule.now_ms())
    failed = [failure for failure in failures if failure.endpoint_id in known]
    given_up = [failure for failure in failed if failure.ended is not None]
    active = sum(endpoint.state == "active" for endpoint in endpoints)
    text = f"{active} of {len(endpoints)} endpoints are active; {len(failed) - len(given_up)} failed messages are tried"
    text += f" again, {len(given_up)} were given up."
    text += "".join(f" {host_and_port(endpoint.url)}: {endpoint.reason}" for endpoint in gone[:_NAMED])
    if failed and not gone:
        text += f" The last failure: {end_sentence(failed[0].reason)}"
    if gone:
        return Finding("webhooks", False, text, "Correct the receiver and verify the endpoint again, or delete it.")
    if given_up:
        return Finding("webhooks", False, text, "Correct the receiver, and send the messages again on /webhooks.")
    return Finding("webhooks", True, text)


def _check_card_counts(name: str, kind: str | None, counts: CardCounts, at_ms: int) -> Finding:
    text = f"{name} ({kind or 'not configured'}): {counts.describe(at_ms)}"
    if kind is None:
        return Finding("channels", False, text, f"Add {name} to the file of SAYSO_CHANNELS, or correct the rules.")
    if counts.failed:
        todo = f"Read the reasons on the items' pages. `sayso channels test {name} --to PERSON` sends a test card."
        return Finding("channels", False, text, todo)
    if counts.is_slow(at_ms):
        return Finding("channels", False, text, "Start `python -m workers.clock`, which delivers cards.")
    return Finding("channels", True, text)
