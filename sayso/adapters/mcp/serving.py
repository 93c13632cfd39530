"""The proxy's connections: to its MCP server, and to its client on stdin and stdout."""

import os
from collections.abc import Mapping

import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from sayso.adapters.mcp.calls import ProxyOptions
from sayso.adapters.mcp.proxies import Proxy
from sayso.client import AsyncClient
from sayso.errors import Unavailable


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
            proxy = Proxy(backend, desk, options)
            async with stdio_server() as (reading, writing):
                server = proxy.make_server()
                await server.run(reading, writing, server.create_initialization_options())
            await proxy.tasks.finish()
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
