"""Stand in front of an MCP server: its tools are called only with Sayso's leave; everything else passes through.

Each `tools/call` is asked about, waited for, and forwarded once with exactly the arguments that were decided on. What
does not get leave, for whatever reason, is told to the model as the call's error and never reaches the server.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import mcp_types as types
from mcp.client import Client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from sayso.canonical_json import JsonObject, digest_json
from sayso.client import AsyncClient
from sayso.client.permits import EarlierResult, GatedCall, RedeemedPermit, obtain_permit
from sayso.client.reports import Call, replay, report
from sayso.client.requests import new_key
from sayso.errors import CallFailed, Denied, InDoubt, InvalidInput, NotFound, SaysoError, Suspended, Unavailable
from sayso.records.tool_calls import ToolDefinition
from sayso.records.tool_names import check_tool_name

KEY = "sayso/idempotency-key"
"""Where in a forwarded call's `_meta` its idempotency key stands."""

_LOG = logging.getLogger("sayso")
_PAGES = 100
_TELL_EVERY_S = 5.0
_SETTLE_S = 10.0
_MOST_LEFT = 1000
_UNKNOWN_ENDS = frozenset(
    {types.CONNECTION_CLOSED, types.REQUEST_TIMEOUT, types.INTERNAL_ERROR, types.PARSE_ERROR, types.INVALID_REQUEST}
)
"""Errors that come where the server's own answer is lost, or says nothing of what it did."""

_RELAYS: Mapping[str, tuple[str, type[Any], type[Any]]] = {
    "on_list_resources": ("resources", types.ListResourcesRequest, types.ListResourcesResult),
    "on_list_resource_templates": ("resources", types.ListResourceTemplatesRequest, types.ListResourceTemplatesResult),
    "on_read_resource": ("resources", types.ReadResourceRequest, types.ReadResourceResult),
    "on_list_prompts": ("prompts", types.ListPromptsRequest, types.ListPromptsResult),
    "on_get_prompt": ("prompts", types.GetPromptRequest, types.GetPromptResult),
    "on_completion": ("completions", types.CompleteRequest, types.CompleteResult),
}


@dataclass(frozen=True)
class Manner:
    """How calls are held.

    `name` goes before each tool's name at the desk. `park_s` is how long a call is held before a client of protocol
    2026-07-28 gets it back as `input_required`, to repeat it. `trust_hints` takes the server's word for what may be run
    again.
    """

    name: str = ""
    wait_s: float | None = None
    park_s: float | None = None
    trust_hints: bool = False
    report_within_s: int = 3600


@dataclass
class Proxy:
    """One MCP server, and the desk that its tools' calls are put before."""

    backend: Client
    desk: AsyncClient
    manner: Manner = Manner()
    _left: dict[str, str] = field(default_factory=dict)
    """The keys of calls that nobody decided in time: the same call again goes on with the same question."""

    async def call(
        self, ctx: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Return what the call came to, or that it was not made and why, as an error that the model can read."""
        try:
            tool = await self._find_tool(params.name)
            wanted = self._want(ctx, tool, params)
            try:
                permission = await self._obtain(ctx, wanted, withdraw=params.request_state is None)
            except Suspended as waits:
                return self._give_back(ctx, wanted, waits)
            if isinstance(permission, EarlierResult):
                return _read_earlier(wanted.definition.name, permission)
            return await self._forward(ctx, tool, wanted, permission)
        except Denied as denied:
            return _describe_error(f"{denied.message} It did not run. Go on without it.")
        except InDoubt:
            return _describe_error(
                f"{params.name} was begun before and has not reported back: it may have run. Look it up."
            )
        except SaysoError as refused:
            return _describe_error(refused.message)

    def make_server(self) -> Server[Any]:
        """Return the server that clients speak with: it offers what the one behind it offers."""
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
        """Return the tool as the server defines it now; a list that was read earlier proves nothing."""
        cursor: str | None = None
        try:
            for _ in range(_PAGES):
                page = await self.backend.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
                if (found := next((one for one in page.tools if one.name == name), None)) is not None:
                    return found
                if (cursor := page.next_cursor) is None:
                    break
        except MCPError as error:
            raise Unavailable(f"The MCP server is away ({error.message}). {name} was not run.") from error
        raise NotFound(f"The MCP server has no tool {name!r}. Choose one that it lists.")

    def _want(self, ctx: Any, tool: types.Tool, params: types.CallToolRequestParams) -> GatedCall:
        hints, args = tool.annotations or types.ToolAnnotations(), params.arguments or {}
        label = check_tool_name(f"{self.manner.name}.{tool.name}" if self.manner.name else tool.name)
        try:
            definition = ToolDefinition(
                name=label,
                description=tool.description or "",
                parameters=tool.input_schema,
                idempotent=self.manner.trust_hints and bool(hints.idempotent_hint or hints.read_only_hint),
            )
        except ValidationError as error:
            raise InvalidInput(f"{label} cannot be shown to a person: {error.errors()[0]['msg']}.") from error
        known = params.request_state or self._left.pop(_digest(definition, args), None)
        return GatedCall(
            definition=definition,
            args=args,
            label=known or new_key(),
            title=(tool.title or hints.title or label)[:200],
            context={"mcp": {"server": self._server_name, "hints": hints.model_dump(mode="json", exclude_none=True)}},
            wait_s=self.manner.park_s if self._parks(ctx) else self.manner.wait_s,
            report_within_s=self.manner.report_within_s,
        )

    async def _obtain(self, ctx: Any, wanted: GatedCall, withdraw: bool) -> RedeemedPermit | EarlierResult:
        external_event = asyncio.create_task(self._describe_waiting(ctx, wanted))
        try:
            return await self.desk.run(obtain_permit(self.desk.retry_policy, wanted))
        except asyncio.CancelledError:
            if withdraw:
                await self._withdraw(wanted)
            raise
        finally:
            external_event.cancel()

    async def _describe_waiting(self, ctx: Any, wanted: GatedCall) -> None:
        """Send progress while the call waits, so that the client does not give up."""
        waited_s = 0.0
        while True:
            await asyncio.sleep(_TELL_EVERY_S if waited_s else 1.0)
            waited_s += _TELL_EVERY_S
            message = f"{wanted.definition.name} waits for a person at {self.desk.url}"
            try:
                await ctx.session.report_progress(waited_s, None, message)
            except (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError):
                return

    async def _withdraw(self, wanted: GatedCall) -> None:
        """Take back a question whose client is gone, or has no more use for the answer."""
        with anyio.move_on_after(_SETTLE_S, shield=True):
            try:
                found = await self.desk.exchange(wanted.request)
                await self.desk.cancel(found.run.id, "The MCP client no longer waits for this call.")
            except SaysoError as lost:
                _LOG.warning("%s could not be withdrawn: %s", wanted.definition.name, lost.message)

    def _give_back(
        self, ctx: Any, wanted: GatedCall, waits: Suspended
    ) -> types.CallToolResult | types.InputRequiredResult:
        if self._parks(ctx):
            return types.InputRequiredResult(request_state=wanted.label)
        if len(self._left) >= _MOST_LEFT:
            del self._left[next(iter(self._left))]
        self._left[_digest(wanted.definition, wanted.args)] = wanted.label
        return _describe_error(
            f"{wanted.definition.name} was not run: it waits for a person ({waits.facts['link']}). "
            "Make the very same call again later to go on."
        )

    async def _forward(
        self, ctx: Any, tool: types.Tool, wanted: GatedCall, permission: RedeemedPermit
    ) -> types.CallToolResult:
        """Make the call once. A call that nobody knows the end of is not reported: the desk has it in doubt."""
        call = Call(permission)
        try:
            if await self._find_tool(tool.name) != tool:
                raise CallFailed(f"{tool.name} was changed by its server after it was asked about; it was not run.")
            result = await self._send(ctx, tool.name, permission)
        except (CallFailed, NotFound, Unavailable) as failed:
            await self._report(call, failed)
            raise
        call.result = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        await self._report(call, CallFailed(_read_text(result)) if result.is_error else None)
        if permission.args == wanted.args:
            return result
        note = f"A reviewer changed the arguments before this ran; it ran with {to_json(permission.args).decode()}. Result:"
        return result.model_copy(update={"content": [types.TextContent(type="text", text=note), *result.content]})

    async def _send(self, ctx: Any, name: str, permission: RedeemedPermit) -> types.CallToolResult:
        params = types.CallToolRequestParams(
            name=name, arguments=permission.args, _meta={KEY: permission.idempotency_key}
        )
        request = types.CallToolRequest(params=params)
        begun = 10.0**9  # above whatever was told while the call waited: progress must grow

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            await ctx.session.report_progress(begun + progress, None if total is None else begun + total, message)

        try:
            result: types.CallToolResult = await self.backend.session.send_request(
                request, types.CallToolResult, progress_callback=tell
            )
        except MCPError as error:
            if error.code in _UNKNOWN_ENDS:
                raise SaysoError(
                    f"The MCP server gave no result of {name} ({error.message}): it may have run. "
                    "Look whether it had its effect before trying again."
                ) from error
            raise CallFailed(f"{name} failed: {error.message}") from error
        except ValidationError as error:
            raise CallFailed(f"{name} gave an answer that is no result of a tool; it may have run.") from error
        return result

    async def _report(self, call: Call, error: SaysoError | None) -> None:
        with anyio.move_on_after(_SETTLE_S, shield=True):
            await self.desk.run(report(self.desk.retry_policy, call, error))

    def _parks(self, ctx: Any) -> bool:
        return self.manner.park_s is not None and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def _server_name(self) -> str:
        info = self.backend.server_info
        return self.manner.name or (info.name if info else "")


def _read_earlier(name: str, ran: EarlierResult) -> types.CallToolResult:
    """Return what the call came to when it ran; a person who was asked may have told it in words of their own."""
    output = replay(name, ran)
    try:
        return types.CallToolResult.model_validate(output)
    except ValidationError:
        return types.CallToolResult(content=[types.TextContent(type="text", text=to_json(output).decode())])


def _digest(definition: ToolDefinition, args: JsonObject) -> str:
    return digest_json({"definition": definition.digest, "args": args})


def _describe_error(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)


def _read_text(result: types.CallToolResult) -> str:
    texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
    return " ".join(texts)[:2000] or "The tool failed without a word."
