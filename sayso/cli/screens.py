"""Output for terminals: texts, tables and JSON.

All text passes `show` or `show_line`, which replace unsafe characters with visible signs, and none is read as markup.
JSON escapes everything but ASCII.
"""

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import now_ms
from sayso.core.sentences.deadlines import describe_left
from sayso.core.sentences.outcomes import describe_state
from sayso.core.text.invisible import UNCHECKED, write_piece
from sayso.core.text.summaries import collapse
from sayso.wire.suspensions import ErasureView, EventView, RunView

WIDEST = 120
_HURRY_MS = 60_000
_PIPED = 4_000
_ONE_LINE = str.maketrans("\n\t", "  ")
_BAD = ("failed", "call_failed", "in_doubt", "not_run")


def make_console(*, error: bool = False) -> Console:
    """Return a console that interprets no markup, emoji names or links."""
    console = Console(markup=False, emoji=False, highlight=False, stderr=error)
    if not console.is_terminal:
        console.width = _PIPED  # programs read unbroken lines
    return console


def print_paged(console: Console, *parts: RenderableType) -> None:
    """Print to a pager what is longer than the terminal, and to anything else as it is."""
    longer = console.is_terminal and len(console.render_lines(Group(*parts), pad=False)) >= console.height
    os.environ.setdefault("LESS", "-R")  # else less shows the colours as codes
    with console.pager(styles=True) if longer else nullcontext():
        console.print(*parts, sep="\n")


def show(text: str, style: str = "") -> Text:
    """Return a text of several lines, with signs for unsafe characters."""
    shown = Text(style=style)
    for piece in collapse(text, breaks=False):
        shown.append(write_piece(piece), "reverse" if piece.sign else None)
    return shown


def show_line(text: str, style: str = "", width: int = WIDEST) -> Text:
    """Return a text on one line, truncated to `width`."""
    line = Text(style=style)
    for piece in collapse(text, breaks=False):
        line.append(write_piece(piece).translate(_ONE_LINE), "reverse" if piece.sign else None)
        if len(line) > width:
            break
    line.truncate(width, overflow="ellipsis")
    return line


def show_json(value: Any) -> Text:
    """Return indented JSON, with signs for unsafe characters."""
    return show(json.dumps(value, indent=2, ensure_ascii=False))


def make_table(*columns: str) -> Table:
    """Return a table without borders."""
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def format_time(at: datetime) -> str:
    """Return a time to the minute."""
    return f"{at:%Y-%m-%d %H:%M}"


def show_runs(runs: list[RunView]) -> RenderableType:
    """Return a table of runs."""
    table = make_table("id", "status", "agent", UNCHECKED, "started")
    for run in runs:
        title = show_line(run.claimed_title, width=50)
        row = (show_line(run.id), show_state(run.state or run.status), show_line(run.agent))
        table.add_row(*row, title, format_time(run.created_at))
    return table if runs else Text("No runs.", "dim")


def show_state(state: str) -> Text:
    """Return the state of an item or a run; failed or in doubt is red."""
    return show_line(describe_state(state), "bold red" if state in _BAD else "")


def show_event(event: EventView) -> Text:
    """Return an event on one line."""
    data = json.dumps(event.data, ensure_ascii=False)
    prefix = f"{event.seq:>4}  {event.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}  "
    erased = f"  (contents erased by {event.erased_by})" if event.erased_by is not None else ""
    return Text.assemble((prefix, "dim"), show_line(event.type, "bold"), "  ", show_line(data), erased)


def show_erasure(erasure: ErasureView) -> Text:
    """Return who erased the contents of a run, and why."""
    return show_line(f"The contents were erased by {erasure.by.id}: {erasure.reason}", "bold", 500)


def show_due(deadline: datetime) -> Text:
    """Return the deadline as a time of this machine's zone, and the time left; red in the last minute."""
    left_ms = to_ms(deadline) - now_ms()
    due, today = deadline.astimezone(), datetime.fromtimestamp(now_ms() / 1000, UTC).astimezone()
    clock = f"{due:%H:%M}" if due.date() == today.date() else f"{due:%a %d %b %H:%M}"
    return Text(f"{clock}, {describe_left(left_ms)}", "red" if left_ms < _HURRY_MS else "")


def to_ms(at: datetime) -> int:
    """Return a moment in milliseconds."""
    return round(at.timestamp() * 1000)


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def print_json(models: BaseModel | Sequence[BaseModel], *, on_one_line: bool = False) -> None:
    """Print one object, or a list of objects."""
    plain = _write(models) if isinstance(models, BaseModel) else [_write(model) for model in models]
    typer.echo(json.dumps(plain, indent=None if on_one_line else 2))


def _write(model: BaseModel) -> JsonObject:
    # before pydantic 2.14, to_jsonable_python fails on a model that was built as a part of another
    return model.model_dump(mode="json", warnings=False)  # a newer desk may send values that no enumeration has


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
