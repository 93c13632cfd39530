"""Terminal output that text of agents and models cannot manipulate.

All text passes `show` or `show_line`, which replace unsafe characters with visible signs. None is read as markup.
"""

import json
import os
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from sayso.client.responses import Run, RunEvent
from sayso.clock import now_ms
from sayso.sentences.outcomes import describe_state
from sayso.sentences.times import describe_left
from sayso.text.blanks import collapse
from sayso.text.invisible import UNCHECKED, write_piece

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


def show_runs(runs: list[Run]) -> RenderableType:
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


def show_event(event: RunEvent) -> Text:
    """Return an event on one line."""
    data = json.dumps(event.data, ensure_ascii=False)
    prefix = f"{event.seq:>4}  {event.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}  "
    erased = f"  (contents erased by {event.erased_by})" if event.erased_by is not None else ""
    return Text.assemble((prefix, "dim"), show_line(event.type, "bold"), "  ", show_line(data), erased)


def show_erasure(erasure: dict[str, Any]) -> Text:
    """Return who erased the contents of a run, and why."""
    return show_line(f"The contents were erased by {erasure['by']['id']}: {erasure['reason']}", "bold", 500)


def show_due(deadline: datetime) -> Text:
    """Return the deadline as a time of this machine's zone, and the time left; red in the last minute."""
    left_ms = to_ms(deadline) - now_ms()
    due, today = deadline.astimezone(), datetime.fromtimestamp(now_ms() / 1000, UTC).astimezone()
    clock = f"{due:%H:%M}" if due.date() == today.date() else f"{due:%a %d %b %H:%M}"
    return Text(f"{clock}, {describe_left(left_ms)}", "red" if left_ms < _HURRY_MS else "")


def to_ms(at: datetime) -> int:
    """Return a moment in milliseconds."""
    return round(at.timestamp() * 1000)
