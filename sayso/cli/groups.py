"""Commands for groups of reviewers."""

from typing import Annotated

import typer

from sayso.cli.logins import connect, exchange
from sayso.cli.screens import JsonOption, make_console, print_list, show_line
from sayso.client import people as requests

groups = typer.Typer(help="Manage groups, which rules name as group:NAME.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="The group's name.")]
PeopleArgument = Annotated[list[str], typer.Argument(help="Reviewers' names.")]
EditorOption = Annotated[bool, typer.Option("--editor", help="Change the editors, not the members.")]


@groups.command("list")
def list_groups(json: JsonOption = False) -> None:
    """List all groups."""
    listed = exchange(requests.LIST_GROUPS).groups
    rows = ((group.name, ", ".join(group.members), ", ".join(group.editors)) for group in listed)
    print_list(listed, json, ("name", "members", "editors"), rows, empty="There are no groups.")


@groups.command("create")
def create(
    name: NameArgument,
    members: Annotated[list[str] | None, typer.Argument(help="Its members.")] = None,
    editor: Annotated[list[str] | None, typer.Option("--editor", help="A person who may change the members.")] = None,
) -> None:
    """Create a group. Requires an admin."""
    made = exchange(requests.create_group(name, members or [], editor or []))
    make_console().print(show_line(f"The group {made.name} has {_count(len(made.members))}."))


@groups.command("add")
def add(name: NameArgument, people: PeopleArgument, editor: EditorOption = False) -> None:
    """Add members to a group, or editors with --editor."""
    _change(name, set(people), set(), editor)


@groups.command("remove")
def remove(name: NameArgument, people: PeopleArgument, editor: EditorOption = False) -> None:
    """Remove members from a group, or editors with --editor."""
    _change(name, set(), set(people), editor)


@groups.command("delete")
def delete(name: NameArgument) -> None:
    """Delete a group. Requires an admin."""
    exchange(requests.delete_group(name))
    make_console().print(show_line(f"The group {name} is deleted."))


def _change(name: str, added: set[str], removed: set[str], editor: bool) -> None:
    with connect() as client:
        group = client.exchange(requests.find_group(name))
        changed = sorted({*(group.editors if editor else group.members), *added} - removed)
        members, editors = (group.members, changed) if editor else (changed, group.editors)
        saved = client.exchange(requests.change_group(group, members, editors))
    make_console().print(show_line(f"The group {saved.name} has {_count(len(saved.members))}."))


def _count(members: int) -> str:
    return "1 member" if members == 1 else f"{members} members"
