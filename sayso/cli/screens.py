"""Terminal output that text of agents and models cannot manipulate.

All text passes `show` or `show_line`, which replace unsafe characters with visible signs. None is read as markup.
"""

import json
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from sayso.client.responses import DeliveryView, ItemView, Run, RunEvent, Suspension, UnreadableView
from sayso.clock import now_ms
from sayso.errors import TooLarge
from sayso.sentences.deliveries import Delivery, describe_delivery, describe_silence
from sayso.sentences.items import describe_resemblance
from sayso.sentences.outcomes import describe_outcome, describe_shown, describe_state
from sayso.sentences.times import describe_left
from sayso.text.blanks import collapse
from sayso.text.invisible import UNCHECKED, write_piece
from sayso.text.redaction import redact

_WIDEST = 120
MOST_LINES = 1_000
"""The lines that any terminal keeps for scrolling back. A longer text cannot be read to its beginning."""

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


def show(text: str, style: str = "") -> Text:
    """Return a text of several lines, with signs for unsafe characters."""
    shown = Text(style=style)
    for piece in collapse(text, breaks=False):
        shown.append(write_piece(piece), "reverse" if piece.sign else None)
    return shown


def show_line(text: str, style: str = "", width: int = _WIDEST) -> Text:
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


def show_inbox(found: list[Suspension], unreadable: list[UnreadableView]) -> RenderableType:
    """Return a table of the open items, and the records that cannot be read below it."""
    damaged = [show_line(f"{one.suspension_id} cannot be read: {one.reason}", "red", 500) for one in unreadable]
    if not found:
        return Group(Text("Nothing waits.", "dim"), *damaged)
    table = make_table()
    for name in ("id", "item", "call", "agent", "reason", "left"):
        table.add_column(name, overflow="fold", no_wrap=name in ("id", "item", "left"))
    for suspension, item in ((one, item) for one in found for item in one.items if item.outcome is None):
        ids = (show_line(suspension.id), show_line(item.item_id))
        args = redact(item.tool.args, None, item.terms.secrets).args
        call = show_line(f"{item.tool.name} {json.dumps(args, ensure_ascii=False)}", width=60)
        agent, reason = show_line(suspension.run.agent, width=24), show_line(item.prompt.reason or "", width=40)
        table.add_row(*ids, call, agent, reason, show_left(item.terms.deadline_at))
    return Group(table, *damaged)


def show_suspension(found: Suspension) -> RenderableType:
    """Return everything that a reviewer needs for a decision."""
    head = Text.assemble(show_line(found.run.agent, "bold"), "  ", show_line(found.id, "dim"))
    about = Text.assemble("requested by ", show_line(found.run.owner), ", ", show_line(found.status))
    return Group(head, about, *_show_claims(found), *(part for item in found.items for part in _show_item(item)))


def _show_claims(found: Suspension) -> list[RenderableType]:
    claims: list[RenderableType] = [show(found.run.claimed_title)] if found.run.claimed_title else []
    if found.run.claimed_context:
        claims.append(show_json(found.run.claimed_context))
    return ["", Text(UNCHECKED, "yellow"), *claims] if claims else []


def check_readable(console: Console, found: Suspension, link: str) -> None:
    """Raise `TooLarge` for an item that takes more lines than a terminal keeps."""
    lines = len(console.render_lines(show_suspension(found), pad=False)) if console.is_terminal else 0
    if lines > MOST_LINES:
        raise TooLarge(
            f"This item takes {lines} lines, but a terminal may keep only {MOST_LINES}. Nothing was decided. "
            f"Decide on its page, {link}, or read it with `sayso show {found.id} --secrets | less` and decide with "
            "--yes."
        )


def _show_item(item: ItemView) -> list[RenderableType]:
    parts: list[RenderableType] = ["", Text.assemble(show_line(f"{item.item_id}  {item.tool.name}", "bold cyan"))]
    if item.resembles:
        parts.append(show_line(describe_resemblance(item.resembles), "bold yellow", 500))
    parts += [show(text) for text in (item.prompt.title, item.prompt.body, item.prompt.reason) if text]
    if item.doubt is not None:
        parts.append(Text("This call was started before and may have run.", "bold yellow"))
    parts.append(show_json(item.tool.args))
    if "value" in item.allowed:
        parts += _show_requested_value(item)
    parts += [
        show_line(f"{one.by.id}: {describe_shown(one.shown)}") for one in item.decisions if one.by.kind == "human"
    ]
    if item.outcome is not None:
        outcome = show_line(describe_outcome(item), "bold")
        worst = item.state if item.state != item.outcome.verdict else ""
        parts.append(Text.assemble(show_state(worst), "; ", outcome) if worst else outcome)
        if item.permit is not None and item.permit.report is not None and item.permit.report.error:
            parts.append(show(item.permit.report.error, "red"))
        parts += [show(item.outcome.message)] if item.outcome.message else []
    else:
        allowed = show_line(", ".join(item.allowed))
        parts.append(Text.assemble("allowed: ", allowed, "; ", show_left(item.terms.deadline_at)))
        if item.number is not None:
            parts.append(show_line(f"number for the reviewer: {item.number}", "bold"))
        elif item.terms.match_number:
            parts.append(Text("an approval needs the number that the requester sees: --number"))
    return [*parts, *_show_deliveries(item)]


def _show_deliveries(item: ItemView) -> list[RenderableType]:
    found = [_read_delivery(one) for one in item.deliveries]
    silence = describe_silence(found, live=item.state == "open")
    alarm = [Text(silence, "bold red")] if silence else []
    return [*alarm, *(show_line(describe_delivery(one), width=500) for one in found)]


def _read_delivery(one: DeliveryView) -> Delivery:
    next_try, sent, seen = (
        _to_ms(at) if at is not None else None for at in (one.next_try_at, one.sent_at, one.seen_at)
    )
    return Delivery(one.channel, one.person, one.state, one.step, one.outcome, one.reason, next_try, sent, seen)


def _show_requested_value(item: ItemView) -> list[RenderableType]:
    parts: list[RenderableType] = []
    if item.target_arg:
        parts.append(Text.assemble("the value fills ", show_line(item.target_arg)))
    if item.choices is not None:
        parts += ["one of these:", *(show_line(json.dumps(choice, ensure_ascii=False)) for choice in item.choices)]
    elif item.response_schema is not None:
        parts.append(show_json(item.response_schema))
    return parts


def show_runs(found: list[Run]) -> RenderableType:
    """Return a table of runs."""
    table = make_table("id", "status", "agent", UNCHECKED, "started")
    for run in found:
        title = show_line(run.claimed_title, width=50)
        row = (show_line(run.id), show_state(run.state or run.status), show_line(run.agent))
        table.add_row(*row, title, format_time(run.created_at))
    return table if found else Text("No runs.", "dim")


def show_state(state: str) -> Text:
    """Return the state of an item or a run; failed or in doubt is red."""
    return show_line(describe_state(state), "bold red" if state in _BAD else "")


def show_event(event: RunEvent) -> Text:
    """Return an event on one line."""
    data = json.dumps(event.data, ensure_ascii=False)
    prefix = f"{event.seq:>4}  {event.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}  "
    return Text.assemble((prefix, "dim"), show_line(event.type, "bold"), "  ", show_line(data))


def show_left(deadline: datetime) -> Text:
    """Return the time left, red in the last minute."""
    left_ms = _to_ms(deadline) - now_ms()
    return Text(describe_left(left_ms), "red" if left_ms < _HURRY_MS else "")


def _to_ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
