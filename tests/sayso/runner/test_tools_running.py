"""A tool runs in its own thread or loop, within its timeout, and reports one result."""

import asyncio
import threading
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from sayso.core.records.tools import ToolCall, ToolResult
from sayso.errors import InvalidInput, InvalidJson
from sayso.runner.tools import CallContext, call_tool, tool
from tests.sayso.runner.test_tools import CONTEXT, Address, Colour, run


async def test_plain_function_runs_in_a_thread() -> None:
    @tool
    def plain() -> bool:
        return threading.current_thread() is threading.main_thread()

    @tool
    async def awaited() -> bool:
        return threading.current_thread() is threading.main_thread()

    @tool
    def wrapped() -> Any:
        return awaited.function()

    assert [(await run(one)).output for one in (plain, awaited, wrapped)] == [False, True, True]


async def test_context_identifies_the_call() -> None:
    @tool
    def who(call: CallContext) -> list[Any]:
        return [call.run_id, call.call_id, call.idempotency_key, call.attempt]

    assert (await run(who)).output == ["run_1", "c0", "run_1:1.0", 1]


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("returned", "output"),
    [
        (None, None),
        (Address(street="a"), {"street": "a", "city": "Bonn"}),
        ([Address(street="a")], [{"street": "a", "city": "Bonn"}]),
        (Point(1), {"x": 1}),
        (date(2026, 1, 2), "2026-01-02"),
        ((1, "é"), [1, "é"]),
        ({1: Colour.RED}, {"1": "red"}),
    ],
)
async def test_result_becomes_plain_json(returned: Any, output: Any) -> None:
    @tool
    def give() -> Any:
        return returned

    result = await run(give)
    assert (result.success, result.output) == (True, output)


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (object(), "Unable to serialize unknown type"),
        (float("nan"), "not a finite number"),
        ({"n": 10**4000}, "more than 4000 digits"),
        ("\ud800", "surrogate"),
        (b"\xff", "invalid utf-8"),
    ],
)
async def test_result_that_is_not_json_is_a_failure(returned: Any, words: str) -> None:
    @tool
    def give() -> Any:
        return returned

    result = await run(give)
    assert not result.success
    assert str(result.error).startswith("The tool ran, but what it returned is not JSON: ")
    assert words in str(result.error)
    with pytest.raises(InvalidJson):
        await give.run({}, CONTEXT)


class Rude(Exception):
    """Somebody's own error."""


@pytest.mark.parametrize(
    ("raised", "error"),
    [
        (ValueError("no such order"), "ValueError: no such order"),
        (Rude("x" * 5000), "Rude: " + "x" * 1994),
        (SystemExit(2), "SystemExit: 2"),
        (TimeoutError("upstream"), "TimeoutError: upstream"),
        (asyncio.CancelledError(), "The tool was cancelled from inside."),
        (InvalidInput("Send less."), "Send less."),
        (OSError("half a \ud800"), "OSError: half a \ufffd"),
    ],
)
async def test_tool_error_is_a_failed_result(raised: BaseException, error: str) -> None:
    @tool
    async def fail() -> None:
        raise raised

    result = await run(fail)
    assert (result.success, result.output, result.error) == (False, None, error)
    assert result.latency_ms is not None
    result.model_dump_json()


async def test_tool_beyond_its_timeout_fails() -> None:
    @tool(timeout_s=0.01)
    async def hang() -> None:
        await asyncio.Event().wait()

    result = await run(hang)
    assert result.error == "hang took longer than 0.01 s; it may still have had its effect."


async def test_cancelled_run_cancels_its_tools() -> None:
    began = asyncio.Event()

    @tool
    async def hang() -> None:
        began.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(run(hang))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# Reporting a result


async def test_ending_is_called_once_in_the_tools_thread() -> None:
    reported: list[tuple[ToolResult, int]] = []

    @tool
    def work(fail: bool) -> int:
        """Say which thread this is, or fail."""
        if fail:
            raise ValueError("no")
        return threading.get_ident()

    def ending(result: ToolResult) -> None:
        reported.append((result, threading.get_ident()))

    ended = [
        await call_tool(work, ToolCall(call_id="c0", index=0, name="work", args={"fail": fail}), CONTEXT, ending=ending)
        for fail in (False, True)
    ]
    assert [result for result, _ in reported] == ended
    assert reported[0][1] == ended[0].output != threading.get_ident()
    assert [result.success for result in ended] == [True, False]


async def test_ending_is_called_again_after_the_timeout() -> None:
    reported: list[bool] = []
    may_return, returned = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    @tool(timeout_s=0.01)
    def slow() -> str:
        """Return when it may."""
        may_return.wait(20)
        return "late"

    def ending(result: ToolResult) -> None:
        reported.append(result.success)
        if result.success:
            loop.call_soon_threadsafe(returned.set)

    result = await call_tool(slow, ToolCall(call_id="c0", index=0, name="slow", args={}), CONTEXT, ending=ending)
    assert not result.success
    may_return.set()
    await asyncio.wait_for(returned.wait(), 20)
    assert reported == [False, True]
