"""Write a run's trail as plain text, one readable line an event, in the dashboard's own words."""

from collections.abc import Iterator, Sequence

from sayso.records.events import TrailEntry
from service.web.content.timeline import Line, describe_trail

LONGEST_LINE = 160


def render_timeline(trail: Sequence[TrailEntry]) -> Iterator[str]:
    """Yield a line for each entry: seconds since the first, the kind of event, and what it tells."""
    for line in describe_trail(trail):
        text = f"{(line.at_ms - trail[0].at_ms) / 1000:8.3f} s  {line.kind:<20}  {_gist(line)}"
        yield text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"


def _gist(line: Line) -> str:
    more = ": ".join(part for part in (line.text, line.note, line.data) if part)
    return " ".join(more.split())
