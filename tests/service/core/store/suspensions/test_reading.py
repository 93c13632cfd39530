"""Several records are read in turns: their JSON counts, not what it is packed to, and other tasks run in between."""

import asyncio

import pytest

from sayso.core.records.events import TrailHead
from service.core.store.suspensions.reading import Readings, UnreadableRecord, pack_record
from tests.builders import CLEAR
from tests.sayso.samples import ask, pending

SEVERAL = 12


def pack(text: str) -> bytes:
    one = ask()
    tool = one.tool.model_copy(update={"args": {"text": text}})
    return pack_record(pending(one.model_copy(update={"tool": tool})), TrailHead(), "c0ffee", CLEAR)


async def count_turns(raws: list[bytes | None]) -> tuple[int, int]:
    """Return how many records are read at once, and how often another task runs meanwhile."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await asyncio.sleep(0)
    found = await Readings(CLEAR).read_several(["sus_1"] * len(raws), raws)
    counting.cancel()
    return sum(not isinstance(one, UnreadableRecord) for one in found), turns - 1


@pytest.mark.parametrize("text", ["\u05d01" * 60_000, "x" * 240_000], ids=["Hebrew", "one letter"])
async def test_other_tasks_run_between_large_records_that_pack_well(text: str) -> None:
    raw = pack(text)
    assert len(raw) < 2_000, "what is packed says nothing about what it takes to read it"
    assert await count_turns([raw] * SEVERAL) == (SEVERAL, SEVERAL)


async def test_small_records_are_read_at_once() -> None:
    assert await count_turns([pack("a")] * SEVERAL) == (SEVERAL, 0)


async def test_missing_and_unreadable_records_are_passed() -> None:
    assert await count_turns([None, b"what", pack("a")]) == (1, 0)
