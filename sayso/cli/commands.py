"""The `sayso` command: login, inbox, decisions and diagnostics."""

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from sayso import __version__
from sayso.cli.channels import channels, reports
from sayso.cli.duty import absence, contacts, preferences, who
from sayso.cli.groups import groups
from sayso.cli.logins import Login, forget_login, save_login
from sayso.cli.operations import diagnose, freeze, list_freezes, mcp, show_findings, unfreeze
from sayso.cli.people import change_password, keys, people, sessions
from sayso.cli.policies import attest, list_versions, policies, rollback, show_version
from sayso.cli.reviews import (
    answer,
    approve,
    ask,
    claim,
    comment,
    deny,
    inbox,
    list_comments,
    print_suspension,
    release,
    reply,
)
from sayso.cli.runs import erase, events, list_runs, run_app
from sayso.cli.screens import JsonOption, make_console, print_json, show, show_line
from sayso.cli.webhooks import webhooks
from sayso.client import URL, Client
from sayso.errors import InvalidInput, SaysoError
from sayso.features.control import app as second_look
from sayso.features.control import drills
from sayso.features.permissions.commands import app as grants
from sayso.features.permissions.commands import mandates_app as mandates
from sayso.features.whatif.commands import app as shadows
from sayso.features.whatif.commands import replay, run_tests
from sayso.features.whatif.diff_commands import diff

app = typer.Typer(
    help="Review calls and manage a Sayso desk.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(inbox)
app.command("show")(print_suspension)
app.command()(approve)
app.command()(deny)
app.command(context_settings={"ignore_unknown_options": True})(answer)  # a negative number is not an option
app.command()(claim)
app.command()(release)
app.command()(comment)
app.command("comments")(list_comments)
app.command()(ask)
app.command()(reply)
app.add_typer(run_app, name="run")
policies.command("test")(run_tests)
policies.command()(diff)
policies.command()(replay)
policies.command()(attest)
policies.command("versions")(list_versions)
policies.command("version")(show_version)
policies.command()(rollback)
policies.add_typer(shadows, name="shadow")
app.add_typer(policies, name="policy")
app.add_typer(grants, name="grants")
app.add_typer(mandates, name="mandates")
app.add_typer(keys, name="keys")
app.add_typer(webhooks, name="webhooks")
app.add_typer(people, name="people")
app.add_typer(sessions, name="sessions")
app.add_typer(groups, name="groups")
app.add_typer(contacts, name="contacts")
app.add_typer(channels, name="channels")
app.add_typer(reports, name="report")
app.add_typer(drills, name="drills")
app.add_typer(second_look, name="second-looks")
app.add_typer(absence, name="absence")
app.command("preferences")(preferences)
app.command()(who)
app.command("password")(change_password)
app.command("runs")(list_runs)
app.command()(events)
app.command()(erase)
app.command()(mcp)
app.command()(freeze)
app.command("freezes")(list_freezes)
app.command()(unfreeze)


def run() -> int:
    """Run the command line and return its exit status. An error prints one sentence."""
    try:
        code = app(prog_name="sayso", standalone_mode=False)
    except SaysoError as error:
        make_console(error=True).print(show(error.message, "red"))
        return 1
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except Exception as error:
        describe_usage: Callable[[], str] | None = getattr(error, "format_message", None)
        if describe_usage is None:
            raise
        if type(error).__name__ == "NoArgsIsHelpError":  # without a command, the error is the whole help
            typer.echo(describe_usage(), err=True)
            return 2
        make_console(error=True).print(show(f"{describe_usage().rstrip('.')}. See --help.", "red"))
        return 2
    return code if isinstance(code, int) else 0


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"sayso {__version__}")
        raise typer.Exit


@app.callback()
def _read_options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Accept options before the command. Their callbacks act."""


@app.command()
def login(
    url: Annotated[str, typer.Option(help="The desk's address.", envvar="SAYSO_URL")] = URL,
    name: Annotated[str | None, typer.Option(help="Your name.")] = None,
    key: Annotated[bool, typer.Option("--key", help="Save a reviewer's key instead of signing in.")] = False,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input. Requires --name.")
    ] = False,
) -> None:
    """Sign in on this machine."""
    console = make_console()
    password = _read_password(name, key) if password_stdin else None
    if key:
        secret = typer.prompt("Key", hide_input=True)
        with Client(url, secret, patience_s=5) as client:
            client.waiting(limit=1)
        saved = Login(url=client.url, key=secret, name=name or "")
    else:
        name = name or typer.prompt("Name")
        with Client(url, "-", patience_s=5) as client:
            opened = client.sign_in(name, password or typer.prompt("Password", hide_input=True))
        saved = Login(url=client.url, key=opened.token, name=opened.name)
        if opened.password_by:
            console.print(show_line(f"{opened.password_by} set your password. Change it now: sayso password", "yellow"))
    save_login(saved)
    console.print(show_line(f"Signed in at {saved.url}{f' as {saved.name}' if saved.name else ''}."))


@app.command()
def logout() -> None:
    """Delete the login on this machine."""
    forget_login()
    make_console().print("Signed out on this machine.")


@app.command()
def doctor(json: JsonOption = False) -> None:
    """Check every part of Sayso, and suggest fixes."""
    findings = diagnose()
    if json:
        print_json(findings)
    else:
        show_findings(make_console(), findings)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def _read_password(name: str | None, key: bool) -> str:
    if key or not name:
        raise InvalidInput("--password-stdin requires --name and excludes --key. Add --name NAME.")
    password = sys.stdin.read().removesuffix("\n").removesuffix("\r")
    if not password:
        raise InvalidInput("Standard input has no password. Pipe one in, or omit --password-stdin.")
    return password
