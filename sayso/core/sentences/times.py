"""Times and spans in words, and sentences with moments that every reader sees in their own time zone.

`templates/static/times.js` uses the same words.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from sayso.core.text.language import _

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def describe_span(span_ms: int) -> str:
    """Return a span in its two largest units, such as `4 min 10 s`; `0 s` for less than a second."""
    rest_s = max(0, span_ms) // 1000
    words: list[str] = []
    for size, unit in _UNITS:
        if rest_s >= size or (unit == "s" and not words):
            words.append(f"{rest_s // size} {unit}")
            rest_s %= size
            if rest_s == 0 or len(words) == 2:
                break
        elif words:
            break
    return " ".join(words)


def describe_left(left_ms: int) -> str:
    """Return the time left before a deadline: `4 min 10 s left`, `time is up`."""
    return _("%(span)s left", span=describe_span(left_ms)) if left_ms > 0 else _("time is up")


def describe_due(at_ms: int, now_ms: int) -> str:
    """Return a deadline briefly: `42 s`, `9 min`, and from 10 minutes `11:58 UTC`, `Tue` or `3 Dec`."""
    left_ms = at_ms - now_ms
    if left_ms <= 0:
        return _("time is up")
    if left_ms < 600_000:
        return describe_span(left_ms if left_ms < 60_000 else left_ms // 60_000 * 60_000)
    at, now = (datetime.fromtimestamp(ms / 1000, tz=UTC) for ms in (at_ms, now_ms))
    if at.date() == now.date():
        return f"{at:%H:%M} UTC"
    return _(f"{at:%a}") if (at.date() - now.date()).days < 7 else f"{at.day} {at:%b}"


def describe_ago(at_ms: int, now_ms: int) -> str:
    """Return the age of a moment in its largest unit: `12 s ago`, `3 h ago`."""
    if now_ms - at_ms < 1000:
        return _("just now")
    return _("%(span)s ago", span=" ".join(describe_span(now_ms - at_ms).split(" ")[:2]))


def describe_clock(at_ms: int) -> str:
    """Return a moment in UTC: `2026-11-21 12:03:04 UTC`."""
    return datetime.fromtimestamp(at_ms / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def describe_local(at_ms: int, zone: tzinfo) -> str:
    """Return a moment in a time zone: `2026-11-21 13:03`."""
    return datetime.fromtimestamp(at_ms / 1000, tz=zone).strftime("%Y-%m-%d %H:%M")


def describe_hour(at_ms: int) -> str:
    """Return the time of day in UTC: `12:03:04`."""
    return datetime.fromtimestamp(at_ms / 1000, tz=UTC).strftime("%H:%M:%S")


def describe_brief(span_ms: int) -> str:
    """Return a span as `describe_span` does, but with tenths under 10 s: `1.8 s`."""
    return f"{span_ms / 1000:.1f} s" if span_ms < 10_000 else describe_span(span_ms)


def describe_when(at_ms: int, now_ms: int) -> str:
    """Return a past moment in UTC, as briefly as it can be understood: `11:58 UTC` today, else `3 Dec, 11:58 UTC`."""
    at, now = (datetime.fromtimestamp(ms / 1000, tz=UTC) for ms in (at_ms, now_ms))
    if at.date() == now.date():
        return f"{at:%H:%M} UTC"
    return f"{at.day} {at:%b}{f' {at.year}' if at.year != now.year else ''}, {at:%H:%M} UTC"


_PLACE = re.compile(r"%\((\w+)\)s")


class Moment(NamedTuple):
    """A time within a sentence."""

    at_ms: int


Sentence = tuple[str | Moment, ...]


def compose(message: str, **facts: str | Moment) -> Sentence:
    """Return a translated message with its named places filled: texts, with moments between them."""
    pieces = _PLACE.split(message)
    parts: list[str | Moment] = [facts[piece] if place % 2 else piece for place, piece in enumerate(pieces)]
    return tuple(part for part in parts if part)


def write_sentence(sentence: Sentence, write: Callable[[int], str]) -> str:
    """Return the sentence with its moments written by `write`."""
    return "".join(write(part.at_ms) if isinstance(part, Moment) else part for part in sentence)
