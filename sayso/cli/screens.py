"""Show what came from agents and models on a terminal, so that none of it can do anything to that terminal.

Every text passes `show` or `show_line`: control characters, escape sequences and what turns or hides text come out as
signs. Nothing that came from outside is ever read as markup.
"""

import json
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from sayso.client.responses import ItemView, Run, RunEvent, Suspension, UnreadableView
from sayso.clock import now_ms
from sayso.errors import TooLarge
from sayso.sentences.items import describe_resemblance
from sayso.sentences.outcomes import describe_outcome, describe_state
from sayso.sentences.times import describe_left
from sayso.text.blanks import collapse
from sayso.text.invisible import UNCHECKED

_WIDEST = 120
MOST_LINES = 1_000
"""What a terminal surely keeps for scrolling back; whatever takes more could not be read before deciding."""

_HURRY_MS = 60_000
_PIPED = 4_000
_BAD = ("failed", "call_failed", "in_doubt", "not_run")


def make_console(*, error: bool = False) -> Console:
    """Return a console that reads no markup, no emoji names and no links in what it prints."""
    console = Console(markup=False, emoji=False, highlight=False, stderr=error)
    if not console.is_terminal:
        console.width = _PIPED  # nothing that a program reads is broken into lines
    return console


def show(text: str, style: str = "") -> Text:
    """Return the whole of a text of several lines, with signs for whatever could do more than be read."""
    shown = Text(style=style)
    for piece in collapse(text, breaks=False):
        shown.append(piece.sign or piece.text, "reverse" if piece.sign else None)
    return shown


def show_line(text: str, style: str = "", width: int = _WIDEST) -> Text:
    """Return a text on one line, cut where it is too long."""
    line = Text(style=style)
    for piece in collapse(text, breaks=False):
        line.append(piece.sign or piece.text.replace("\n", " ").replace("\t", " "), "reverse" if piece.sign else None)
        if len(line) > width:
            break
    line.truncate(width, overflow="ellipsis")
    return line


def show_json(value: Any) -> Text:
    """Return JSON in lines; whatever JSON lets through that a terminal should not see has a sign."""
    return show(json.dumps(value, indent=2, ensure_ascii=False))


def show_inbox(found: list[Suspension], unreadable: list[UnreadableView]) -> RenderableType:
    """Return what waits, a row for each thing that is asked, and below it what cannot be read."""
    damaged = [show_line(f"{one.suspension_id} cannot be read: {one.reason}", "red", 500) for one in unreadable]
    if not found:
        return Group(Text("Nothing waits.", "dim"), *damaged)
    table = Table(box=None, pad_edge=False)
    for name in ("id", "item", "call", "requested by", "why", "left"):
        table.add_column(name, overflow="fold", no_wrap=name in ("id", "item", "left"))
    for one in found:
        for item in one.items:
            if item.outcome is None:
                call = show_line(f"{item.tool.name} {json.dumps(item.tool.args, ensure_ascii=False)}", width=60)
                why = show_line(item.prompt.reason or "", width=40)
                row = (show_line(one.id), show_line(item.item_id), call, show_line(one.run.agent, width=24), why)
                table.add_row(*row, show_left(item.terms.deadline_at))
    return Group(table, *damaged)


def show_suspension(found: Suspension) -> RenderableType:
    """Return all that a person needs to see before deciding."""
    head = Text.assemble(show_line(found.run.agent, "bold"), "  ", show_line(found.id, "dim"))
    about = Text.assemble("requested by ", show_line(found.run.owner), ", ", show_line(found.status))
    return Group(head, about, *_show_claims(found), *(part for item in found.items for part in _show_item(item)))


def _show_claims(found: Suspension) -> list[RenderableType]:
    """Return what the agent says of its run, marked as such."""
    claimed: list[RenderableType] = [show(found.run.claimed_title)] if found.run.claimed_title else []
    if found.run.claimed_context:
        claimed.append(show_json(found.run.claimed_context))
    return ["", Text(UNCHECKED, "yellow"), *claimed] if claimed else []


def check_readable(console: Console, found: Suspension, place: str) -> None:
    """Refuse with `TooLarge` what takes more lines than a terminal keeps: its beginning could not be read any more."""
    lines = len(console.render_lines(show_suspension(found), pad=False)) if console.is_terminal else 0
    if lines > MOST_LINES:
        raise TooLarge(
            f"This takes {lines} lines here, and a terminal may keep no more than {MOST_LINES}. Nothing was decided. "
            f"Decide on its page, {place}, or read it with `sayso show {found.id} | less` and decide with --yes."
        )


def _show_item(item: ItemView) -> list[RenderableType]:
    parts: list[RenderableType] = ["", Text.assemble(show_line(f"{item.item_id}  {item.tool.name}", "bold cyan"))]
    if item.resembles:
        parts.append(show_line(describe_resemblance(item.resembles), "bold yellow", 500))
    for words in (item.prompt.title, item.prompt.body, item.prompt.reason):
        if words:
            parts.append(show(words))
    if item.doubt is not None:
        parts.append(Text("This call was begun before: it may already have run.", "bold yellow"))
    parts.append(show_json(item.tool.args))
    if "value" in item.allowed:
        parts += _show_wanted(item)
    if item.outcome is not None:
        outcome = show_line(describe_outcome(item), "bold")
        worst = item.state if item.state != item.outcome.verdict else ""
        parts.append(Text.assemble(show_state(worst), "; ", outcome) if worst else outcome)
        if item.permit is not None and item.permit.report is not None and item.permit.report.error:
            parts.append(show(item.permit.report.error, "red"))
        parts += [show(item.outcome.message)] if item.outcome.message else []
    else:
        parts.append(
            Text.assemble("answers: ", show_line(", ".join(item.allowed)), "; ", show_left(item.terms.deadline_at))
        )
    return parts


def _show_wanted(item: ItemView) -> list[RenderableType]:
    """Say what value is asked for: into which argument it goes, and what it may be."""
    parts: list[RenderableType] = []
    if item.target_arg:
        parts.append(Text.assemble("the value goes into ", show_line(item.target_arg)))
    if item.choices is not None:
        return [*parts, "one of these:", *(show_line(json.dumps(one, ensure_ascii=False)) for one in item.choices)]
    return [*parts, *([show_json(item.response_schema)] if item.response_schema is not None else [])]


def show_runs(found: list[Run]) -> RenderableType:
    """Return runs, a row each."""
    table = Table(box=None, pad_edge=False)
    for name in ("id", "status", "agent", UNCHECKED, "started"):
        table.add_column(name, overflow="fold")
    for one in found:
        title = show_line(one.claimed_title, width=50)
        words = (show_line(one.id), show_state(one.state or one.status), show_line(one.agent))
        table.add_row(*words, title, f"{one.created_at:%Y-%m-%d %H:%M}")
    return table if found else Text("There are none.", "dim")


def show_state(state: str) -> Text:
    """Return the state of an item or a run; failed or in doubt is red."""
    return show_line(describe_state(state), "bold red" if state in _BAD else "")


def show_event(event: RunEvent) -> Text:
    """Return an event on one line."""
    data = json.dumps(event.data, ensure_ascii=False)
    place = f"{event.seq:>4}  {event.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}  "
    return Text.assemble((place, "dim"), show_line(event.type, "bold"), "  ", show_line(data))


def show_left(deadline: datetime) -> Text:
    """Return the time left, red in the last minute."""
    left_ms = round(deadline.timestamp() * 1000) - now_ms()
    return Text(describe_left(left_ms), "red" if left_ms < _HURRY_MS else "")
