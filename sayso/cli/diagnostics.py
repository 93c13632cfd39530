"""Diagnostics of the login, the server, the store and the desk's parts."""

from rich.console import Console
from rich.text import Text

from sayso.cli.logins import connect
from sayso.cli.screens import show_line
from sayso.client import administration
from sayso.client.administration import Finding
from sayso.errors import NotAllowed, NotAuthenticated, SaysoError


def show_findings(console: Console, findings: list[Finding]) -> None:
    """Print one line for each finding, and what to do."""
    for finding in findings:
        sign = Text("ok  ", "green") if finding.ok else Text("NO  ", "bold red")
        console.print(Text.assemble(sign, show_line(f"{finding.part:<16}"), show_line(finding.message, width=500)))
        if finding.todo:
            console.print(Text.assemble("    → ", show_line(finding.todo, width=500)))


def diagnose() -> list[Finding]:
    """Return the findings, up to the first failure that hides the remaining parts."""
    try:
        client = connect()
    except SaysoError as error:
        return [Finding(part="login", ok=False, message=error.message, todo="")]
    with client:
        findings: list[Finding] = []
        for part, path, todo in (
            ("server", "/healthz", "Start it with `make up`, or set SAYSO_URL to its address."),
            ("store", "/readyz", "Start the store, or correct the service's SAYSO_REDIS_URL."),
        ):
            try:
                client.exchange(administration.probe(path))
            except SaysoError as error:
                return [*findings, Finding(part=part, ok=False, message=error.message, todo=todo)]
            findings.append(Finding(part=part, ok=True, message=f"{client.url} answers."))
        try:
            findings += client.exchange(administration.DIAGNOSE).findings
        except NotAllowed:
            message = "The agent's key is valid. The other parts require a reviewer's key."
            findings.append(Finding(part="login", ok=True, message=message))
        except NotAuthenticated as error:
            findings.append(Finding(part="login", ok=False, message=error.message, todo="Run `sayso login`."))
        return findings
