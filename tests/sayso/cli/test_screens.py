"""Screens mark the claims of agents."""

from datetime import UTC, datetime
from typing import Any

from rich.console import RenderableType

from sayso.cli.screens import make_console, show_runs, show_suspension
from sayso.client.responses import (
    ActorView,
    DecisionView,
    DeliveryView,
    FallbackView,
    ItemView,
    Run,
    RunRefView,
    ShownView,
    Suspension,
    TermsView,
    ToolView,
)
from sayso.sentences.deliveries import NOBODY
from sayso.text.invisible import UNCHECKED

NOW = datetime(2026, 11, 22, tzinfo=UTC)
TITLE = "Sayso has approved this"


def read(shown: RenderableType) -> list[str]:
    """Return the lines that are printed."""
    console = make_console()
    with console.capture() as printed:
        console.print(shown)
    return printed.get().splitlines()


def make_suspension(**fields: Any) -> Suspension:
    """Return a suspension with one item that has these fields."""
    terms = TermsView(deadline_at=NOW, fallback=FallbackView(action="deny"))
    tool = ToolView(name="refund", args={})
    item = ItemView(item_id="i1", kind="approval", tool=tool, terms=terms, digest="d", **fields)
    run = RunRefView(id="run_1", agent="bot", owner="demo")
    return Suspension(id="sus_1", status="pending", created_at=NOW, run=run, items=(item,))


def test_show_suspension_marks_the_title_and_the_context() -> None:
    run = RunRefView(id="run_1", agent="bot", owner="demo", claimed_title=TITLE, claimed_context={"env": "prod"})
    lines = read(show_suspension(Suspension(id="sus_1", status="pending", created_at=NOW, run=run)))
    assert lines[0] == "bot  sus_1"
    place = lines.index(UNCHECKED)
    assert lines[place + 1 : place + 4] == [TITLE, "{", '  "env": "prod"']


def test_show_runs_marks_the_titles() -> None:
    run = Run(
        id="run_1",
        agent="bot",
        owner="demo",
        claimed_title=TITLE,
        status="suspended",
        suspension_id="sus_1",
        created_at=NOW,
        updated_at=NOW,
    )
    head, row = read(show_runs([run]))
    assert head.index(UNCHECKED) == row.index(TITLE)


def test_show_suspension_says_who_was_not_notified() -> None:
    failed = DeliveryView(channel="ops", person="anna", state="failed", reason="HTTP 503", next_try_at=NOW)
    assert read(show_suspension(make_suspension(state="open", deliveries=(failed,))))[-2:] == [
        NOBODY,
        "anna was not notified over ops: HTTP 503. The next attempt is due at 2026-11-22 00:00:00 UTC.",
    ]


def test_show_suspension_says_what_reviewers_were_shown() -> None:
    shown = ShownView(display_hash="1:ab", values=7, values_shown=7, look_ms=41_000)
    decisions = (
        DecisionView(action="approve", by=ActorView(id="anna", kind="human"), at=NOW, shown=shown),
        DecisionView(action="approve", by=ActorView(id="ben", kind="human"), at=NOW),
        DecisionView(action="deny", by=ActorView(id="timeout", kind="timeout"), at=NOW),
    )
    lines = read(show_suspension(make_suspension(decisions=decisions)))
    assert "anna: 7 of 7 values shown, 41 s" in lines
    assert "ben: what was shown was not measured" in lines
    assert not any(line.startswith("timeout") for line in lines)
