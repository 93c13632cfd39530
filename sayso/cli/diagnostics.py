"""Find out what is wrong with a Sayso, from the terminal inwards, and say what to do about it."""

from rich.console import Console
from rich.text import Text

from sayso.cli.logins import connect
from sayso.cli.screens import show_line
from sayso.client import requests
from sayso.client.responses import Finding
from sayso.errors import NotAllowed, NotAuthenticated, SaysoError


def show_findings(console: Console, found: list[Finding]) -> None:
    """Print a line a part, and what to do."""
    for one in found:
        sign = Text("ok  ", "green") if one.ok else Text("NO  ", "bold red")
        console.print(Text.assemble(sign, show_line(f"{one.part:<11}"), show_line(one.told, width=500)))
        if one.todo:
            console.print(Text.assemble("    → ", show_line(one.todo, width=500)))


def diagnose() -> list[Finding]:
    """Return a finding for each part, up to the first that keeps the others from being seen."""
    try:
        client = connect()
    except SaysoError as error:
        return [Finding(part="login", ok=False, told=error.message, todo="")]
    with client:
        found: list[Finding] = []
        for part, path, todo in (
            ("server", "/healthz", "Start it with `make up`, or set SAYSO_URL to where it is."),
            ("store", "/readyz", "Start the store, or correct the service's SAYSO_REDIS_URL."),
        ):
            try:
                client.exchange(requests.look(path))
            except SaysoError as error:
                return [*found, Finding(part=part, ok=False, told=error.message, todo=todo)]
            found.append(Finding(part=part, ok=True, told=f"{client.url} answers."))
        try:
            found += client.exchange(requests.diagnose()).findings
        except NotAllowed:
            found.append(
                Finding(part="login", ok=True, told="An agent's key holds. A reviewer's sees the other parts.")
            )
        except NotAuthenticated as error:
            found.append(Finding(part="login", ok=False, told=error.message, todo="Run `sayso login`."))
        return found
