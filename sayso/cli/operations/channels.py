"""Commands for the configured channels: list them, send a test card, and preview cards without a desk."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from sayso.cli.logins import connect
from sayso.cli.outputs import JsonOption, print_json, print_list
from sayso.cli.screens import make_console, show_line
from sayso.client import channels as requests
from sayso.errors import Unavailable

_PREVIEWS = "service.channels.previews"

channels = typer.Typer(help="Check the channels over which people are notified.", no_args_is_help=True)


@channels.command("list")
def list_channels(json: JsonOption = False) -> None:
    """List the configured channels, without their secrets. Requires an admin."""
    with connect() as client:
        listed = client.exchange(requests.LIST_CHANNELS).channels
    rows = (
        (view.name, view.kind, view.destination, ", ".join(f"{row.name}: {row.text}" for row in view.settings))
        for view in listed
    )
    columns = ("name", "kind", "provider", "settings")
    print_list(listed, json, columns, rows, empty="No channel is configured. Set SAYSO_CHANNELS on the service.")


@channels.command("test")
def send_test(
    name: Annotated[str, typer.Argument(help="The channel's name.")],
    to: Annotated[str, typer.Option("--to", help="A reviewer; without it, the channel's own destination.")] = "",
    json: JsonOption = False,
) -> None:
    """Send a test card, and print the provider's answer. Requires an admin."""
    with connect() as client:
        answers = client.exchange(requests.send_test(name, to)).answers
    if json:
        print_json(answers)
    for answer in () if json else answers:
        accepted = f"accepted: {answer.text}" if answer.text else "accepted."
        text = accepted if answer.accepted else f"not accepted: {answer.text}"
        make_console().print(show_line(f"{name}: {text}", "" if answer.accepted else "red", width=600))
    if not all(answer.accepted for answer in answers):
        raise typer.Exit(1)


@channels.command("preview")
def preview(
    rules: Annotated[Path, typer.Argument(help="The rules file.")],
    rule: Annotated[str, typer.Option("--rule", help="The id of the rule.")],
    call: Annotated[Path, typer.Option("--call", help="A JSON file with tool, args and parameters.")],
    channels_file: Annotated[
        Path | None, typer.Option("--channels", help="The channels file; without it, every kind is shown.")
    ] = None,
) -> None:
    """Show what a rule and a call would look like on each channel. Nothing is sent; no desk is required."""
    if find_spec("service") is None and not Path("service").is_dir():
        raise Unavailable("Previews need the service's code. Run this where the service is installed.")
    given = [str(rules), "--rule", rule, "--call", str(call)]
    given += ["--channels", str(channels_file)] if channels_file is not None else []
    ended = subprocess.run([sys.executable, "-m", _PREVIEWS, *given], check=False)
    if ended.returncode:
        raise typer.Exit(ended.returncode)
