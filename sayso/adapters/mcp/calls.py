"""Calls of an MCP server's tools: how the desk knows them, and how an approved one runs once."""

from collections.abc import Callable
from dataclasses import dataclass

import anyio
import mcp_types as types
from mcp.client import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError
from pydantic_core import to_json

from sayso.adapters.base import TOOL_ERROR
from sayso.client import AsyncClient
from sayso.client.holders import run_as
from sayso.client.permits import Call, EarlierResult, GatedCall, RedeemedPermit, obtain_permit, replay, report
from sayso.core.canonical_json import JsonObject
from sayso.core.records.tools import ToolDefinition, check_tool_name
from sayso.errors import CallFailed, DeadlinePassed, Denied, InDoubt, InvalidInput, NotFound, SaysoError, Unavailable
from sayso.wire.suspensions import SuspensionView

KEY = "sayso/idempotency-key"
"""The key of the idempotency key in `_meta` of a forwarded call."""

CLEANUP_S = 10.0

_PAGES = 100
_UNKNOWN_OUTCOMES = frozenset(
    {types.CONNECTION_CLOSED, types.REQUEST_TIMEOUT, types.INTERNAL_ERROR, types.PARSE_ERROR, types.INVALID_REQUEST}
)
"""Errors after which the server may or may not have run the call."""


@dataclass(frozen=True)
class ProxyOptions:
    """How calls are held.

    `name` prefixes each tool's name at the desk. A request waits `wait_s` for a reviewer. With `trust_hints`, the
    server's hints decide which calls are idempotent. `on_behalf_of` returns the signed token of calls that bring none
    in their `_meta`.
    """

    name: str = ""
    wait_s: float | None = None
    trust_hints: bool = False
    report_within_s: int = 3600
    on_behalf_of: Callable[[], str] | None = None


@dataclass(frozen=True)
class Backend:
    """An MCP server whose tools need permits of the desk."""

    client: Client
    desk: AsyncClient
    options: ProxyOptions

    @property
    def name(self) -> str:
        """The server's name at the desk."""
        info = self.client.server_info
        return self.options.name or (info.name if info else "")

    async def find_tool(self, name: str) -> types.Tool:
        """Return the tool as the server defines it now. An earlier list may be outdated."""
        cursor: str | None = None
        try:
            for _ in range(_PAGES):
                page = await self.client.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
                if (match := next((tool for tool in page.tools if tool.name == name), None)) is not None:
                    return match
                if (cursor := page.next_cursor) is None:
                    break
        except MCPError as error:
            raise Unavailable(
                f"The MCP server is unreachable ({error.message}). {name} did not run. Try again later."
            ) from error
        raise NotFound(f"The MCP server has no tool {name!r}. Use one that it lists.")

    def define(self, tool: types.Tool) -> ToolDefinition:
        """Return a tool's definition, as reviewers see it."""
        label = check_tool_name(f"{self.options.name}.{tool.name}" if self.options.name else tool.name)
        hints = tool.annotations or types.ToolAnnotations()
        try:
            return ToolDefinition(
                name=label,
                description=tool.description or "",
                parameters=tool.input_schema,
                idempotent=self.options.trust_hints and bool(hints.idempotent_hint or hints.read_only_hint),
            )
        except ValidationError as error:
            raise InvalidInput(f"{label} has an invalid definition: {error.errors()[0]['msg']}.") from error

    async def obtain(self, call: GatedCall, asked: SuspensionView | None = None) -> RedeemedPermit | EarlierResult:
        """Submit the call unless `asked` has it, and redeem its permit or return its earlier result."""
        try:
            return await self.desk.run(obtain_permit(self.desk.retry_policy, call, asked))
        except InDoubt as doubt:
            problem = "started earlier and has not reported a result. It may have run. Check its effect first."
            raise InDoubt(f"{call.definition.name} {problem}") from doubt
        except DeadlinePassed as late:
            problem = "was approved, but nobody asked for its result in time. It did not run. Make a new call."
            raise DeadlinePassed(f"{call.definition.name} {problem}") from late

    async def run(
        self,
        tool: types.Tool,
        args: JsonObject,
        permit: RedeemedPermit | EarlierResult,
        reviewed: str,
        progress: ProgressFnT | None = None,
    ) -> types.CallToolResult:
        """Make the call once, or replay its result. `args` were requested for the definition with digest `reviewed`.

        A call with an unknown outcome is not reported: the desk marks it in doubt.
        """
        if isinstance(permit, EarlierResult):
            return _read_earlier(tool.name, permit)
        with run_as(permit.holder):
            call = Call(permit)
            try:
                now = await self.find_tool(tool.name)
                if now != tool or self.define(now).digest != reviewed:
                    raise CallFailed(f"The server changed {tool.name} after its review. It did not run. Call it again.")
                result = await self._send(tool.name, permit, progress)
            except (CallFailed, NotFound, Unavailable) as failed:
                await self._report(call, failed)
                raise CallFailed(failed.message) from failed
            call.result = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            texts = " ".join(block.text for block in result.content if isinstance(block, types.TextContent))
            await self._report(call, CallFailed(texts[:2000] or TOOL_ERROR) if result.is_error else None)
        if permit.args == args:
            return result
        note = f"A reviewer changed the arguments. It ran with {to_json(permit.args).decode()}. Result:"
        return result.model_copy(update={"content": [types.TextContent(type="text", text=note), *result.content]})

    async def _send(self, name: str, permit: RedeemedPermit, progress: ProgressFnT | None) -> types.CallToolResult:
        params = types.CallToolRequestParams(name=name, arguments=permit.args, _meta={KEY: permit.idempotency_key})
        request = types.CallToolRequest(params=params)
        try:
            result: types.CallToolResult = await self.client.session.send_request(
                request, types.CallToolResult, progress_callback=progress
            )
        except MCPError as error:
            if error.code in _UNKNOWN_OUTCOMES:
                raise InDoubt(
                    f"The MCP server returned no result of {name} ({error.message}). It may have run. "
                    "Check its effect before you retry."
                ) from error
            raise CallFailed(f"{name} failed: {error.message}") from error
        except ValidationError as error:
            raise CallFailed(f"{name} returned an invalid result. It may have run. Check its effect.") from error
        return result

    async def _report(self, call: Call, error: SaysoError | None) -> None:
        with anyio.move_on_after(CLEANUP_S, shield=True):
            await self.desk.run(report(self.desk.retry_policy, call, error))


def describe_error(error: SaysoError) -> types.CallToolResult:
    """Return what the model reads instead of the call's result."""
    return write_error(error.for_model if isinstance(error, Denied) else error.message)


def write_error(message: str) -> types.CallToolResult:
    """Return the result of a call that failed."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)


def _read_earlier(name: str, ran: EarlierResult) -> types.CallToolResult:
    """Return the result of an earlier run. A reviewer may have written it as free text."""
    if not ran.report.success:
        return write_error(ran.report.error or TOOL_ERROR)
    output = replay(name, ran)
    try:
        return types.CallToolResult.model_validate(output)
    except ValidationError:
        return types.CallToolResult(content=[types.TextContent(type="text", text=to_json(output).decode())])
