"""The counters of rules: what a commit writes to them, and reads of a judgement in one round trip, or in two."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from sayso.core.policy.counters.charging import Counted, find_counted, list_limits
from sayso.core.policy.counters.readings import (
    Reading,
    Readings,
    Wanted,
    is_counter,
    list_counters,
    list_mandate_counters,
)
from sayso.core.policy.counters.recalling import find_percentile
from sayso.core.policy.rule_keys import MOST_SAMPLES
from sayso.core.records.decisions import Actor, EarlierDenial
from sayso.core.records.judgements import MAX_TOTAL, Charge, find_slot, find_window, first_slot
from service.core.store.connection.commits import Commit, Update
from service.core.store.connection.connecting import as_ms, text
from service.core.store.connection.pipeline import Pipeline, Script
from service.core.store.keys import TenantKeys
from service.core.store.lua import read_script
from service.core.store.permissions import GRANTS, MANDATES, Kept, find_entitled, note_grants, read_current
from service.core.store.suspensions.reading import try_read


def write_counters(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Count what a change adds to counters and takes back, and save the grants that it makes and uses."""
    counted = find_counted(update.before, update.change)
    count_charges(commit, keys, counted, update.at_ms)
    note_grants(commit, keys, counted, update.change, update.at_ms)


def count_charges(commit: Commit, keys: TenantKeys, counted: Counted, now_ms: int) -> None:
    """Add the guards and writes of the charges; without charges there are none."""
    for counter, (charge, room) in list_limits(counted.added).items():
        window = find_window(charge.per_s)
        slots = (window.back, charge.slot, window.slot_ms)
        commit.expect_total(keys.counter(counter), MAX_TOTAL if room is None else room, slots)
    for charge in counted.added:
        key, window = keys.counter(charge.counter), find_window(charge.per_s)
        if charge.sample:
            commit.write("RPUSH", key, _write_sample(charge))
            commit.write("LTRIM", key, -MOST_SAMPLES, -1)
            commit.write("PEXPIRE", key, window.kept_ms)
        else:
            commit.write("COUNT", key, charge.slot, charge.amount, charge.slot - window.back, window.kept_ms)
    for charge in counted.removed:
        key = keys.counter(charge.counter)
        if charge.sample:
            commit.write("LREM", key, -1, _write_sample(charge))
        elif charge.slot >= first_slot(charge.per_s, find_slot(charge.per_s, now_ms)):
            commit.write_if(key, "HINCRBY", key, charge.slot, -charge.amount)


def _write_sample(charge: Charge) -> str:
    return f"{charge.slot}|{charge.amount}"


_RECALL = Script(read_script("recall"))


async def read_counters(pipeline: Pipeline, keys: TenantKeys, wanted: Collection[Wanted]) -> Readings:
    """Return what the counters hold now, and the grants and mandates in force, of people who may still decide."""
    asked = [need for need in wanted if is_counter(need)]
    scopes = list(dict.fromkeys(need.counter for need in wanted if need.grants))
    called = list(dict.fromkeys(need for need in wanted if need.tool is not None))
    denied = list(dict.fromkeys(need.counter for need in wanted if need.denials))
    if denied:
        others = [need for need in wanted if not need.denials]
        rest, denials = await asyncio.gather(
            read_counters(pipeline, keys, others), read_denials(pipeline, keys, denied)
        )
        return {**rest, **{name: Reading(denials=held) for name, held in denials.items()}}
    if not (scopes or called):
        return await _read_totals(pipeline, keys, asked)
    conversations = list(dict.fromkeys(need.counter for need in called))
    counters, grants, mandates = await asyncio.gather(
        _read_totals(pipeline, keys, asked),
        read_current(pipeline, keys, GRANTS, scopes),
        read_current(pipeline, keys, MANDATES, conversations),
    )
    own = [counter for held in grants.values() for grant in held if grant.granters for counter in list_counters(grant)]
    own += [
        counter
        for about in called
        for mandate in mandates[about.counter]
        for counter in list_mandate_counters(mandate, about.tool)
    ]
    granters = [by for held in (*grants.values(), *mandates.values()) for grant in held for by in grant.granters]
    entitled: set[Actor] = set()
    if own or granters:
        more, entitled = await asyncio.gather(
            _read_totals(pipeline, keys, own), find_entitled(pipeline, keys, granters)
        )
        counters = {**counters, **more}
    granted = {scope: Reading(grants=_keep(held, entitled)) for scope, held in grants.items()}
    return {**counters, **granted, **{name: Reading(mandates=_keep(held, entitled)) for name, held in mandates.items()}}


def _keep(held: Sequence[Kept], entitled: set[Actor]) -> tuple[Kept, ...]:
    return tuple(grant for grant in held if entitled.issuperset(grant.granters))


async def read_denials(
    pipeline: Pipeline, keys: TenantKeys, names: Sequence[str]
) -> dict[str, tuple[EarlierDenial, ...]]:
    """Return the denials of calls by their names; one that cannot be read is left out."""
    replies = await asyncio.gather(*(pipeline.ask("LRANGE", keys.denials(name), "0", "-1") for name in names))
    return {name: tuple(parse_denials(held)) for name, held in zip(names, replies, strict=True)}


def parse_denials(held: Iterable[Any]) -> Iterator[EarlierDenial]:
    """Return the denials that can be read."""
    return (denial for denial in (try_read(EarlierDenial, raw) for raw in held) if denial is not None)


async def _read_totals(pipeline: Pipeline, keys: TenantKeys, asked: Sequence[Wanted]) -> Readings:
    if not asked:
        return {}
    asked = list(dict.fromkeys(asked))
    names, args = describe_counters(keys, asked)
    return parse_counters(asked, await pipeline.run(_RECALL, names, args))


def describe_counters(keys: TenantKeys, asked: Sequence[Wanted]) -> tuple[list[str], list[int]]:
    """Return the keys and arguments of `recall.lua`: of each counter the length of a slot, and how many slots count."""
    slots = ((0, 0) if need.percentile is not None else find_window(need.per_s)[:2] for need in asked)
    return [keys.counter(need.counter) for need in asked], [word for slot in slots for word in slot]


def parse_counters(asked: Sequence[Wanted], reply: Sequence[Any]) -> Readings:
    """Return what `recall.lua` has found."""
    seconds, micros, *replies = reply
    now_ms = as_ms(seconds, micros)
    return {need.counter: _read(need, held, now_ms) for need, held in zip(asked, replies, strict=True)}


def _read(wanted: Wanted, held: Any, now_ms: int) -> Reading:
    if wanted.percentile is None:
        return Reading(total=int(text(held)))
    first = first_slot(wanted.per_s, find_slot(wanted.per_s, now_ms))
    amounts = [int(amount) for slot, _, amount in (text(entry).partition("|") for entry in held) if int(slot) >= first]
    return Reading(total=find_percentile(amounts, wanted.percentile), samples=len(amounts))
