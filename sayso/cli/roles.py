"""Commands for roles and emergency rights: list and make roles, and begin, list and end emergencies."""

from typing import Annotated

import typer

from sayso.cli.logins import exchange
from sayso.cli.screens import JsonOption, format_time, make_console, print_list, show_line
from sayso.client import administration
from sayso.wire.people import RoleView

roles = typer.Typer(help="Manage roles: lists of permissions.", no_args_is_help=True)
emergencies = typer.Typer(help="Take emergency rights for an hour, list and end them.", no_args_is_help=True)

RoleArgument = Annotated[str, typer.Argument(help="The role's name.")]


@roles.command("list")
def list_roles(json: JsonOption = False) -> None:
    """List the built-in roles and those that admins made."""
    listed = exchange(administration.LIST_ROLES).roles
    rows = (
        (role.name, "built in" if role.built_in else "", ", ".join(role.permissions), _describe_limit(role))
        for role in listed
    )
    print_list(listed, json, ("name", "", "permissions", "decides only"), rows)


def _describe_limit(role: RoleView) -> str:
    groups = (f"group:{group}" for group in role.groups)
    return ", ".join((*role.tools, *role.agents, *groups))


@roles.command("save")
def save_role(
    name: RoleArgument,
    permissions: Annotated[list[str], typer.Argument(help="What it lets a person do, such as read_items decide.")],
    tool: Annotated[list[str] | None, typer.Option("--tool", help="Decide only these tools, such as refund*.")] = None,
    agent: Annotated[list[str] | None, typer.Option("--agent", help="Decide only calls of these agents.")] = None,
    group: Annotated[list[str] | None, typer.Option("--group", help="Decide only what these groups are asked.")] = None,
) -> None:
    """Create or change a role. It may do no more than you."""
    wanted = {"permissions": permissions, "tools": tool or [], "agents": agent or [], "groups": group or []}
    saved = exchange(administration.save_role(name, wanted))
    make_console().print(show_line(f"The role {saved.name} is saved: {', '.join(saved.permissions)}."))


@roles.command("delete")
def delete_role(name: RoleArgument) -> None:
    """Delete a role that nobody has."""
    exchange(administration.delete_role(name))
    make_console().print(show_line(f"The role {name} is deleted."))


@emergencies.command("begin")
def begin_emergency(reason: Annotated[str, typer.Argument(help="Why, in a sentence; everybody sees it.")]) -> None:
    """Take emergency rights for an hour. Others are informed at once."""
    begun = exchange(administration.break_glass(reason))
    until, informed = format_time(begun.until), ", ".join(begun.informed)
    make_console().print(show_line(f"You have emergency rights until {until}. Informed: {informed}."))


@emergencies.command("list")
def list_emergencies(json: JsonOption = False) -> None:
    """List the emergency rights that last."""
    listed = exchange(administration.LIST_EMERGENCIES).emergencies
    rows = (
        (emergency.person, format_time(emergency.until), emergency.reason, ", ".join(emergency.informed))
        for emergency in listed
    )
    print_list(listed, json, ("person", "until", "reason", "informed"), rows)


@emergencies.command("end")
def end_emergency(
    name: Annotated[str | None, typer.Argument(help="Whose; your own if left out. Requires an admin.")] = None,
) -> None:
    """End emergency rights before their hour is over."""
    exchange(administration.END_OWN_EMERGENCY if name is None else administration.end_emergency(name))
    make_console().print(show_line(f"The emergency rights{f' of {name}' if name else ''} have ended."))
