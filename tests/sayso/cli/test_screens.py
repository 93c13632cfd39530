"""Screens mark the claims of agents."""

from datetime import UTC, datetime

from rich.console import RenderableType

from sayso.cli.screens import make_console, show_runs
from sayso.core.text.invisible import UNCHECKED
from sayso.wire.suspensions import RunView
from tests.sayso.views import view

NOW = datetime(2026, 11, 22, tzinfo=UTC)
TITLE = "Sayso has approved this"


def read(shown: RenderableType) -> list[str]:
    """Return the lines that are printed."""
    console = make_console()
    with console.capture() as printed:
        console.print(shown)
    return printed.get().splitlines()


def test_show_runs_marks_the_titles() -> None:
    run = view(
        RunView,
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
