"""`sayso mcp`: stand in front of an MCP server. It needs the official `mcp` package, and says so."""

import asyncio
from importlib.util import find_spec
from typing import Annotated

import typer

from sayso.errors import InvalidInput, Unavailable

_COMMAND = typer.Argument(help="The server's program and what it is given, after `--`.")


def mcp(
    command: Annotated[list[str] | None, _COMMAND] = None,
    url: Annotated[str | None, typer.Option(help="Instead of a program: a server that speaks streamable HTTP.")] = None,
    header: Annotated[list[str] | None, typer.Option(envvar="MCP_HEADER", help="'Name: value', for --url.")] = None,
    name: Annotated[str, typer.Option(help="What goes before the tools' names at the desk, with a dot.")] = "",
    wait: Annotated[float | None, typer.Option(min=0, help="Seconds until a call is told to wait.")] = None,
    park: Annotated[float | None, typer.Option(min=0, help="Seconds until input_required is answered.")] = None,
    trust_hints: Annotated[bool, typer.Option(help="Believe what the server says may be run again.")] = False,
) -> None:
    """Stand in front of an MCP server: its tools run only with Sayso's leave. SAYSO_URL and SAYSO_KEY say where."""
    if bool(command) == bool(url):
        raise InvalidInput("Say which server: `sayso mcp -- program …`, or `sayso mcp --url https://…/mcp`.")
    if url and not url.startswith(("http://", "https://")):
        raise InvalidInput(f"{url!r} is no address of an MCP server. Write it as https://host/mcp.")
    headers = _read_headers(header or [])
    if find_spec("mcp") is None:
        raise InvalidInput("The MCP proxy needs mcp: pip install 'sayso[cli,mcp]'.")
    from sayso.adapters.mcp import ProxyOptions
    from sayso.adapters.mcp.connections import connect_command, connect_url, serve_proxy

    backend = connect_url(url, headers) if url else connect_command(command or [])
    try:
        asyncio.run(serve_proxy(backend, ProxyOptions(name, wait, park, trust_hints)))
    except OSError as error:
        raise Unavailable(f"The MCP server cannot be started: {error}. Correct its command.") from error


def _read_headers(lines: list[str]) -> dict[str, str]:
    parts = [line.partition(":") for line in lines]
    if any(not colon or not label.strip() for label, colon, _ in parts):
        raise InvalidInput("Write each --header as 'Name: value'.")
    return {label.strip(): value.strip() for label, _, value in parts}
