"""See to one's own sign-in from the shell, and as an admin to that of others."""

from typing import Annotated

import typer
from rich.table import Table

from sayso.cli.logins import Login, connect, read_login, save_login
from sayso.cli.outputs import JsonOption, print_json
from sayso.cli.screens import make_console, show_line
from sayso.client import accounts
from sayso.errors import InvalidInput

people = typer.Typer(help="See to reviewers and their sessions; for admins.", no_args_is_help=True)
sessions = typer.Typer(help="List and end your own sessions.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="The reviewer's name.")]


def change_password() -> None:
    """Choose a new password; you stay signed in here, and nowhere else."""
    current = typer.prompt("Current password", hide_input=True)
    chosen = typer.prompt("New password", hide_input=True, confirmation_prompt=True)
    with connect() as client:
        opened = client.exchange(accounts.change_password(current, chosen))
        before, kept = client.key, read_login()
    if kept is not None and kept.key == before:
        save_login(Login(url=kept.url, key=opened.token, name=opened.name))
        told = "All other sessions have ended."
    else:
        told = "All sessions have ended, that in SAYSO_KEY too. Run `sayso login`."
    make_console().print(f"Your password is changed. {told}")


@sessions.command("list")
def list_own(json: JsonOption = False) -> None:
    """List your sessions."""
    _show_sessions(None, json)


@sessions.command("end")
def end_own(
    session_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="Which session.")] = None,
    others: Annotated[bool, typer.Option("--others", help="All but this one.")] = False,
) -> None:
    """End one of your sessions, or all others."""
    if others == (session_id is not None):
        raise InvalidInput("Say which session to end: its id from `sayso sessions list`, or --others.")
    _end_sessions(None, session_id)


@people.command("list")
def list_people(json: JsonOption = False) -> None:
    """List everybody, those who were shut out included."""
    with connect() as client:
        found = client.exchange(accounts.list_reviewers()).reviewers
    if json:
        print_json(found)
        return
    table = Table(box=None, pad_edge=False)
    for column in ("name", "roles", "since", "state"):
        table.add_column(column, overflow="fold")
    for one in found:
        roles, state = ", ".join(one.roles), "active" if one.active else "deactivated"
        table.add_row(show_line(one.name), show_line(roles), f"{one.created_at:%Y-%m-%d %H:%M}", state)
    make_console().print(table)


@people.command("activate")
def activate(name: NameArgument) -> None:
    """Let a reviewer in again, with the password they had."""
    with connect() as client:
        client.exchange(accounts.activate(name))
    make_console().print(show_line(f"{name} is active and signs in anew."))


@people.command("deactivate")
def deactivate(name: NameArgument) -> None:
    """Shut a reviewer out, their open sessions included."""
    with connect() as client:
        client.exchange(accounts.deactivate(name))
    make_console().print(show_line(f"{name} is deactivated."))


@people.command("sessions")
def list_sessions(name: NameArgument, json: JsonOption = False) -> None:
    """List a reviewer's sessions."""
    _show_sessions(name, json)


@people.command("end-sessions")
def end_sessions(
    name: NameArgument,
    session_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="Which session; all without it.")] = None,
) -> None:
    """End a reviewer's sessions."""
    _end_sessions(name, session_id)


def _show_sessions(name: str | None, json: bool) -> None:
    with connect() as client:
        found = client.exchange(accounts.list_sessions(name)).sessions
    if json:
        print_json(found)
        return
    table = Table(box=None, pad_edge=False)
    for column in ("id", "opened", "ends", "address", "client"):
        table.add_column(column, overflow="fold")
    for one in found:
        own = " (this one)" if one.current else ""
        opened, ends = f"{one.opened_at:%Y-%m-%d %H:%M}{own}", f"{one.expires_at:%Y-%m-%d %H:%M}"
        table.add_row(show_line(one.id), opened, ends, show_line(one.address), show_line(one.client, width=60))
    make_console().print(table)


def _end_sessions(name: str | None, session_id: str | None) -> None:
    with connect() as client:
        if session_id is not None:
            client.exchange(accounts.end_session(name, session_id))
            ended = 1
        else:
            ended = client.exchange(accounts.end_sessions(name)).ended
    make_console().print(f"{ended} ended.")
