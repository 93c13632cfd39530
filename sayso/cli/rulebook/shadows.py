"""`sayso policy shadow`: whole files of rules that judge every new call beside the rules in force, without effect."""

from pathlib import Path
from typing import Annotated

import typer

from sayso.cli.logins import connect
from sayso.cli.outputs import JsonOption, print_json
from sayso.cli.policies import read_lists, read_rules
from sayso.cli.rulebook.replays import SumOption, end_with, wait_for
from sayso.cli.rulebook.versions import YesOption, find_version
from sayso.cli.screens import format_time, make_console, show_line
from sayso.client import Client, rulebook
from sayso.client.rulebook import ShadowView
from sayso.errors import InvalidInput

app = typer.Typer(no_args_is_help=True, help="Judge every new call by other rules as well, without effect.")

VersionOption = Annotated[str | None, typer.Option("--version", help="A version; any unique begin is enough.")]


@app.command("start")
def start(
    file: Annotated[Path | None, typer.Argument()] = None, version: VersionOption = None, json: JsonOption = False
) -> None:
    """Put a file of rules, or a version that the desk keeps, in shadow. For admins."""
    if (file is None) == (version is None):
        raise InvalidInput("Give either a file or --version.")
    with connect() as client:
        if file is not None:
            request = rulebook.begin_file_shadow(read_rules(file), file.name, read_lists(file))
        else:
            listed = client.exchange(rulebook.LIST_VERSIONS).versions
            request = rulebook.begin_shadow(find_version(listed, version or "").version)
        shadow = client.exchange(request)
    if json:
        print_json(shadow)
        return
    console = make_console()
    console.print(show_line(f"Version {shadow.version} of {shadow.file} judges every new call in shadow.", width=1000))
    console.print(show_line("It changes nothing. `sayso policy shadow report` says what it would have done."))


@app.command("status")
def status(json: JsonOption = False) -> None:
    """Show the candidate in shadow, and those before it."""
    with connect() as client:
        shadows = client.exchange(rulebook.READ_SHADOW)
    if json:
        print_json(shadows)
        return
    console = make_console()
    if shadows.current is None:
        console.print(show_line("No candidate is in shadow."))
    for shadow in [*([shadows.current] if shadows.current is not None else []), *shadows.ended]:
        console.print(show_line(_describe(shadow), width=1000))


@app.command("report")
def report(version: VersionOption = None, path: SumOption = None, json: JsonOption = False) -> None:
    """Compare what the candidate would have done with what was done and what people decided. For admins.

    By default it is the candidate in shadow, else the last one.
    """
    with connect() as client:
        name = _find_shadowed(client, version) if version is not None else None
        replay = wait_for(client, client.exchange(rulebook.report_shadow(name, path)))
    end_with(replay, json=json)


@app.command("end")
def end() -> None:
    """End the candidate in shadow. For admins."""
    with connect() as client:
        current = _read_current(client)
        client.exchange(rulebook.end_shadow(current.version))
    make_console().print(show_line(f"Version {current.version} is no longer in shadow."))


@app.command("promote")
def promote(yes: YesOption = False) -> None:
    """Put the candidate in force, if enough people attest its bytes, and end its shadow. For admins."""
    with connect() as client:
        current = _read_current(client)
        listed = client.exchange(rulebook.LIST_VERSIONS).versions
        replaces = next((version.version for version in listed if version.in_force), "")
        question = f"Put version {current.version} of {current.file} in force instead of {replaces or 'none'}?"
        if not yes and not typer.confirm(question):
            raise typer.Abort
        client.exchange(rulebook.promote_shadow(current.version, replaces))
    make_console().print(show_line(f"Version {current.version} is in force. {replaces} is withdrawn."))


def _read_current(client: Client) -> ShadowView:
    current = client.exchange(rulebook.READ_SHADOW).current
    if current is None:
        raise InvalidInput("No candidate is in shadow. `sayso policy shadow start FILE` puts one there.")
    return current


def _find_shadowed(client: Client, begin: str) -> str:
    shadows = client.exchange(rulebook.READ_SHADOW)
    listed = [*([shadows.current] if shadows.current is not None else []), *shadows.ended]
    names = {shadow.version for shadow in listed if shadow.version.startswith(begin)}
    if len(names) != 1:
        raise InvalidInput(f"{len(names) or 'No'} candidates begin with {begin!r}. See `sayso policy shadow status`.")
    return names.pop()


def _describe(view: ShadowView) -> str:
    ended = f"until {format_time(view.end)}, ended by {view.ended_by}" if view.end is not None else "until now"
    return f"Version {view.version} of {view.file}: in shadow since {format_time(view.start)} by {view.by}, {ended}"
