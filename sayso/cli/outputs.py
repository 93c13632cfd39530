"""JSON output and tables. JSON escapes everything but ASCII, so it is safe on a terminal, too."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from rich.table import Table

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def print_json(found: BaseModel | Sequence[BaseModel], *, on_one_line: bool = False) -> None:
    """Print one object, or a list of objects."""
    value: Any = _dump(found) if isinstance(found, BaseModel) else list(map(_dump, found))
    typer.echo(json.dumps(value, indent=None if on_one_line else 2))


def make_table(*columns: str) -> Table:
    """Return a table without borders."""
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def format_time(at: datetime) -> str:
    """Return a time to the minute."""
    return f"{at:%Y-%m-%d %H:%M}"


def _dump(model: BaseModel) -> Any:
    return model.model_dump(mode="json")
