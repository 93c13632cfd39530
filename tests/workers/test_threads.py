"""A thread knows what its giver of work knows."""

import asyncio
from contextvars import ContextVar

from workers.threads import KnowingThreads

WORD: ContextVar[str] = ContextVar("word", default="nothing")


async def test_a_thread_sees_the_context_it_was_given_work_in() -> None:
    with KnowingThreads(1) as threads:
        loop = asyncio.get_running_loop()
        WORD.set("one")
        first = await loop.run_in_executor(threads, WORD.get)
        WORD.set("two")
        assert (first, await loop.run_in_executor(threads, WORD.get)) == ("one", "two")
