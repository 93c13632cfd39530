"""Measure what ended runs of several shapes need in memory, in the store's file and in the archive."""

import asyncio
import re
from collections.abc import Iterable
from functools import cache
from random import Random
from typing import cast

from redis import Redis

from sayso.core.records.terms import Quorum, RuleTerms
from sayso.errors import Unavailable
from sayso.features.archive.sizing import ONE_CALL, RunSize, Shape
from service.core.settings import CHECKOUT
from service.core.wiring import Wiring
from tests.builders import approve, ask, finish, make_pending
from tests.service.features.archive.runs import archive, keep

SHAPES = (ONE_CALL, Shape(calls=4, decisions=2), Shape(call_bytes=3_000))
_BESIDE = 50  # bytes of a call's arguments beside its note
_VOTERS = ("anna", "ben", "carla")
_AT_ONCE = 4
_WARM = 50  # runs before the measurement, in which the connections get their buffers


@cache
def _read_prose() -> str:
    """English to draw notes from, because an archive depends on how well its text compresses."""
    pages = " ".join(page.read_text() for page in sorted((CHECKOUT / "docs").glob("*.md")))
    return re.sub(r'["\\]|[^ -~]', "", re.sub(r"\s+", " ", pages))


async def end_shaped_run(wiring: Wiring, number: int, shape: Shape) -> None:
    """End a run whose calls people approved."""
    prose, terms, random = _read_prose(), RuleTerms(quorum=Quorum(approve=shape.decisions)), Random(number)  # noqa: S311
    drafts = []
    for index in range(shape.calls):
        begin = random.randrange(len(prose) - shape.call_bytes)
        note = prose[begin : begin + shape.call_bytes - _BESIDE]
        drafts.append(ask(index, order=f"A-{number}", note=note, terms=terms))
    record = await make_pending(wiring, *drafts)
    for index in range(shape.calls):
        for voter in _VOTERS[: shape.decisions]:
            record = await approve(wiring, record, voter, index)
    await finish(wiring, record, result={"paid": True})


async def end_shaped_runs(wiring: Wiring, numbers: Iterable[int], shape: Shape) -> None:
    """End a run for each number, some at once."""
    numbers = iter(numbers)

    async def work() -> None:
        for number in numbers:
            try:
                await end_shaped_run(wiring, number, shape)
            except Unavailable:  # a busy machine read the freezes too late; the run stays open
                await wiring.freezes.known(fresh=True)

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))


async def measure_runs(wiring: Wiring, redis: Redis, count: int, shape: Shape) -> RunSize:
    """Return the bytes of an ended run of a shape, from so many that are then archived."""
    await end_shaped_runs(wiring, range(-_WARM, 0), shape)
    memory, appended = read_memory(redis), _read_file(redis)
    await end_shaped_runs(wiring, range(count), shape)
    memory, appended = read_memory(redis) - memory, _read_file(redis) - appended
    await keep(wiring)
    entries = (await archive(wiring).list_live()).values()
    archived = sum(entry.bytes for entry in entries) / sum(entry.runs for entry in entries)
    return RunSize(memory / count, appended / count, archived)


def read_memory(redis: Redis) -> int:
    """Return the memory of all data, bytes, without buffers of connections."""
    return int(cast("dict[str, int]", redis.info("memory"))["used_memory_dataset"])


def _read_file(redis: Redis) -> int:
    return int(cast("dict[str, int]", redis.info("persistence"))["aof_current_size"])
