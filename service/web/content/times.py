"""Say moments and spans of time in the words of the pages; `templates/static/live.js` says them in the same."""

from datetime import UTC, datetime

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def describe_span(span_ms: int) -> str:
    """Say a span in its two largest units, such as `4 min 10 s`; anything under a second is `0 s`."""
    left_s = max(0, span_ms) // 1000
    words: list[str] = []
    for size, unit in _UNITS:
        if left_s >= size or (unit == "s" and not words):
            words.append(f"{left_s // size} {unit}")
            left_s %= size
            if left_s == 0 or len(words) == 2:
                break
        elif words:
            break
    return " ".join(words)


def describe_ago(at_ms: int, now_ms: int) -> str:
    """Say how long ago a moment was, in its largest unit: `12 s ago`, `3 h ago`."""
    if now_ms - at_ms < 1000:
        return "just now"
    count, unit, *_ = describe_span(now_ms - at_ms).split(" ")
    return f"{count} {unit} ago"


def describe_clock(at_ms: int) -> str:
    """Say a moment to the second, in UTC: `2026-11-21 12:03:04 UTC`."""
    return datetime.fromtimestamp(at_ms / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def describe_hour(at_ms: int) -> str:
    """Say the time of day to the second, in UTC: `12:03:04`."""
    return datetime.fromtimestamp(at_ms / 1000, tz=UTC).strftime("%H:%M:%S")
