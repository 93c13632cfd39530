"""Commands that report decisions which no person made."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from sayso.cli.logins import connect
from sayso.cli.outputs import JsonOption, print_list
from sayso.cli.screens import format_time
from sayso.client import Client
from sayso.client import channels as requests
from sayso.client.channels import HeadlessItem
from sayso.errors import InvalidInput

_PAGE = 200

reports = typer.Typer(help="Report decisions.", no_args_is_help=True)


@reports.callback()
def _keep_group() -> None:
    """Keep the name `headless`: typer drops the name of a group's only command."""


@reports.command("headless")
def headless(
    since: Annotated[str | None, typer.Option("--from", help="Since this date or time, such as 2026-11-01.")] = None,
    until: Annotated[str | None, typer.Option("--to", help="Before this date or time.")] = None,
    json: JsonOption = False,
) -> None:
    """List the items that a fallback decided at once, without notifying anybody."""
    with connect() as client:
        found = _list_items(client, _read_time(since, "--from"), _read_time(until, "--to"))
    rows = (
        (format_time(one.at), one.verdict, one.tool, one.rule_id or "default", one.agent, one.owner, one.suspension_id)
        for one in found
    )
    columns = ("at (UTC)", "verdict", "tool", "rule", "agent", "requested by", "suspension")
    print_list(found, json, columns, rows, empty="No item was decided without notifying anybody.")


def _list_items(client: Client, since: str | None, until: str | None) -> list[HeadlessItem]:
    found: list[HeadlessItem] = []
    skip: int | None = 0
    while skip is not None:
        page = client.exchange(requests.report_headless(since, until, skip, _PAGE))
        found += page.items
        skip = page.next_skip
    return found


def _read_time(text: str | None, option: str) -> str | None:
    """Return a date or time in UTC as RFC 3339."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(f"{option} is not a time: {text!r}. Write it as 2026-11-01 or 2026-11-01T12:00Z.") from error
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC).isoformat().replace("+00:00", "Z")
