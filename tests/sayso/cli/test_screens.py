"""Screens mark the claims of agents."""

from datetime import UTC, datetime

from rich.console import RenderableType

from sayso.cli.screens import make_console, show_runs
from sayso.cli.suspensions import show_suspension
from sayso.client.responses import (
    DeliveryView,
    FallbackView,
    ItemView,
    Run,
    RunRefView,
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


def test_show_suspension_marks_the_title_and_the_context() -> None:
    run = RunRefView(id="run_1", agent="bot", owner="demo", claimed_title=TITLE, claimed_context={"env": "prod"})
    lines = read(show_suspension(Suspension(id="sus_1", status="pending", created_at=NOW, run=run)))
    assert lines[0] == "bot  sus_1"
    place = lines.index(UNCHECKED)
    assert lines[place + 1 : place + 3] == [f"│ {TITLE}", "env │ prod"]


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
    item = ItemView(
        item_id="i1",
        kind="approval",
        tool=ToolView(name="refund", args={}),
        terms=TermsView(deadline_at=NOW, fallback=FallbackView(action="deny")),
        digest="d",
        state="open",
        deliveries=(failed,),
    )
    run = RunRefView(id="run_1", agent="bot", owner="demo")
    suspension = Suspension(id="sus_1", status="pending", created_at=NOW, run=run, items=(item,))
    assert read(show_suspension(suspension))[-2:] == [
        NOBODY,
        "anna was not notified over ops: HTTP 503. The next attempt is due at 2026-11-22 00:00:00 UTC.",
    ]
