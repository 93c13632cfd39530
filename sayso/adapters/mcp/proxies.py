"""The proxy's answers to its client: held calls, and requests that pass through."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

import anyio
import mcp_types as types
from mcp.client import Client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from sayso.adapters.mcp import tasks
from sayso.adapters.mcp.calls import CLEANUP_S, Backend, ProxyOptions, describe_error, write_error
from sayso.client import AsyncClient
from sayso.client.permits import EarlierResult, GatedCall, RedeemedPermit
from sayso.client.requests import new_key
from sayso.client.trace_context import traced_as
from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.records.tools import ToolDefinition
from sayso.errors import InvalidInput, SaysoError, Suspended
from sayso.wire.suspensions import SuspensionView

ON_BEHALF_OF = "sayso/on-behalf-of"
"""The key in `_meta` of a client's call of the signed token that names the person for whom the agent acts."""

ROUND_S = 50.0
"""How long a request waits before it returns `input_required`: shorter than the usual timeout of a minute."""

_LOG = logging.getLogger("sayso")
_PROGRESS_EVERY_S = 5.0
_MAX_RESUMABLE = 1000

_RELAYS: Mapping[str, tuple[str, type[Any], type[Any]]] = {
    "on_list_resources": ("resources", types.ListResourcesRequest, types.ListResourcesResult),
    "on_list_resource_templates": ("resources", types.ListResourceTemplatesRequest, types.ListResourceTemplatesResult),
    "on_read_resource": ("resources", types.ReadResourceRequest, types.ReadResourceResult),
    "on_list_prompts": ("prompts", types.ListPromptsRequest, types.ListPromptsResult),
    "on_get_prompt": ("prompts", types.GetPromptRequest, types.GetPromptResult),
    "on_completion": ("completions", types.CompleteRequest, types.CompleteResult),
}


class Proxy:
    """A gate between one MCP server and its client."""

    def __init__(self, client: Client, desk: AsyncClient, options: ProxyOptions) -> None:
        self.backend = Backend(client, desk, options)
        self.tasks = tasks.Tasks(self.backend)
        self._resumable: dict[str, str] = {}
        """Keys of calls that timed out. The same call again continues the same suspension."""

    async def call(
        self, ctx: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult | JsonObject:
        """Return the result of the call, an error that tells the model why it did not run, or how to ask again."""
        with traced_as((params.meta or {}).get("traceparent")):
            try:
                return await self._call(ctx, params)
            except SaysoError as refused:
                return describe_error(refused)

    async def _call(
        self, ctx: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult | JsonObject:
        tool = await self.backend.find_tool(params.name)
        call = self._build_call(ctx, tool, params)
        try:
            permit = await self._obtain(ctx, call, withdraw=params.request_state is None)
        except Suspended as suspended:
            return self._hand_back(ctx, call, suspended)
        if isinstance(permit, SuspensionView):
            return self.tasks.create(permit)
        offset = 10.0**9  # exceeds all progress sent while waiting, because progress must increase

        async def relay(progress: float, total: float | None, message: str | None) -> None:
            await ctx.session.report_progress(offset + progress, None if total is None else offset + total, message)

        return await self.backend.run(tool, call.args, permit, call.definition.digest, relay)

    def make_server(self) -> Server[Any]:
        """Return the server for clients. It offers the capabilities of the backend, and tasks."""
        client = self.backend.client
        capabilities, info = client.server_capabilities, client.server_info
        relays: dict[str, Any] = {
            name: self._relay(request, result)
            for name, (needs, request, result) in _RELAYS.items()
            if getattr(capabilities, needs) is not None
        }
        server: Server[Any] = Server(
            info.name if info else "sayso",
            version=info.version if info else "",
            instructions=client.instructions,
            on_list_tools=self._relay(types.ListToolsRequest, types.ListToolsResult),
            on_call_tool=self.call,
            **relays,
        )
        self.tasks.add_to(server)
        return server

    def _relay(self, request: type[Any], result: type[BaseModel]) -> Any:
        async def relay(_: Any, params: BaseModel | None) -> BaseModel:
            bare = None if params is None else params.model_copy(update={"meta": None})
            answer: BaseModel = await self.backend.client.session.send_request(request(params=bare), result)
            return answer

        return relay

    def _build_call(self, ctx: Any, tool: types.Tool, params: types.CallToolRequestParams) -> GatedCall:
        hints, args = tool.annotations or types.ToolAnnotations(), params.arguments or {}
        definition, options = self.backend.define(tool), self.backend.options
        key = params.request_state or self._resumable.pop(_digest(definition, args), None)
        return GatedCall(
            definition=definition,
            args=args,
            label=key or new_key(),
            title=(tool.title or hints.title or definition.name)[:200],
            context={"mcp": {"server": self.backend.name, "hints": hints.model_dump(mode="json", exclude_none=True)}},
            wait_s=ROUND_S if options.wait_s is None and _repeats(ctx) else options.wait_s,
            report_within_s=options.report_within_s,
            on_behalf_of=self._read_token(params),
        )

    def _read_token(self, params: types.CallToolRequestParams) -> str | Callable[[], str] | None:
        token = (params.meta or {}).get(ON_BEHALF_OF)
        if token is None:
            return self.backend.options.on_behalf_of
        if not isinstance(token, str):
            raise InvalidInput(f"{ON_BEHALF_OF} in _meta is no text. Give the signed token as its issuer made it.")
        return token

    async def _obtain(
        self, ctx: Any, call: GatedCall, withdraw: bool
    ) -> RedeemedPermit | EarlierResult | SuspensionView:
        """Wait for the permit, or return the suspension of a call that becomes a task."""
        desk = self.backend.desk
        progress = asyncio.create_task(self._report_waiting(ctx, call))
        try:
            asked = await desk.exchange(call.request) if tasks.is_declared(ctx) else None
            return asked if asked is not None and asked.pending else await self.backend.obtain(call, asked)
        except asyncio.CancelledError:
            if withdraw:
                with anyio.move_on_after(CLEANUP_S, shield=True):
                    try:
                        suspension = await desk.exchange(call.request)
                        await desk.cancel(suspension.run.id, "The MCP client no longer waits for this call.")
                    except SaysoError as error:
                        _LOG.warning("The suspension of %s was not cancelled: %s", call.definition.name, error.message)
            raise
        finally:
            progress.cancel()

    async def _report_waiting(self, ctx: Any, call: GatedCall) -> None:
        waited_s = 0.0
        while True:
            await asyncio.sleep(_PROGRESS_EVERY_S if waited_s else 1.0)
            waited_s += _PROGRESS_EVERY_S
            message = f"{call.definition.name} waits for a reviewer at {self.backend.desk.url}"
            try:
                await ctx.session.report_progress(waited_s, None, message)
            except (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError):
                return

    def _hand_back(
        self, ctx: Any, call: GatedCall, suspended: Suspended
    ) -> types.CallToolResult | types.InputRequiredResult:
        if _repeats(ctx):
            return types.InputRequiredResult(request_state=call.label)
        if len(self._resumable) >= _MAX_RESUMABLE:
            del self._resumable[next(iter(self._resumable))]
        self._resumable[_digest(call.definition, call.args)] = call.label
        return write_error(
            f"{call.definition.name} did not run: it waits for a reviewer ({suspended.facts['link']}). "
            "Make the same call again later to continue."
        )


def _repeats(ctx: Any) -> bool:
    """Whether the client repeats a call that returns `input_required`."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def _digest(definition: ToolDefinition, args: JsonObject) -> str:
    return digest_json({"definition": definition.digest, "args": args})
