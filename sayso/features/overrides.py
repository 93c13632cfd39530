"""The command for overrides."""

import sys
from typing import Annotated

import typer

from sayso.cli.logins import exchange
from sayso.client.evidence import list_overrides


def overrides(
    day: Annotated[str, typer.Argument(help="A day in UTC, such as 2026-10-31; without it, today.")] = "",
) -> None:
    """Print what people edited and denied on a day, as JSON lines for evaluations."""
    for line in exchange(list_overrides(day)).lines:
        sys.stdout.write(f"{line.model_dump_json()}\n")
