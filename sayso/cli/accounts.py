"""Commands for passwords, sessions and reviewers."""

from typing import Annotated

import typer

from sayso.cli.logins import Login, connect, read_login, save_login
from sayso.cli.outputs import JsonOption, format_time, make_table, print_json
from sayso.cli.screens import make_console, show_line
from sayso.client import administration
from sayso.errors import InvalidInput

people = typer.Typer(help="Manage reviewers and their sessions. Requires an admin.", no_args_is_help=True)
sessions = typer.Typer(help="List and end your own sessions.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="The reviewer's name.")]


def change_password() -> None:
    """Change your password. All your other sessions end."""
    current = typer.prompt("Current password", hide_input=True)
    new = typer.prompt("New password", hide_input=True, confirmation_prompt=True)
    with connect() as client:
        opened = client.exchange(administration.change_password(current, new))
        before, kept = client.key, read_login()
    if kept is not None and kept.key == before:
        save_login(Login(url=kept.url, key=opened.token, name=opened.name))
        note = "All other sessions have ended."
    else:
        note = "All sessions have ended, including the one in SAYSO_KEY. Run `sayso login`."
    make_console().print(f"Your password has been changed. {note}")


@sessions.command("list")
def list_own(json: JsonOption = False) -> None:
    """List your sessions."""
    _show_sessions(None, json)


@sessions.command("end")
def end_own(
    session_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="The session's id.")] = None,
    others: Annotated[bool, typer.Option("--others", help="End all sessions except this one.")] = False,
) -> None:
    """End one of your sessions, or all others with --others."""
    if others == (session_id is not None):
        raise InvalidInput("Name one session by its id from `sayso sessions list`, or give --others.")
    _end_sessions(None, session_id)


@people.command("list")
def list_people(json: JsonOption = False) -> None:
    """List all reviewers, including deactivated ones."""
    with connect() as client:
        found = client.exchange(administration.list_reviewers()).reviewers
    if json:
        print_json(found)
        return
    table = make_table("name", "roles", "since", "state")
    for reviewer in found:
        state = "active" if reviewer.active else "deactivated"
        roles = show_line(", ".join(reviewer.roles))
        table.add_row(show_line(reviewer.name), roles, format_time(reviewer.created_at), state)
    make_console().print(table)


@people.command("activate")
def activate(name: NameArgument) -> None:
    """Reactivate a reviewer. Their password stays the same."""
    with connect() as client:
        client.exchange(administration.activate(name))
    make_console().print(show_line(f"{name} is active and can sign in."))


@people.command("deactivate")
def deactivate(name: NameArgument) -> None:
    """Deactivate a reviewer and end their sessions."""
    with connect() as client:
        client.exchange(administration.deactivate(name))
    make_console().print(show_line(f"{name} is deactivated."))


@people.command("sessions")
def list_sessions(name: NameArgument, json: JsonOption = False) -> None:
    """List a reviewer's sessions."""
    _show_sessions(name, json)


@people.command("end-sessions")
def end_sessions(
    name: NameArgument,
    session_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="The session's id; all by default.")] = None,
) -> None:
    """End one or all sessions of a reviewer."""
    _end_sessions(name, session_id)


def _show_sessions(name: str | None, json: bool) -> None:
    with connect() as client:
        found = client.exchange(administration.list_sessions(name)).sessions
    if json:
        print_json(found)
        return
    table = make_table("id", "opened", "expires", "address", "client")
    for session in found:
        opened = format_time(session.opened_at) + (" (this one)" if session.current else "")
        address, client_name = show_line(session.address), show_line(session.client, width=60)
        table.add_row(show_line(session.id), opened, format_time(session.expires_at), address, client_name)
    make_console().print(table)


def _end_sessions(name: str | None, session_id: str | None) -> None:
    with connect() as client:
        if session_id is not None:
            client.exchange(administration.end_session(name, session_id))
            count = 1
        else:
            count = client.exchange(administration.end_sessions(name)).ended
    make_console().print(f"{count} ended.")
