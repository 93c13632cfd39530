"""Commands for operators: diagnostics, activity and freezes."""

import shlex
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from sayso.cli.logins import connect, exchange
from sayso.cli.screens import JsonOption, format_time, make_console, print_json, print_list, show, show_line
from sayso.client import administration
from sayso.errors import InvalidInput, NotAllowed, NotAuthenticated, SaysoError, UnknownName
from sayso.wire.administration import ActivityView, FindingView


def show_findings(console: Console, findings: list[FindingView]) -> None:
    """Print one line for each finding, and what to do."""
    for finding in findings:
        sign = Text("ok  ", "green") if finding.ok else Text("NO  ", "bold red")
        console.print(Text.assemble(sign, show_line(f"{finding.part:<16}"), show_line(finding.message, width=500)))
        if finding.todo:
            console.print(Text.assemble("    → ", show_line(finding.todo, width=500)))


def diagnose() -> list[FindingView]:
    """Return the findings, up to the first failure that hides the remaining parts."""
    try:
        client = connect()
    except SaysoError as error:
        return [FindingView(part="login", ok=False, message=error.message, todo="")]
    with client:
        findings: list[FindingView] = []
        for part, path, todo in (
            ("server", "/healthz", "Start it with `make up`, or set SAYSO_URL to its address."),
            ("store", "/readyz", "Start the store, or correct the service's SAYSO_REDIS_URL."),
        ):
            try:
                client.exchange(administration.probe(path))
            except SaysoError as error:
                return [*findings, FindingView(part=part, ok=False, message=error.message, todo=todo)]
            findings.append(FindingView(part=part, ok=True, message=f"{client.url} answers.", todo=""))
        try:
            findings += client.exchange(administration.DIAGNOSE).findings
        except NotAllowed:
            message = "The agent's key is valid. The other parts require a monitoring key, or a reviewer's."
            findings.append(FindingView(part="login", ok=True, message=message, todo=""))
        except NotAuthenticated as error:
            findings.append(FindingView(part="login", ok=False, message=error.message, todo="Run `sayso login`."))
        return findings


_ACTIVITY_PAGE = 200


def list_activity(
    limit: Annotated[int, typer.Option(min=1, max=200_000, help="The largest number of entries.")] = 50,
    json: JsonOption = False,
) -> None:
    """List what people did and what was refused, with what it changed. The newest comes first."""
    entries: list[ActivityView] = []
    skip: int | None = 0
    with connect() as client:
        while skip is not None and len(entries) < limit:
            page = client.exchange(administration.list_activity(skip, min(_ACTIVITY_PAGE, limit - len(entries))))
            entries += page.activity
            skip = page.next_skip
            if page.broken_at is not None:
                warning = f"Entry {page.broken_at} does not fit the chain: the log was altered."
                make_console(error=True).print(show_line(warning, "bold red"))
    rows = (
        (
            *(format_time(entry.at), entry.act, entry.by, entry.door, entry.address, entry.target),
            str(entry.data.get("changed", "")) if entry.outcome == "done" else f"{entry.outcome}, {entry.times} times",
        )
        for entry in entries
    )
    print_list(entries, json, ("at", "act", "by", "door", "address", "target", "changed"), rows)


def doctor(json: JsonOption = False) -> None:
    """Check every part of Sayso, and suggest fixes."""
    findings = diagnose()
    if json:
        print_json(findings)
    else:
        show_findings(make_console(), findings)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def freeze(
    scope: Annotated[str, typer.Argument(help="all, agent:NAME or tool:NAME.")],
    reason: Annotated[str, typer.Option("--message", "-m", help="The reason, shown to everybody.")] = "",
    confirm: Annotated[bool, typer.Option("--confirm", help="Freeze a name that was never seen.")] = False,
) -> None:
    """Stop new calls of a tool, of an agent, or all. Requires an admin."""
    with connect() as client:
        try:
            made = client.exchange(administration.freeze(scope, reason, confirm=confirm))
        except UnknownName as error:
            if not sys.stdin.isatty():
                raise InvalidInput(f"{error.message} To confirm it here, give --confirm.") from error
            make_console().print(show(error.message, "yellow"))
            typer.confirm("Freeze it anyway?", abort=True)
            made = client.exchange(administration.freeze(scope, reason, confirm=True))
    command = f"sayso unfreeze {shlex.quote(made.scope)}"
    make_console().print(show_line(f"{made.scope} is frozen by {made.by}. `{command}` ends the freeze."))


def list_freezes(json: JsonOption = False) -> None:
    """List the freezes in force."""
    freezes = exchange(administration.LIST_FREEZES).freezes
    rows = ((freeze.id, freeze.scope, freeze.by, format_time(freeze.at), freeze.reason) for freeze in freezes)
    print_list(freezes, json, ("id", "scope", "by", "since", "reason"), rows, empty="Nothing is frozen.")


def unfreeze(
    scope: Annotated[str, typer.Argument(help="all, agent:NAME or tool:NAME, or the id of a freeze.")],
    checked: Annotated[str, typer.Option("--checked", help="What was checked, after the store went back.")] = "",
) -> None:
    """End a freeze. Deadlines shift by its duration. Requires an admin."""
    with connect() as client:
        freezes = client.exchange(administration.LIST_FREEZES).freezes
        frozen = next((freeze.scope for freeze in freezes if scope in (freeze.id, freeze.scope)), None)
        if frozen is None:
            raise InvalidInput(f"There is no freeze {scope!r} in force. `sayso freezes` lists them.")
        if frozen == "time":
            raise InvalidInput(f"Choose on {client.url}/operate what happens to the deadlines that passed meanwhile.")
        ended = client.exchange(administration.unfreeze(scope, checked))
    make_console().print(show_line(f"{ended.scope} is no longer frozen."))
