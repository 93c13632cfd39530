"""Print what a command read as JSON, for programs. Everything but ASCII is escaped, so a terminal is safe too."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from pydantic import BaseModel

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def print_json(found: BaseModel | Sequence[BaseModel], *, on_one_line: bool = False) -> None:
    """Print one object, or a list of objects."""
    value: Any = _dump(found) if isinstance(found, BaseModel) else list(map(_dump, found))
    typer.echo(json.dumps(value, indent=None if on_one_line else 2))


def _dump(one: BaseModel) -> Any:
    return one.model_dump(mode="json")
