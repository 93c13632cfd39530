"""A run's trail as plain text, one line per event, worded as on the dashboard."""

from collections.abc import Iterator, Sequence

from sayso.core.records.events import TrailEntry
from service.edge.web.content.timeline import Line, describe_trail

MAX_CHARS = 160


def render_timeline(trail: Sequence[TrailEntry]) -> Iterator[str]:
    """Yield a line for each entry: seconds since the first entry, event type, and summary."""
    for line in describe_trail(trail):
        text = f"{(line.at_ms - trail[0].at_ms) / 1000:8.3f} s  {line.kind:<20}  {_summarise(line)}"
        yield text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "…"


def _summarise(line: Line) -> str:
    more = ": ".join(part for part in (line.text, line.note, line.data) if part)
    return " ".join(more.split())
