"""MCP proxy: tool calls run once, with the approved arguments, only if approved; other requests pass through."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
import mcp_types as types
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from sayso.adapters.base import TOOL_ERROR
from sayso.client import AsyncClient
from sayso.client.holders import run_as
from sayso.client.permits import Call, EarlierResult, GatedCall, RedeemedPermit, obtain_permit, replay, report
from sayso.client.requests import new_key
from sayso.client.trace_context import traced_as
from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.records.tools import ToolDefinition, check_tool_name
from sayso.errors import CallFailed, Denied, InDoubt, InvalidInput, NotFound, SaysoError, Suspended, Unavailable

KEY = "sayso/idempotency-key"
"""The key of the idempotency key in `_meta` of a forwarded call."""

ON_BEHALF_OF = "sayso/on-behalf-of"
"""The key in `_meta` of a client's call of the signed token that names the person for whom the agent acts."""

_LOG = logging.getLogger("sayso")
_PAGES = 100
_PROGRESS_EVERY_S = 5.0
_CLEANUP_S = 10.0
_MAX_RESUMABLE = 1000
_UNKNOWN_OUTCOMES = frozenset(
    {types.CONNECTION_CLOSED, types.REQUEST_TIMEOUT, types.INTERNAL_ERROR, types.PARSE_ERROR, types.INVALID_REQUEST}
)
"""Errors after which the server may or may not have run the call."""

_RELAYS: Mapping[str, tuple[str, type[Any], type[Any]]] = {
    "on_list_resources": ("resources", types.ListResourcesRequest, types.ListResourcesResult),
    "on_list_resource_templates": ("resources", types.ListResourceTemplatesRequest, types.ListResourceTemplatesResult),
    "on_read_resource": ("resources", types.ReadResourceRequest, types.ReadResourceResult),
    "on_list_prompts": ("prompts", types.ListPromptsRequest, types.ListPromptsResult),
    "on_get_prompt": ("prompts", types.GetPromptRequest, types.GetPromptResult),
    "on_completion": ("completions", types.CompleteRequest, types.CompleteResult),
}


@dataclass(frozen=True)
class ProxyOptions:
    """How calls are held.

    `name` prefixes each tool's name at the desk. A client of protocol 2026-07-28 gets a call back as `input_required`
    after `park_s` and repeats it. With `trust_hints`, the server's hints decide which calls are idempotent.
    `on_behalf_of` returns the signed token of calls that bring none in their `_meta`.
    """

    name: str = ""
    wait_s: float | None = None
    park_s: float | None = None
    trust_hints: bool = False
    report_within_s: int = 3600
    on_behalf_of: Callable[[], str] | None = None


@dataclass
class Proxy:
    """A gate between one MCP server and its client."""

    backend: Client
    desk: AsyncClient
    options: ProxyOptions = ProxyOptions()
    _resumable: dict[str, str] = field(default_factory=dict)
    """Keys of calls that timed out. The same call again continues the same suspension."""

    async def call(
        self, ctx: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Return the result of the call, or an error that tells the model why it did not run."""
        with traced_as((params.meta or {}).get("traceparent")):
            return await self._call(ctx, params)

    async def _call(
        self, ctx: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        try:
            tool = await self._find_tool(params.name)
            gated_call = self._build_call(ctx, tool, params)
            try:
                permit = await self._obtain(ctx, gated_call, withdraw=params.request_state is None)
            except Suspended as suspended:
                return self._hand_back(ctx, gated_call, suspended)
            if isinstance(permit, EarlierResult):
                return _read_earlier(gated_call.definition.name, permit)
            with run_as(permit.holder):
                return await self._forward(ctx, tool, gated_call, permit)
        except Denied as denied:
            return _describe_error(denied.for_model)
        except InDoubt:
            return _describe_error(
                f"{params.name} started earlier and has not reported a result. It may have run. Check its effect first."
            )
        except SaysoError as refused:
            return _describe_error(refused.message)

    def make_server(self) -> Server[Any]:
        """Return the server for clients. It offers the capabilities of the backend."""
        capabilities, info = self.backend.server_capabilities, self.backend.server_info
        relays: dict[str, Any] = {
            name: self._relay(request, result)
            for name, (needs, request, result) in _RELAYS.items()
            if getattr(capabilities, needs) is not None
        }
        return Server(
            info.name if info else "sayso",
            version=info.version if info else "",
            instructions=self.backend.instructions,
            on_list_tools=self._relay(types.ListToolsRequest, types.ListToolsResult),
            on_call_tool=self.call,
            **relays,
        )

    def _relay(self, request: type[Any], result: type[BaseModel]) -> Any:
        async def relay(_: Any, params: BaseModel | None) -> BaseModel:
            bare = None if params is None else params.model_copy(update={"meta": None})
            answer: BaseModel = await self.backend.session.send_request(request(params=bare), result)
            return answer

        return relay

    async def _find_tool(self, name: str) -> types.Tool:
        """Return the tool as the server defines it now. An earlier list may be outdated."""
        cursor: str | None = None
        try:
            for _ in range(_PAGES):
                page = await self.backend.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
                if (match := next((tool for tool in page.tools if tool.name == name), None)) is not None:
                    return match
                if (cursor := page.next_cursor) is None:
                    break
        except MCPError as error:
            raise Unavailable(
                f"The MCP server is unreachable ({error.message}). {name} did not run. Try again later."
            ) from error
        raise NotFound(f"The MCP server has no tool {name!r}. Use one that it lists.")

    def _build_call(self, ctx: Any, tool: types.Tool, params: types.CallToolRequestParams) -> GatedCall:
        hints, args = tool.annotations or types.ToolAnnotations(), params.arguments or {}
        label = check_tool_name(f"{self.options.name}.{tool.name}" if self.options.name else tool.name)
        try:
            definition = ToolDefinition(
                name=label,
                description=tool.description or "",
                parameters=tool.input_schema,
                idempotent=self.options.trust_hints and bool(hints.idempotent_hint or hints.read_only_hint),
            )
        except ValidationError as error:
            raise InvalidInput(f"{label} has an invalid definition: {error.errors()[0]['msg']}.") from error
        info = self.backend.server_info
        server = self.options.name or (info.name if info else "")
        key = params.request_state or self._resumable.pop(_digest(definition, args), None)
        return GatedCall(
            definition=definition,
            args=args,
            label=key or new_key(),
            title=(tool.title or hints.title or label)[:200],
            context={"mcp": {"server": server, "hints": hints.model_dump(mode="json", exclude_none=True)}},
            wait_s=self.options.park_s if self._can_park(ctx) else self.options.wait_s,
            report_within_s=self.options.report_within_s,
            on_behalf_of=self._read_token(params),
        )

    def _read_token(self, params: types.CallToolRequestParams) -> str | Callable[[], str] | None:
        token = (params.meta or {}).get(ON_BEHALF_OF)
        if token is None:
            return self.options.on_behalf_of
        if not isinstance(token, str):
            raise InvalidInput(f"{ON_BEHALF_OF} in _meta is no text. Give the signed token as its issuer made it.")
        return token

    async def _obtain(self, ctx: Any, gated_call: GatedCall, withdraw: bool) -> RedeemedPermit | EarlierResult:
        progress = asyncio.create_task(self._report_waiting(ctx, gated_call))
        try:
            return await self.desk.run(obtain_permit(self.desk.retry_policy, gated_call))
        except asyncio.CancelledError:
            if withdraw:
                with anyio.move_on_after(_CLEANUP_S, shield=True):
                    try:
                        suspension = await self.desk.exchange(gated_call.request)
                        await self.desk.cancel(suspension.run.id, "The MCP client no longer waits for this call.")
                    except SaysoError as error:
                        name = gated_call.definition.name
                        _LOG.warning("The suspension of %s was not cancelled: %s", name, error.message)
            raise
        finally:
            progress.cancel()

    async def _report_waiting(self, ctx: Any, gated_call: GatedCall) -> None:
        waited_s = 0.0
        while True:
            await asyncio.sleep(_PROGRESS_EVERY_S if waited_s else 1.0)
            waited_s += _PROGRESS_EVERY_S
            message = f"{gated_call.definition.name} waits for a reviewer at {self.desk.url}"
            try:
                await ctx.session.report_progress(waited_s, None, message)
            except (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError):
                return

    def _hand_back(
        self, ctx: Any, gated_call: GatedCall, suspended: Suspended
    ) -> types.CallToolResult | types.InputRequiredResult:
        if self._can_park(ctx):
            return types.InputRequiredResult(request_state=gated_call.label)
        if len(self._resumable) >= _MAX_RESUMABLE:
            del self._resumable[next(iter(self._resumable))]
        self._resumable[_digest(gated_call.definition, gated_call.args)] = gated_call.label
        return _describe_error(
            f"{gated_call.definition.name} did not run: it waits for a reviewer ({suspended.facts['link']}). "
            "Make the same call again later to continue."
        )

    async def _forward(
        self, ctx: Any, tool: types.Tool, gated_call: GatedCall, permit: RedeemedPermit
    ) -> types.CallToolResult:
        """Make the call once. A call with an unknown outcome is not reported: the desk marks it in doubt."""
        call = Call(permit)
        try:
            if await self._find_tool(tool.name) != tool:
                raise CallFailed(f"The server changed {tool.name} after its review. It did not run. Call it again.")
            result = await self._send(ctx, tool.name, permit)
        except (CallFailed, NotFound, Unavailable) as failed:
            await self._report(call, failed)
            raise
        call.result = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        texts = " ".join(block.text for block in result.content if isinstance(block, types.TextContent))
        await self._report(call, CallFailed(texts[:2000] or TOOL_ERROR) if result.is_error else None)
        if permit.args == gated_call.args:
            return result
        note = f"A reviewer changed the arguments. It ran with {to_json(permit.args).decode()}. Result:"
        return result.model_copy(update={"content": [types.TextContent(type="text", text=note), *result.content]})

    async def _send(self, ctx: Any, name: str, permit: RedeemedPermit) -> types.CallToolResult:
        params = types.CallToolRequestParams(name=name, arguments=permit.args, _meta={KEY: permit.idempotency_key})
        request = types.CallToolRequest(params=params)
        offset = 10.0**9  # exceeds all progress sent while waiting, because progress must increase

        async def relay(progress: float, total: float | None, message: str | None) -> None:
            await ctx.session.report_progress(offset + progress, None if total is None else offset + total, message)

        try:
            result: types.CallToolResult = await self.backend.session.send_request(
                request, types.CallToolResult, progress_callback=relay
            )
        except MCPError as error:
            if error.code in _UNKNOWN_OUTCOMES:
                raise SaysoError(
                    f"The MCP server returned no result of {name} ({error.message}). It may have run. "
                    "Check its effect before you retry."
                ) from error
            raise CallFailed(f"{name} failed: {error.message}") from error
        except ValidationError as error:
            raise CallFailed(f"{name} returned an invalid result. It may have run. Check its effect.") from error
        return result

    async def _report(self, call: Call, error: SaysoError | None) -> None:
        with anyio.move_on_after(_CLEANUP_S, shield=True):
            await self.desk.run(report(self.desk.retry_policy, call, error))

    def _can_park(self, ctx: Any) -> bool:
        return self.options.park_s is not None and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def _read_earlier(name: str, ran: EarlierResult) -> types.CallToolResult:
    """Return the result of an earlier run. A reviewer may have written it as free text."""
    output = replay(name, ran)
    try:
        return types.CallToolResult.model_validate(output)
    except ValidationError:
        return types.CallToolResult(content=[types.TextContent(type="text", text=to_json(output).decode())])


def _digest(definition: ToolDefinition, args: JsonObject) -> str:
    return digest_json({"definition": definition.digest, "args": args})


def _describe_error(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)


def connect_command(command: list[str]) -> Client:
    """Return a client of a server that is a program. The program does not see Sayso's settings."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("SAYSO_")}
    return Client(StdioServerParameters(command=command[0], args=command[1:], env=env), cache=None)


def connect_url(url: str, headers: Mapping[str, str]) -> Client:
    """Return a client of a server that speaks streamable HTTP."""
    http = httpx2.AsyncClient(
        headers=dict(headers), timeout=httpx2.Timeout(30.0, read=None), transport=_GatewayTransport()
    )
    return Client(streamable_http_client(url, http_client=http), cache=None)


class _GatewayTransport(httpx2.AsyncHTTPTransport):
    """Answers 502 if the server is unreachable. A raised error would end all other calls too."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await super().handle_async_request(request)
        except httpx2.TransportError as error:
            return httpx2.Response(502, text=str(error), request=request)


async def serve_proxy(backend: Client, options: ProxyOptions) -> None:
    """Serve the client on stdin and stdout until it disconnects. Raises `Unavailable` without a server."""
    try:
        async with AsyncClient() as desk, backend:
            server = Proxy(backend, desk, options).make_server()
            async with stdio_server() as (reading, writing):
                await server.run(reading, writing, server.create_initialization_options())
    except BaseExceptionGroup as group:
        known, others = group.split((MCPError, httpx2.HTTPError))
        if known is None or others is not None:
            raise
        raise _describe_outage(group) from group
    except MCPError as error:
        raise _describe_outage(error) from error


def _describe_outage(error: BaseException) -> Unavailable:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return Unavailable(f"The MCP server is unreachable: {error}. Correct its command or address, or start it.")
