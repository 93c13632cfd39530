"""A thread knows what its giver of work knows."""

import asyncio
import sys
from contextvars import ContextVar

import pytest

from workers.resume.threads import TURN_S, ContextThreads, share_turns

WORD: ContextVar[str] = ContextVar("word", default="nothing")


async def test_a_thread_sees_the_context_it_was_given_work_in() -> None:
    with ContextThreads(1) as threads:
        loop = asyncio.get_running_loop()
        WORD.set("one")
        first = await loop.run_in_executor(threads, WORD.get)
        WORD.set("two")
        assert (first, await loop.run_in_executor(threads, WORD.get)) == ("one", "two")


def test_threads_take_turns_sooner_than_python_lets_them() -> None:
    before = sys.getswitchinterval()
    try:
        share_turns()
        assert sys.getswitchinterval() == pytest.approx(TURN_S)
        assert before > TURN_S
    finally:
        sys.setswitchinterval(before)
