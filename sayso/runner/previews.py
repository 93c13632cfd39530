"""Previews of calls: their tools are asked what a call would do, without effect, before people are asked about it."""

import asyncio
import inspect
import json
from collections.abc import Iterable, Mapping
from hashlib import sha256

from pydantic import JsonValue

from sayso.core.canonical_json import Around, JsonObject, canonical_json, check_json, parse_json
from sayso.core.records.items import Item, ItemKind
from sayso.core.records.previews import MAX_FAULT_CHARS, Preview
from sayso.core.transitions.permits import approved_args, shows_effect
from sayso.errors import InvalidInput, InvalidJson, TooLarge
from sayso.runner.agents import Agent
from sayso.runner.batches import Batch, BatchCall
from sayso.runner.tools import Function, Tool, describe_error, plain_json

TIMEOUT_S = 20.0
MAX_CHARS = 20_000
_AT_ONCE = 8
_RECORD = Around(depth=8, values=1_000)
"""The record around a preview counts towards the same limits."""

_NO_PREVIEW = sha256(b"no preview").hexdigest()  # one digest for all failures, which are no effect to compare


async def make_preview(tool: Tool | None, args: JsonObject, at_ms: int, edited: JsonObject | None = None) -> Preview:
    """Ask the tool what a call with these arguments would do; a failure is a preview with an error."""
    limit = asyncio.timeout(TIMEOUT_S)
    try:
        if tool is None or tool.preview is None:
            raise InvalidInput("The worker's agent has no preview of this tool.")
        if fault := tool.find_fault(args):
            raise InvalidInput(f"The arguments do not fit: {fault}")
        async with limit:
            content = await _call(tool.preview, args)
        plain = plain_json(content)
        kept, cut = _fit(plain)
        return Preview(content=kept, cut=cut, digest=_digest(plain), at_ms=at_ms, args=edited)
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise
        error = "It was cancelled from inside."
    except InvalidJson:
        error = "It returned no JSON."
    except (Exception, SystemExit) as raised:  # noqa: BLE001 - people see the error, and the call is asked about
        late = isinstance(raised, TimeoutError) and limit.expired()
        error = f"It took longer than {TIMEOUT_S:g} s." if late else describe_error(raised)
    return Preview(error=error[:MAX_FAULT_CHARS], digest=_NO_PREVIEW, at_ms=at_ms, args=edited)


async def preview_batch(agent: Agent, batch: Batch, at_ms: int) -> Batch:
    """Return the batch with previews of the calls that people are about to be asked about."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def preview(entry: BatchCall) -> BatchCall:
        draft, tool = entry.ask, agent.tools_by_name.get(entry.call.name)
        if draft is None or not entry.waits or not draft.tool.previews or draft.previews or tool is None:
            return entry
        if draft.kind is not ItemKind.APPROVAL or draft.doubt is not None:
            return entry
        async with slots:
            made = await make_preview(tool, draft.tool.args, at_ms)
        return entry.model_copy(update={"ask": draft.model_copy(update={"previews": (made,)})})

    calls = await asyncio.gather(*map(preview, batch.calls))
    return batch.model_copy(update={"calls": tuple(calls)})


async def renew_previews(agent: Agent, items: Iterable[Item], at_ms: int) -> Mapping[int, Preview]:
    """Preview approved calls again right before they start; return the previews that people decided with, by index.

    `revalidate` compares them with what was approved; another probe of the world adds to this mapping.
    """
    slots = asyncio.Semaphore(_AT_ONCE)

    async def renew(item: Item) -> Preview:
        async with slots:
            return await make_preview(agent.tools_by_name.get(item.tool.name), approved_args(item), at_ms)

    shown = [item for item in items if shows_effect(item)]
    made = await asyncio.gather(*map(renew, shown))
    return {item.index: preview for item, preview in zip(shown, made, strict=True)}


async def _call(preview: Function, args: JsonObject) -> object:
    own = parse_json(canonical_json(args))  # a copy: what it changes is not what runs
    if inspect.iscoroutinefunction(preview):
        return await preview(own)
    returned = await asyncio.to_thread(preview, own)
    return await returned if inspect.isawaitable(returned) else returned


def _digest(content: JsonValue) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _fit(content: JsonValue) -> tuple[JsonValue, int]:
    """Return the part of a content that is kept, and how many characters or rows there were if that is not all."""
    text = content if isinstance(content, str) else json.dumps(content, indent=2, ensure_ascii=False)
    kept, whole = content, 0
    if len(text) > MAX_CHARS:
        kept = _list_rows(content) if isinstance(content, list) else []
        whole = len(content) if isinstance(content, list) else 0
    try:
        if kept or not content:
            check_json(kept, around=_RECORD)
            return kept, whole
    except TooLarge:
        pass
    return text[:MAX_CHARS], len(text) if len(text) > MAX_CHARS else 0


def _list_rows(content: list[JsonValue]) -> list[JsonValue]:
    rows: list[JsonValue] = []
    room = MAX_CHARS
    for row in content:
        room -= len(json.dumps(row, ensure_ascii=False))
        if room < 0:
            break
        rows.append(row)
    return rows
