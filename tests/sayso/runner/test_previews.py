"""A tool says what a call would do: within a time and a size, and its failure is shown and stops nothing."""

import asyncio
from typing import Any

import pytest

from sayso.core.canonical_json import JsonObject
from sayso.core.records.previews import Preview
from sayso.errors import InvalidInput
from sayso.runner import previews
from sayso.runner.previews import MAX_CHARS, make_preview
from sayso.runner.schema_tools import tool_from_schema
from sayso.runner.tools import Tool, tool


def tool_with(preview: Any) -> Tool:
    @tool(preview=preview)
    def wipe(table: str) -> str:
        """Wipe a table."""
        raise AssertionError(f"{table} must not be wiped by a preview")

    return wipe


async def say(content: Any, args: JsonObject | None = None) -> Preview:
    return await make_preview(tool_with(lambda args: content), args or {"table": "orders"}, 7)


async def test_preview_has_what_its_function_returns() -> None:
    made = await make_preview(tool_with(lambda args: f"wipes {args['table']}"), {"table": "orders"}, 7)
    assert (made.content, made.error, made.cut, made.at_ms, made.args) == ("wipes orders", None, 0, 7, None)

    async def count(args: JsonObject) -> list[JsonObject]:
        return [{"table": args["table"], "rows": 3}]

    counted = await make_preview(tool_with(count), {"table": "orders"}, 7, {"table": "orders"})
    assert (counted.content, counted.args) == ([{"table": "orders", "rows": 3}], {"table": "orders"})


async def test_digest_is_that_of_the_content_alone() -> None:
    first, again, other = await say({"a": 1, "b": 2}), await say({"b": 2, "a": 1}), await say({"a": 1, "b": 3})
    assert first.digest == again.digest != other.digest


async def test_long_content_is_cut_and_its_digest_is_of_the_whole() -> None:
    text, other = await say("x" * MAX_CHARS + "y"), await say("x" * MAX_CHARS + "z")
    assert (text.content, text.cut) == ("x" * MAX_CHARS, MAX_CHARS + 1)
    assert text.digest != other.digest
    rows = await say([{"row": number, "text": "x" * 100} for number in range(1000)])
    assert isinstance(rows.content, list)
    assert (rows.cut, 100 < len(rows.content) < 1000, rows.content[0]) == (1000, True, {"row": 0, "text": "x" * 100})
    deep: Any = "end"
    for _ in range(200):
        deep = [deep]
    assert isinstance((await say(deep)).content, str)


@pytest.mark.parametrize("returned", [object(), float("nan"), "\ud800"], ids=["object", "nan", "surrogate"])
async def test_content_that_is_not_json_is_no_preview(returned: object) -> None:
    made = await say(returned)
    assert (made.content, made.error) == (None, "It returned no JSON.")


async def test_failures_have_reasons_and_one_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(args: JsonObject) -> str:
        raise LookupError("no such <table>" + "x" * 1000)

    async def hang(args: JsonObject) -> None:
        await asyncio.Event().wait()

    async def cancel(args: JsonObject) -> None:
        raise asyncio.CancelledError

    def leave(args: JsonObject) -> None:
        raise SystemExit(3)

    failed = await make_preview(tool_with(fail), {"table": "orders"}, 7)
    assert failed.error is not None
    assert failed.error.startswith("LookupError: no such <table>")
    assert len(failed.error) == 500
    monkeypatch.setattr(previews, "TIMEOUT_S", 0.01)
    others = [await make_preview(tool_with(each), {"table": "orders"}, 7) for each in (hang, cancel, leave)]
    others += [await make_preview(None, {}, 7), await make_preview(tool_with(fail), {"table": 3}, 7)]
    reasons = [other.error or "" for other in others]
    assert reasons[:3] == ["It took longer than 0.01 s.", "It was cancelled from inside.", "SystemExit: 3"]
    assert reasons[3].startswith("The worker's agent has no preview")
    assert reasons[4].startswith("The arguments do not fit: table")
    assert {other.digest for other in others} == {failed.digest}


async def test_preview_cannot_change_the_arguments_that_run() -> None:
    def change(args: JsonObject) -> str:
        args["table"] = "nothing"
        return "harmless"

    args: JsonObject = {"table": "orders"}
    await make_preview(tool_with(change), args, 7)
    assert args == {"table": "orders"}


async def test_stopped_worker_stops_the_preview() -> None:
    started = asyncio.Event()

    async def hang(args: JsonObject) -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(make_preview(tool_with(hang), {"table": "orders"}, 7))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_preview_takes_the_arguments_alone() -> None:
    with pytest.raises(InvalidInput, match=r"cannot be called as preview\(args\)"):
        tool_with(lambda: "x")
    with pytest.raises(InvalidInput, match=r"cannot be called as preview\(args\)"):
        tool_from_schema(lambda: None, {"type": "object"}, name="t", preview=lambda one, two: "x")


def test_preview_is_part_of_the_definition() -> None:
    def wipe(table: str) -> None:
        """Wipe a table."""

    plain, previewed = tool(wipe), tool(preview=lambda args: "x")(wipe)
    assert previewed.definition.previews
    assert plain.definition.model_dump_json().count("previews") == 0
    assert plain.digest != previewed.digest
