"""Commands of proxies: `sayso mcp` for an MCP server, `sayso agui` for an AG-UI agent."""

import asyncio
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from sayso.core.packages import install_command
from sayso.core.urls import require_tls
from sayso.errors import InvalidInput, Unavailable

_TOKEN = typer.Option(help="A file with the signed token of the person for whom the agent acts; read for each call.")
_PLAIN_HTTP = typer.Option(help="Allow http to another machine, such as a container's name in its network.")
_WAIT = typer.Option(min=0, help="Seconds that a request waits, if the client takes no tasks.")
_COMMAND = typer.Argument(help="The server's command, after `--`.")


def mcp(
    command: Annotated[list[str] | None, _COMMAND] = None,
    url: Annotated[str | None, typer.Option(help="The URL of a streamable HTTP server, instead of a command.")] = None,
    header: Annotated[list[str] | None, typer.Option(envvar="MCP_HEADER", help="'Name: value', for --url.")] = None,
    name: Annotated[str, typer.Option(help="A prefix for the tools' names at the desk.")] = "",
    wait: Annotated[float | None, _WAIT] = None,
    trust_hints: Annotated[bool, typer.Option(help="Trust the server's hints about idempotent tools.")] = False,
    on_behalf_of: Annotated[Path | None, _TOKEN] = None,
    plain_http: Annotated[bool, _PLAIN_HTTP] = False,
) -> None:
    """Run a proxy for an MCP server: its tools require permits. Reads SAYSO_URL and SAYSO_KEY."""
    if bool(command) == bool(url):
        raise InvalidInput("Name one server: `sayso mcp -- program …`, or `sayso mcp --url https://…/mcp`.")
    if url:
        require_tls(url, plain_http=plain_http)
    headers = _read_headers(header)
    if find_spec("mcp") is None:
        raise InvalidInput(f"The MCP proxy requires the mcp package: {install_command('cli,mcp')}")
    from sayso.adapters.mcp.calls import ProxyOptions
    from sayso.adapters.mcp.serving import connect_command, connect_url, serve_proxy

    token = None if on_behalf_of is None else partial(_read_token, on_behalf_of)
    options = ProxyOptions(name, wait, trust_hints, on_behalf_of=token)
    backend = connect_url(url, headers) if url else connect_command(command or [])
    try:
        asyncio.run(serve_proxy(backend, options))
    except OSError as error:
        raise Unavailable(f"The MCP server cannot be started: {error}. Correct its command.") from error


def agui(
    url: Annotated[str, typer.Option(help="The URL of the agent.")],
    header: Annotated[list[str] | None, typer.Option(envvar="AGUI_HEADER", help="'Name: value', sent to it.")] = None,
    name: Annotated[str, typer.Option(help="A prefix for the tools' names at the desk.")] = "",
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 8322,
    plain_http: Annotated[bool, _PLAIN_HTTP] = False,
) -> None:
    """Run a proxy for an AG-UI agent: its interrupts wait at the desk. Reads SAYSO_URL and SAYSO_KEY."""
    require_tls(url, plain_http=plain_http)
    headers = _read_headers(header)
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise InvalidInput(f"The AG-UI proxy requires more packages: {install_command('cli,agui')}")
    from sayso.adapters.agui import AgUiOptions, serve

    serve(url, AgUiOptions(name), headers, host, port)


def _read_headers(lines: list[str] | None) -> dict[str, str]:
    parts = [line.partition(":") for line in lines or []]
    if any(not colon or not label.strip() for label, colon, _ in parts):
        raise InvalidInput("Write each --header as 'Name: value'.")
    return {label.strip(): value.strip() for label, _, value in parts}


def _read_token(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The token in {file} cannot be read: {error}. Correct --on-behalf-of.") from error
