"""Commands for logins, passwords, sessions, reviewers, groups and keys."""

import sys
from typing import Annotated, get_args

import typer

from sayso.cli.channels import read_time
from sayso.cli.logins import Login, connect, exchange, forget_login, read_login, save_login
from sayso.cli.screens import JsonOption, format_time, make_console, print_list, show_line
from sayso.client import URL, Client, administration
from sayso.core.canonical_json import parse_json
from sayso.core.clock import new_secret
from sayso.core.records.decisions import KeyKind
from sayso.errors import CodeRequired, InvalidInput
from sayso.wire.administration import KeyView, NewKeyView

people = typer.Typer(help="Manage reviewers and their sessions. Requires an admin.", no_args_is_help=True)
sessions = typer.Typer(help="List and end your own sessions.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="The reviewer's name.")]


def login(
    url: Annotated[str, typer.Option(help="The desk's address.", envvar="SAYSO_URL")] = URL,
    name: Annotated[str | None, typer.Option(help="Your name.")] = None,
    key: Annotated[bool, typer.Option("--key", help="Save a reviewer's key instead of signing in.")] = False,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input. Requires --name.")
    ] = False,
    code: Annotated[str, typer.Option(help="The code of your authenticator app; asked for if left out.")] = "",
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
            password = password or typer.prompt("Password", hide_input=True)
            try:
                opened = client.sign_in(name, password, code)
            except CodeRequired:
                if password_stdin:
                    raise InvalidInput("This account needs a code, too. Add --code CODE.") from None
                opened = client.sign_in(name, password, typer.prompt("Code of your authenticator app"))
        saved = Login(url=client.url, key=opened.token, name=opened.name)
        if opened.password_by:
            console.print(show_line(f"{opened.password_by} set your password. Change it now: sayso password", "yellow"))
    save_login(saved)
    console.print(show_line(f"Signed in at {saved.url}{f' as {saved.name}' if saved.name else ''}."))


def logout() -> None:
    """Delete the login on this machine."""
    forget_login()
    make_console().print("Signed out on this machine.")


def _read_password(name: str | None, key: bool) -> str:
    if key or not name:
        raise InvalidInput("--password-stdin requires --name and excludes --key. Add --name NAME.")
    password = sys.stdin.read().removesuffix("\n").removesuffix("\r")
    if not password:
        raise InvalidInput("Standard input has no password. Pipe one in, or omit --password-stdin.")
    return password


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
    reviewers = exchange(administration.LIST_REVIEWERS).reviewers
    states = {True: "active", False: "deactivated"}
    rows = (
        (view.name, ", ".join(view.roles), view.manager or "", format_time(view.created_at), states[view.active])
        for view in reviewers
    )
    print_list(reviewers, json, ("name", "roles", "manager", "since", "state"), rows)


_PASSWORD_CHARS = 20
RoleOption = Annotated[list[str] | None, typer.Option("--role", help="A role of theirs; may be repeated.")]


@people.command("add")
def add(
    name: NameArgument,
    role: RoleOption = None,
    admin: Annotated[bool, typer.Option("--admin", help="Reviewer and admin.")] = False,
    auditor: Annotated[bool, typer.Option("--auditor", help="Reviewer and auditor.")] = False,
) -> None:
    """Add a person, and print their first password once. Without a role they are a reviewer."""
    password = new_secret()[:_PASSWORD_CHARS]
    marked = (*(["admin"] if admin else []), *(["auditor"] if auditor else []))
    roles = role or ["reviewer", *marked]
    added = exchange(administration.add_reviewer(name, password, roles))
    _print_password(f"{added.name} is added", password)


@people.command("roles")
def set_roles(
    name: NameArgument,
    roles: Annotated[list[str], typer.Argument(help="reviewer, rule_author, auditor, operator, admin, or your own.")],
) -> None:
    """Give a person these roles alone."""
    changed = exchange(administration.set_roles(name, roles))
    make_console().print(show_line(f"{changed.name} is {', '.join(changed.roles)}."))


@people.command("reset-password")
def reset_password(name: NameArgument) -> None:
    """Give a reviewer a new password, and print it once. Their sessions end, and they get a message."""
    password = new_secret()[:_PASSWORD_CHARS]
    exchange(administration.set_password(name, password))
    _print_password(f"{name} has a new password", password)


def _print_password(fact: str, password: str) -> None:
    console = make_console()
    console.print(show_line(f"{fact}. Until they change it, decisions with it count as yours, too. It is shown once:"))
    console.print(show_line(password, "bold"))


@people.command("activate")
def activate(name: NameArgument) -> None:
    """Reactivate a reviewer. Their password stays the same."""
    exchange(administration.set_active(name, True))
    make_console().print(show_line(f"{name} is active and can sign in."))


@people.command("deactivate")
def deactivate(name: NameArgument) -> None:
    """Deactivate a reviewer and end their sessions."""
    exchange(administration.set_active(name, False))
    make_console().print(show_line(f"{name} is deactivated."))


@people.command("manager")
def set_manager(
    name: NameArgument,
    manager: Annotated[str | None, typer.Argument(metavar="[MANAGER]", help="The manager; nobody by default.")] = None,
) -> None:
    """Set who manages a person. Rules may ask the manager of the person an agent acts for."""
    changed = exchange(administration.set_manager(name, manager))
    make_console().print(show_line(f"{changed.name} is managed by {changed.manager or 'nobody'}."))


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
    sessions = exchange(administration.list_sessions(name)).sessions
    marks = {True: " (this one)", False: ""}
    rows = (
        (
            *(session.id, format_time(session.opened_at) + marks[session.current]),
            *(format_time(session.expires_at), session.address, session.client),
        )
        for session in sessions
    )
    print_list(sessions, json, ("id", "opened", "expires", "address", "client"), rows)


def _end_sessions(name: str | None, session_id: str | None) -> None:
    with connect() as client:
        if session_id is not None:
            client.exchange(administration.end_session(name, session_id))
            count = 1
        else:
            count = client.exchange(administration.end_sessions(name)).ended
    make_console().print(f"{count} ended.")


keys = typer.Typer(help="Manage keys. Requires an admin; a reviewer's key is made by its person.", no_args_is_help=True)

KINDS = get_args(KeyKind)


@keys.command("create")
def create(
    name: Annotated[str, typer.Argument(help="The name of the agent or reviewer.")],
    kind: Annotated[str, typer.Option(help="agent, reviewer, provisioner or directory.")] = "agent",
    context: Annotated[str, typer.Option(help="Facts about the holder for rules, as a JSON object.")] = "{}",
    owner: Annotated[str | None, typer.Option(help="The person who owns an agent's key.")] = None,
    scope: Annotated[list[str] | None, typer.Option(help="One of ask, run, read, webhooks and monitor.")] = None,
    agent: Annotated[list[str] | None, typer.Option(help="An agent as which it asks; without it, all.")] = None,
    network: Annotated[list[str] | None, typer.Option(help="A range of its addresses, such as 10.0.0.0/8.")] = None,
    expires: Annotated[str | None, typer.Option(help="The date or time at which it ends, such as 2027-01-31.")] = None,
) -> None:
    """Create a key. It is printed only here, alone on standard output."""
    if kind not in KINDS:
        raise InvalidInput(f"{kind!r} is not a kind of key. Choose {', '.join(KINDS)}.")
    facts = parse_json(context)
    if not isinstance(facts, dict):
        raise InvalidInput(f'The context {context!r} is not a JSON object. Write it as \'{{"env": "prod"}}\'.')
    with connect() as client:
        made = client.create_key(
            name,
            kind,
            context=facts,
            owner=owner,
            scopes=scope or (),
            agents=agent or (),
            networks=network or (),
            expires_at=read_time(expires, "--expires") if expires is not None else None,
        )
    _print_new(made)


@keys.command("list")
def list_all(json: JsonOption = False) -> None:
    """List all keys, including revoked ones."""
    with connect() as client:
        listed = client.keys().keys
    rows = (
        (
            *(key.id, key.prefix, key.name, key.kind, key.owner or "", key.created_by, format_time(key.created_at)),
            *(format_time(key.last_used_at) if key.last_used_at else "never", _describe_state(key)),
        )
        for key in listed
    )
    print_list(
        listed, json, ("id", "begins", "name", "kind", "owner", "made by", "created", "last used", "state"), rows
    )


@keys.command("rotate")
def rotate(
    key_id: str, overlap_s: Annotated[int, typer.Option(help="Seconds for which the old key stays valid.")] = 3600
) -> None:
    """Create a successor of a key. The old key expires after the overlap."""
    with connect() as client:
        _print_new(client.rotate_key(key_id, overlap_s))


@keys.command("revoke")
def revoke(
    key_id: Annotated[str, typer.Argument(help="Its id, or the secret's first characters as `keys list` shows them.")],
) -> None:
    """Revoke a key. It fails everywhere within a second. A leaked one is named by how it begins."""
    with connect() as client:
        prefixes = [key.prefix for key in client.keys().keys if key.prefix and key_id.startswith(key.prefix)]
        revoked = client.revoke_key(prefixes[0] if prefixes else key_id)  # the rest of a secret is sent nowhere
    make_console().print(show_line(f"{revoked.id} of {revoked.name} is revoked."))


def _print_new(key: NewKeyView) -> None:
    make_console(error=True).print(show_line(f"{key.id}: a key of the {key.kind} {key.name}, shown only once."))
    secret = key.key or "This request was sent before, so its key is not shown again."
    make_console().print(show_line(secret, width=400), soft_wrap=True)


def _describe_state(key: KeyView) -> str:
    if key.revoked_at is not None:
        return f"revoked {format_time(key.revoked_at)}"
    if not key.listed:
        return "NOT MADE BY SAYSO: revoke it"
    ends = [end for end in (key.ends_at, key.expires_at) if end is not None]
    narrowed = ", ".join((*key.scopes, *key.agents, *key.networks))
    return (f"expires {format_time(min(ends))}" if ends else "valid") + (f", only {narrowed}" if narrowed else "")


groups = typer.Typer(help="Manage groups, which rules name as group:NAME.", no_args_is_help=True)

GroupArgument = Annotated[str, typer.Argument(help="The group's name.")]
PeopleArgument = Annotated[list[str], typer.Argument(help="Reviewers' names.")]
EditorOption = Annotated[bool, typer.Option("--editor", help="Change the editors, not the members.")]


@groups.command("list")
def list_groups(json: JsonOption = False) -> None:
    """List all groups."""
    listed = exchange(administration.LIST_GROUPS).groups
    rows = ((group.name, ", ".join(group.members), ", ".join(group.editors)) for group in listed)
    print_list(listed, json, ("name", "members", "editors"), rows, empty="There are no groups.")


@groups.command("create")
def create_group(
    name: GroupArgument,
    members: Annotated[list[str] | None, typer.Argument(help="Its members.")] = None,
    editor: Annotated[list[str] | None, typer.Option("--editor", help="A person who may change the members.")] = None,
) -> None:
    """Create a group. Requires an admin."""
    made = exchange(administration.create_group(name, members or [], editor or []))
    make_console().print(show_line(f"The group {made.name} has {_count(len(made.members))}."))


@groups.command("add")
def add_members(name: GroupArgument, people: PeopleArgument, editor: EditorOption = False) -> None:
    """Add members to a group, or editors with --editor."""
    _change_group(name, set(people), set(), editor)


@groups.command("remove")
def remove_members(name: GroupArgument, people: PeopleArgument, editor: EditorOption = False) -> None:
    """Remove members from a group, or editors with --editor."""
    _change_group(name, set(), set(people), editor)


@groups.command("delete")
def delete_group(name: GroupArgument) -> None:
    """Delete a group. Requires an admin."""
    exchange(administration.delete_group(name))
    make_console().print(show_line(f"The group {name} is deleted."))


def _change_group(name: str, added: set[str], removed: set[str], editor: bool) -> None:
    with connect() as client:
        group = client.exchange(administration.find_group(name))
        changed = sorted({*(group.editors if editor else group.members), *added} - removed)
        members, editors = (group.members, changed) if editor else (changed, group.editors)
        saved = client.exchange(administration.change_group(group, members, editors))
    make_console().print(show_line(f"The group {saved.name} has {_count(len(saved.members))}."))


def _count(members: int) -> str:
    return "1 member" if members == 1 else f"{members} members"
