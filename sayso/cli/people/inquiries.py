"""Commands that claim items, comment on them, and ask and answer about them."""

from collections.abc import Sequence
from typing import Annotated

import typer

from sayso.cli.logins import connect
from sayso.cli.reviews import ItemOption, find_suspension, pick_item
from sayso.cli.screens import format_time, make_console, show_line
from sayso.cli.suspensions import show_barred
from sayso.client.discussions import CommentView
from sayso.errors import NotFound

_Id = Annotated[str, typer.Argument(metavar="ID", help="An id from `sayso inbox`, or a unique part of a longer one.")]


def claim(id_: _Id, item: ItemOption = None) -> None:
    """Tell the other reviewers for 15 minutes that you handle an item."""
    with connect() as client:
        suspension = find_suspension(client, id_)
        picked = pick_item(suspension, item)
        client.claim(suspension.id, picked.item_id)
    make_console().print(show_line(f"You claimed {picked.tool.name}. Others may still decide it."))


def release(id_: _Id, item: ItemOption = None) -> None:
    """Release your claim of an item."""
    with connect() as client:
        suspension = find_suspension(client, id_)
        picked = pick_item(suspension, item)
        client.release_claim(suspension.id, picked.item_id)
    make_console().print(show_line(f"{picked.tool.name} is released."))


def comment(
    id_: _Id,
    text: Annotated[str, typer.Argument(help="The comment. The agent cannot read it.")],
    item: ItemOption = None,
) -> None:
    """Comment on an item, for the other reviewers. A decided suspension needs its whole id and --item."""
    with connect() as client:
        suspension = find_suspension(client, id_)
        picked = pick_item(suspension, item)
        comments = client.comment(suspension.id, picked.item_id, text).comments
    _show_comments(comments)


def list_comments(id_: _Id) -> None:
    """Show the comments on all items of a suspension's run."""
    with connect() as client:
        comments = client.comments(find_suspension(client, id_).run.id).comments
    _show_comments(comments)


def _show_comments(comments: Sequence[CommentView]) -> None:
    console = make_console()
    for comment in comments:
        console.print(show_line(f"{comment.author} on {comment.item_id}, {format_time(comment.at)}:"))
        console.print(show_barred(comment.text))
    if not comments:
        console.print("No comments.")


def ask(id_: _Id, text: Annotated[str, typer.Argument(help="The question.")], item: ItemOption = None) -> None:
    """Put a question about an item to its requester."""
    with connect() as client:
        suspension = find_suspension(client, id_)
        picked = pick_item(suspension, item)
        client.ask_requester(suspension.id, picked.item_id, text)
    make_console().print(show_line(f"{suspension.run.owner} is asked. The answer appears on the item."))


def reply(id_: _Id, text: Annotated[str, typer.Argument(help="The answer.")]) -> None:
    """Answer the oldest open question about a suspension, as the owner of its run."""
    with connect() as client:
        suspension = find_suspension(client, id_)
        waiting = client.inquiries(suspension.id).inquiries
        if not waiting:
            raise NotFound(f"No question about {suspension.id} waits for an answer.")
        client.answer_inquiry(suspension.id, waiting[0].item_id, waiting[0].id, text)
    make_console().print(show_line(f"{waiting[0].by.id} asked: {waiting[0].text}"))
    make_console().print(show_line("Your answer stands on the item."))
