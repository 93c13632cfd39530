"""Connect the MCP proxy: to the server behind it, a program or an address, and to the client before it."""

import os
from collections.abc import Mapping

import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from sayso.adapters.mcp import Manner, Proxy
from sayso.client import AsyncClient
from sayso.errors import Unavailable

_OURS = "SAYSO_"


def connect_command(command: list[str]) -> Client:
    """Return a client of a server that is a program. It is not given the desk's key."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    return Client(StdioServerParameters(command=command[0], args=command[1:], env=env), cache=None)


def connect_url(url: str, headers: Mapping[str, str]) -> Client:
    """Return a client of a server that speaks streamable HTTP."""
    http = httpx2.AsyncClient(headers=dict(headers), timeout=httpx2.Timeout(30.0, read=None), transport=_Answering())
    return Client(streamable_http_client(url, http_client=http), cache=None)


class _Answering(httpx2.AsyncHTTPTransport):
    """Say that the server is away as a gateway does, for one request; raised, it would end every other call too."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await super().handle_async_request(request)
        except httpx2.TransportError as error:
            return httpx2.Response(502, text=str(error), request=request)


async def stand_before(backend: Client, manner: Manner) -> None:
    """Serve the client at standard input and output until it closes them; raises `Unavailable` without a server."""
    try:
        async with AsyncClient() as desk, backend:
            server = Proxy(backend, desk, manner).make_server()
            async with stdio_server() as (reading, writing):
                await server.run(reading, writing, server.create_initialization_options())
    except BaseExceptionGroup as group:
        lost, others = group.split((MCPError, httpx2.HTTPError))
        if lost is None or others is not None:
            raise
        raise _describe_away(group) from group
    except MCPError as error:
        raise _describe_away(error) from error


def _describe_away(error: BaseException) -> Unavailable:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return Unavailable(f"The MCP server cannot be spoken with: {error}. Correct its command or address, or start it.")
