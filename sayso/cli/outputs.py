"""JSON output and tables. JSON escapes everything but ASCII, so it is safe on a terminal, too."""

import json
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer
from pydantic import BaseModel

from sayso.canonical_json import JsonObject
from sayso.cli.screens import WIDEST, make_console, make_table, show_line

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def print_json(models: BaseModel | Sequence[BaseModel], *, on_one_line: bool = False) -> None:
    """Print one object, or a list of objects."""
    plain = _write(models) if isinstance(models, BaseModel) else [_write(model) for model in models]
    typer.echo(json.dumps(plain, indent=None if on_one_line else 2))


def _write(model: BaseModel) -> JsonObject:
    # before pydantic 2.14, to_jsonable_python fails on a model that was built as a part of another
    return model.model_dump(mode="json")


def print_list(
    models: Sequence[BaseModel],
    json: bool,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    empty: str = "",
    width: int = WIDEST,
) -> None:
    """Print models as JSON, or their rows as a table with cells of at most `width` characters."""
    if json:
        print_json(models)
    elif not models and empty:
        make_console().print(empty, style="dim")
    else:
        table = make_table(*columns)
        for row in rows:
            table.add_row(*(show_line(cell, width=width) for cell in row))
        make_console().print(table)
