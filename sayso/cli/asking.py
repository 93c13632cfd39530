"""Commands that ask others about an item: its requester, or somebody else to decide it."""

from typing import Annotated

import typer

from sayso.cli.logins import connect
from sayso.cli.reviews import IdArgument, ItemOption, find_suspension, pick
from sayso.cli.screens import make_console, show_line
from sayso.core.sentences import name_reviewers
from sayso.errors import NotFound


def forward(
    id_: IdArgument,
    to: Annotated[str, typer.Argument(help="A reviewer, or a group as group:NAME.")],
    note: Annotated[str, typer.Option(help="Why; the agent does not see it.")] = "",
    item: ItemOption = None,
) -> None:
    """Ask another reviewer or a group to decide an item."""
    with pick(id_, item) as (client, suspension, picked):
        client.forward(suspension.id, picked, to, note)
    asked = name_reviewers([to])
    make_console().print(show_line(f"{picked.tool.name} is forwarded to {asked}. You may still decide it."))


def ask(id_: IdArgument, text: Annotated[str, typer.Argument(help="The question.")], item: ItemOption = None) -> None:
    """Put a question about an item to its requester."""
    with pick(id_, item) as (client, suspension, picked):
        client.ask_requester(suspension.id, picked.item_id, text)
    make_console().print(show_line(f"{suspension.run.owner} is asked. The answer appears on the item."))


def reply(id_: IdArgument, text: Annotated[str, typer.Argument(help="The answer.")]) -> None:
    """Answer the oldest open question about a suspension, as the owner of its run."""
    with connect() as client:
        suspension = find_suspension(client, id_)
        waiting = client.inquiries(suspension.id).inquiries
        if not waiting:
            raise NotFound(f"No question about {suspension.id} waits for an answer.")
        client.answer_inquiry(suspension.id, waiting[0].item_id, waiting[0].id, text)
    make_console().print(show_line(f"{waiting[0].by.id} asked: {waiting[0].text}"))
    make_console().print(show_line("Your answer stands on the item."))
