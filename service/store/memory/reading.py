"""Reads of the counters of rules, all of one judgement in one round trip."""

from collections.abc import Collection, Sequence
from typing import Any

from sayso.policy.grants.scopes import list_counters
from sayso.policy.mandates.scopes import list_mandate_counters
from sayso.policy.memory.recalling import Reading, Readings, Wanted, find_percentile
from sayso.records.memory.charges import find_slot, find_window, first_slot
from service.store.connection.connecting import as_ms, text, translated
from service.store.connection.pipeline import Pipeline, Script
from service.store.keys import TenantKeys
from service.store.lua import read_script
from service.store.memory.grants import GRANTS, MANDATES, read_current

_RECALL = Script(read_script("recall"))


async def read_counters(pipeline: Pipeline, keys: TenantKeys, wanted: Collection[Wanted]) -> Readings:
    """Return what the counters hold now, and the grants and mandates in force with their counters."""
    asked = list(dict.fromkeys(one for one in wanted if not one.grants and one.tool is None))
    scopes = list(dict.fromkeys(one.counter for one in wanted if one.grants))
    called = list(dict.fromkeys(one for one in wanted if one.tool is not None))
    grants = await read_current(pipeline, keys, GRANTS, scopes)
    mandates = await read_current(pipeline, keys, MANDATES, list(dict.fromkeys(one.counter for one in called)))
    asked += [counter for held in grants.values() for one in held if one.granters for counter in list_counters(one)]
    asked += [
        counter
        for about in called
        for one in mandates[about.counter]
        for counter in list_mandate_counters(one, about.tool)
    ]
    counters = await _read_totals(pipeline, keys, list(dict.fromkeys(asked))) if asked else {}
    found = {scope: Reading(grants=held) for scope, held in grants.items()}
    return {**counters, **found, **{scope: Reading(mandates=held) for scope, held in mandates.items()}}


async def _read_totals(pipeline: Pipeline, keys: TenantKeys, asked: Sequence[Wanted]) -> Readings:
    names, args = describe_counters(keys, asked)
    async with translated():
        return parse_counters(asked, await pipeline.run(_RECALL, names, args))


def describe_counters(keys: TenantKeys, asked: Sequence[Wanted]) -> tuple[list[str], list[int]]:
    """Return the keys and arguments of `recall.lua`."""
    return [keys.counter(one.counter) for one in asked], [word for one in asked for word in _describe(one)]


def parse_counters(asked: Sequence[Wanted], reply: Sequence[Any]) -> Readings:
    """Return what `recall.lua` has found."""
    seconds, micros, *found = reply
    now_ms = as_ms(seconds, micros)
    return {one.counter: _read(one, held, now_ms) for one, held in zip(asked, found, strict=True)}


def _describe(wanted: Wanted) -> tuple[int, int]:
    """Return the length of the counter's slots and how many before the current one count; zeros for amounts."""
    return (0, 0) if wanted.percentile is not None else find_window(wanted.per_s)[:2]


def _read(wanted: Wanted, held: Any, now_ms: int) -> Reading:
    if wanted.percentile is None:
        return Reading(total=int(text(held)))
    first = first_slot(wanted.per_s, find_slot(wanted.per_s, now_ms))
    amounts = [int(amount) for slot, _, amount in (text(one).partition("|") for one in held) if int(slot) >= first]
    return Reading(total=find_percentile(amounts, wanted.percentile), samples=len(amounts))
