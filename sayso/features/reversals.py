"""The command that lists calls which ran under a veto, and undoes one."""

import sys
from typing import Annotated

import typer

from sayso.cli.logins import connect
from sayso.cli.reviews import CodeOption, YesOption, pick_item
from sayso.cli.screens import JsonOption, format_time, make_console, print_list, show_line
from sayso.cli.suspensions import check_readable, show_suspension
from sayso.client import Client
from sayso.errors import Conflict, InvalidInput, NotFound
from sayso.wire.items import ItemView
from sayso.wire.suspensions import SuspensionView

_PAGE = 200


def undo(
    id_: Annotated[str | None, typer.Argument(metavar="[ID]", help="Of an offer, or a unique part of its id.")] = None,
    code: CodeOption = None,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """List the calls that can still be undone, or undo one."""
    with connect() as client:
        if id_ is None:
            _list_offers(client, json)
            return
        suspension = _find_offer(client, id_)
        item, console = pick_item(suspension, None), make_console()
        if not yes:
            if not sys.stdin.isatty():
                raise InvalidInput("Standard input is not a terminal. Give --yes to undo without confirmation.")
            check_readable(console, suspension, f"{client.url}/items/{suspension.id}/{item.item_id}")
            console.print(show_suspension(suspension))
            typer.confirm("Undo it?", abort=True)
        if item.terms.step_up == "code" and code is None and not yes:
            code = typer.prompt("Code of your authenticator app").replace(" ", "")
        given = {"code": code} if code is not None else {}
        client.decide(suspension.id, item, "approve", key=None, **given)
    console.print(show_line(f"A worker undoes it. `sayso show {suspension.id}` has how that ends.", "bold"))


def _list_offers(client: Client, json: bool) -> None:
    offers = _read_offers(client)
    rows = (
        (offer.id, _name(item), offer.run.agent, format_time(item.terms.deadline_at), item.reverses.run_id)
        for offer in offers
        for item in offer.items
        if item.reverses is not None
    )
    print_list(offers, json, ("id", "tool", "agent", "until", "run"), rows, empty="No call can be undone.")


def _read_offers(client: Client) -> list[SuspensionView]:
    offers: list[SuspensionView] = []
    skip: int | None = 0
    while skip is not None:
        page = client.waiting("undoable", skip=skip, limit=_PAGE)
        offers += page.suspensions
        skip = page.next_skip
    return offers


def _find_offer(client: Client, id_: str) -> SuspensionView:
    if id_.startswith("sus_") and len(id_) >= 36:
        suspension = client.find(id_)
        if all(item.reverses is None for item in suspension.items):
            raise Conflict(f"{id_} offers to undo no call. `sayso undo` lists the offers.")
        return suspension
    matches = [offer for offer in _read_offers(client) if id_ in offer.id]
    if len(matches) != 1:
        raise NotFound(f"{len(matches) or 'No'} offers match {id_!r}. Give more of an id from `sayso undo`.")
    return matches[0]


def _name(item: ItemView) -> str:
    return item.reverses.tool if item.reverses is not None else item.tool.name
