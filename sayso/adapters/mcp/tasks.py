"""The extension `io.modelcontextprotocol/tasks` (2026-07-28): a held call is a task that its client polls.

A task's id is the suspension's, and the desk has all that is known of it, so any proxy before the same server goes on
with it. An approved call starts when its task is polled. An answer is final only if the desk has recorded it.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import require_client_extension
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from sayso.adapters.mcp.calls import Backend, describe_error
from sayso.client.holders import is_running
from sayso.client.permits import GatedCall, describe_wait, find_report
from sayso.client.requests import find_suspension
from sayso.client.trace_context import traced_as
from sayso.core.canonical_json import JsonObject
from sayso.core.clock import now_ms
from sayso.errors import CallFailed, DeadlinePassed, Denied, InDoubt, InvalidInput, NotFound, SaysoError, Withdrawn
from sayso.wire.items import ItemView
from sayso.wire.suspensions import SuspensionView

EXTENSION = "io.modelcontextprotocol/tasks"

_FINAL = (Denied, CallFailed, InDoubt, DeadlinePassed, Withdrawn)
_RESULT_WITHIN_S = 5.0
_MAX_RUNS = 1000
_SHORTEST_POLL_MS, _LONGEST_POLL_MS = 1_000, 30_000


def is_declared(ctx: Any) -> bool:
    """Whether the client of this request takes tasks."""
    declared = ctx.session.client_capabilities
    return (
        ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        and declared is not None
        and EXTENSION in (declared.extensions or {})
    )


@dataclass
class Tasks:
    """The tasks of the calls of one MCP server."""

    backend: Backend
    _runs: dict[str, asyncio.Task[types.CallToolResult]] = field(default_factory=dict)
    """Calls that a poll has started, until a poll returned their result."""

    def add_to(self, server: Server[Any]) -> None:
        """Offer the extension to the server's clients."""
        server.extensions[EXTENSION] = {}
        for method, handler in (("get", self.get), ("update", self.update), ("cancel", self.cancel)):
            server.add_request_handler(f"tasks/{method}", types.GetTaskRequestParams, handler)

    def create(self, suspension: SuspensionView) -> JsonObject:
        """Return the task of a call that waits for a person."""
        return {**self._describe(suspension, suspension, "working"), "resultType": "task"}

    async def get(self, ctx: Any, params: types.GetTaskRequestParams) -> JsonObject:
        """Return the task. Starts its call once it is approved, and waits a moment for the result."""
        _check_declared(ctx)
        with traced_as((params.meta or {}).get("traceparent")):
            asked, now = await self._find(params.task_id)
            if now.pending and asked.id not in self._runs:
                return self._describe(asked, now, "working")
            run = self._runs.get(asked.id) or self._start(asked, now.items[0])
            await asyncio.wait({run}, timeout=_RESULT_WITHIN_S)
            if not run.done():
                return self._describe(asked, now, "working", f"{now.items[0].tool.name} runs.")
            self._runs.pop(asked.id, None)
            return await self._read_result(asked, now, run)

    async def update(self, ctx: Any, params: types.GetTaskRequestParams) -> types.EmptyResult:
        """Acknowledge input. Tasks ask their clients for none: people answer at the desk."""
        _check_declared(ctx)
        await self._find(params.task_id)
        return types.EmptyResult()

    async def cancel(self, ctx: Any, params: types.GetTaskRequestParams) -> types.EmptyResult:
        """Withdraw the call, unless it has started."""
        _check_declared(ctx)
        asked, now = await self._find(params.task_id)
        if asked.id not in self._runs and now.status in ("pending", "decided"):
            try:
                await self.backend.desk.cancel(now.run.id, "The MCP client cancelled this call.")
            except SaysoError as error:
                raise MCPError(types.INTERNAL_ERROR, error.message) from error
        return types.EmptyResult()

    async def finish(self) -> None:
        """Wait until the started calls have reported their results, or are in doubt."""
        if self._runs:
            await asyncio.wait(self._runs.values(), timeout=self.backend.options.report_within_s)

    def _start(self, asked: SuspensionView, item: ItemView) -> asyncio.Task[types.CallToolResult]:
        if len(self._runs) >= _MAX_RUNS:  # of clients that polled no longer
            self._runs = {task_id: run for task_id, run in self._runs.items() if not run.done()}
        run = self._runs[asked.id] = asyncio.create_task(self._run(asked, item))
        return run

    async def _run(self, asked: SuspensionView, item: ItemView) -> types.CallToolResult:
        requested = asked.items[0].tool
        tool = types.Tool(name=self._read_name(requested.name), input_schema={})
        if item.outcome is not None and item.outcome.may_run and find_report(item) is None:
            tool = await self.backend.find_tool(tool.name)
        call = GatedCall(
            definition=self.backend.define(tool),
            args=requested.args,
            label=asked.id,
            wait_s=0,
            report_within_s=self.backend.options.report_within_s,
        )
        permit = await self.backend.obtain(call, asked)
        return await self.backend.run(tool, requested.args, permit, requested.definition)

    async def _read_result(
        self, asked: SuspensionView, now: SuspensionView, run: asyncio.Task[types.CallToolResult]
    ) -> JsonObject:
        """Return the task after its run. What may change yet is no result: the call still waits, or runs elsewhere."""
        try:
            result = run.result()
        except _FINAL as refused:
            if isinstance(refused, InDoubt) and not await self._is_lost(asked.id):
                return self._describe(asked, now, "working", f"{asked.items[0].tool.name} runs in another process.")
            if refused.facts.get("verdict") == "cancelled" and not refused.facts.get("may_have_run"):
                return self._describe(asked, now, "cancelled", refused.message)
            result = describe_error(refused)
        except SaysoError as waits:
            return self._describe(asked, now, "working", waits.message)
        dumped = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {**self._describe(asked, now, "completed", ""), "result": dumped}

    async def _is_lost(self, task_id: str) -> bool:
        """Whether nobody reports the call any more. Its process may have reported it right before it ended."""
        _, seen = await self._find(task_id)
        permit = seen.items[0].permit
        if permit is None or (seen.end is None and is_running(permit.holder) is not False):
            return False
        _, now = await self._find(task_id)
        return permit.report is None and now.items[0].permit == permit

    async def _find(self, task_id: str) -> tuple[SuspensionView, SuspensionView]:
        """Return what was asked and what of it is now, if this server's proxy asked it with the same credential."""
        unknown = MCPError(types.INVALID_PARAMS, f"There is no task {task_id!r} of this server for this credential.")
        desk = self.backend.desk
        try:
            asked = now = await desk.exchange(find_suspension(task_id))
            self._read_name(asked.items[0].tool.name)
            origin = asked.run.claimed_context.get("mcp")
            if not isinstance(origin, dict) or origin.get("server") != self.backend.name or asked.mode != "poll":
                raise unknown
            while now.following_id is not None:
                now = await desk.exchange(find_suspension(now.following_id))
        except (NotFound, InvalidInput) as error:
            raise unknown from error
        except SaysoError as error:
            raise MCPError(types.INTERNAL_ERROR, error.message) from error
        return asked, now

    def _read_name(self, label: str) -> str:
        """Return the server's name of a tool; raises `NotFound` for a tool of another server."""
        prefix = f"{self.backend.options.name}." if self.backend.options.name else ""
        if not label.startswith(prefix):
            raise NotFound(f"{label} is no tool of {self.backend.name}.")
        return label.removeprefix(prefix)

    def _describe(
        self, asked: SuspensionView, now: SuspensionView, status: str, message: str | None = None
    ) -> JsonObject:
        if message is None:
            message = describe_wait(self.backend.desk.retry_policy, now.items[0].tool.name, now)
        expires_at = _find_expiry(now)
        age_ms = now_ms() - int(asked.created_at.timestamp() * 1000)
        return {
            "taskId": asked.id,
            "status": status,
            **({"statusMessage": message} if message else {}),
            "createdAt": asked.created_at.isoformat(),
            "lastUpdatedAt": now.updated_at.isoformat(),
            "ttlMs": None if expires_at is None else int((expires_at - asked.created_at).total_seconds() * 1000),
            "pollIntervalMs": min(_LONGEST_POLL_MS, max(_SHORTEST_POLL_MS, age_ms // 10)),
        }


def _check_declared(ctx: Any) -> None:
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found", ctx.method)
    require_client_extension(ctx, EXTENSION)


def _find_expiry(suspension: SuspensionView) -> datetime | None:
    """Return until when something may still happen: the deadline and the time to start, or to report; None if frozen.

    An approval right before the deadline still has its time to start.
    """
    item = suspension.items[0]
    if item.freeze is not None:
        return None
    if suspension.lease is not None:
        return suspension.lease.until
    if item.outcome is not None:
        return item.outcome.start_by
    return item.terms.deadline_at + timedelta(seconds=item.terms.start_by_s)
