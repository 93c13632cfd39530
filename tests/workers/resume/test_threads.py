"""A thread inherits the context of the caller."""

import asyncio
import sys
from contextvars import ContextVar

import pytest

from workers.resume.outages import TURN_S, ContextThreads, share_turns

WORD: ContextVar[str] = ContextVar("word", default="nothing")


async def test_thread_has_the_context_of_its_submitter() -> None:
    with ContextThreads(1) as threads:
        loop = asyncio.get_running_loop()
        WORD.set("one")
        first = await loop.run_in_executor(threads, WORD.get)
        WORD.set("two")
        assert (first, await loop.run_in_executor(threads, WORD.get)) == ("one", "two")


def test_share_turns_sets_the_switch_interval() -> None:
    before = sys.getswitchinterval()
    try:
        share_turns()
        assert sys.getswitchinterval() == pytest.approx(TURN_S)
        assert before > TURN_S
    finally:
        sys.setswitchinterval(before)
