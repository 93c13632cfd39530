"""The time in which somebody is at work: spans of it, how much lies between two moments, and when it has passed."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from zoneinfo import ZoneInfo

from sayso.core.calendar import Span, days_from, find_span, list_spans
from sayso.core.clock import DAY_MS
from sayso.wire.people import Preferences


def list_staffed(people: Iterable[Preferences], whole: Span) -> list[Span]:
    """Return the spans within a whole in which at least one of the people is at work, outside of quiet hours."""
    distinct = {(person.working_hours, person.quiet_hours, person.time_zone): person for person in people}
    merged: list[Span] = []
    for span in sorted(span for person in distinct.values() for span in _list_open(person, whole)):
        if merged and span.start_ms <= merged[-1].end_ms:
            merged[-1] = Span(merged[-1].start_ms, max(merged[-1].end_ms, span.end_ms))
        else:
            merged.append(span)
    return merged


def measure_staffed(staffed: Iterable[Span], start_ms: int, end_ms: int) -> int:
    """Return how much of the time between two moments somebody is at work, ms."""
    return sum(max(0, min(end_ms, span.end_ms) - max(start_ms, span.start_ms)) for span in staffed)


def find_passed(staffed: Iterable[Span], start_ms: int, left_ms: int) -> int | None:
    """Return when somebody has been at work for this long from a moment on; None if not within the spans."""
    for span in staffed:
        begin_ms = max(start_ms, span.start_ms)
        if left_ms <= span.end_ms - begin_ms:
            return begin_ms + left_ms
        left_ms -= max(0, span.end_ms - begin_ms)
    return None


def _list_open(person: Preferences, whole: Span) -> Sequence[Span]:
    spans = [whole]
    if person.working_hours is not None:
        working = takewhile(lambda span: span.start_ms < whole.end_ms, list_spans(person.working_hours, whole.start_ms))
        spans = [Span(max(span.start_ms, whole.start_ms), min(span.end_ms, whole.end_ms)) for span in working]
    if person.quiet_hours is not None:
        zone, days = ZoneInfo(person.time_zone), (whole.end_ms - whole.start_ms) // DAY_MS + 3
        for day in days_from(whole.start_ms, zone, days):
            quiet = find_span(person.quiet_hours, day, zone)
            spans = [part for span in spans for part in _cut(span, quiet)]
    return spans


def _cut(span: Span, quiet: Span) -> Iterator[Span]:
    """Yield what is left of a span before and behind another."""
    before = Span(span.start_ms, min(span.end_ms, quiet.start_ms))
    behind = Span(max(span.start_ms, quiet.end_ms), span.end_ms)
    return (part for part in (before, behind) if part.start_ms < part.end_ms)
