"""The command that says who is asked when."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from sayso.canonical_json import parse_json
from sayso.cli.logins import connect
from sayso.cli.outputs import JsonOption, print_json, print_list
from sayso.cli.screens import format_time, make_console, show_line
from sayso.client import people as requests
from sayso.clock import now_ms
from sayso.errors import InvalidInput


def who(
    rule: Annotated[str, typer.Option(help="The rule's id.")],
    at: Annotated[str | None, typer.Option(help="A time such as 2026-12-24T18:00; now by default.")] = None,
    call: Annotated[Path | None, typer.Option(help="A JSON file with the call, such as its owner.")] = None,
    json: JsonOption = False,
) -> None:
    """Say who would be asked when under a rule, and what happens at the deadline."""
    try:
        moment = datetime.fromisoformat(at).astimezone() if at else datetime.fromtimestamp(now_ms() / 1000, UTC)
    except ValueError as error:
        raise InvalidInput(f"{(at or '')[:40]!r} is not a time. Write one such as 2026-12-24T18:00.") from error
    try:
        sample = parse_json(call.read_bytes()) if call is not None else None
    except OSError as error:
        raise InvalidInput(f"{call} cannot be read: {error.strerror}.") from error
    with connect() as client:
        forecast = client.exchange(requests.show_who(rule, moment, sample))
    if json:
        print_json(forecast)
        return
    rows = (
        (
            str(notice.step),
            notice.reviewer or "everybody",
            notice.person,
            notice.channel,
            format_time(notice.sent_at) if notice.sent_at else "-",
            notice.reason,
        )
        for notice in forecast.asked
    )
    print_list(forecast.asked, False, ("step", "reviewer", "person", "channel", "sent", "note"), rows, empty="Nobody.")
    make_console().print(show_line(f"At {format_time(forecast.deadline_at)}: {forecast.end}"))
