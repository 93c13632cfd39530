from collections.abc import Callable
from contextvars import copy_context
from zoneinfo import ZoneInfo

import pytest

from sayso.core.sentences.deadlines import (
    describe_ago,
    describe_brief,
    describe_clock,
    describe_due,
    describe_hour,
    describe_span,
    describe_when,
    use_zone,
)

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


@pytest.mark.parametrize(
    ("span_ms", "words"),
    [
        (-5, "0 s"),
        (999, "0 s"),
        (12 * SECOND, "12 s"),
        (MINUTE, "1 min"),
        (4 * MINUTE + 10 * SECOND + 900, "4 min 10 s"),
        (2 * HOUR + 5 * SECOND, "2 h"),
        (23 * HOUR + 59 * MINUTE + 59 * SECOND, "23 h 59 min"),
        (3 * DAY + 2 * HOUR + 50 * MINUTE, "3 d 2 h"),
        (30 * DAY, "30 d"),
    ],
)
def test_describe_span_uses_its_two_largest_units(span_ms: int, words: str) -> None:
    assert describe_span(span_ms) == words


@pytest.mark.parametrize(
    ("since_ms", "words"), [(-50, "just now"), (999, "just now"), (SECOND, "1 s ago"), (2 * HOUR + MINUTE, "2 h ago")]
)
def test_describe_ago_uses_one_unit(since_ms: int, words: str) -> None:
    assert describe_ago(1_000_000_000, 1_000_000_000 + since_ms) == words


@pytest.mark.parametrize(
    ("left_ms", "words"),
    [
        (0, "time is up"),
        (42_900, "42 s"),
        (60_000, "1 min"),
        (599_999, "9 min"),
        (600_000, "12:10 UTC"),
        (43_200_000, "Wed"),
        (6 * 86_400_000, "Mon"),
        (7 * 86_400_000, "8 Dec"),
    ],
)
def test_describe_due_is_brief(left_ms: int, words: str) -> None:
    noon_ms = 1_796_126_400_000
    assert describe_due(noon_ms + left_ms, noon_ms) == words


def test_clock_and_hour_are_in_utc_unless_a_zone_is_in_use() -> None:
    noon_ms = 1_795_262_584_120
    assert describe_clock(noon_ms) == "2026-11-21 12:03:04 UTC"
    assert describe_hour(noon_ms) == "12:03:04 UTC"
    assert in_zone("Asia/Tokyo", lambda: describe_clock(noon_ms)) == "2026-11-21 21:03:04 JST"
    assert in_zone("Asia/Tashkent", lambda: describe_hour(noon_ms)) == "17:03:04 UTC+05"
    assert in_zone("Europe/Berlin", lambda: describe_due(noon_ms + HOUR, noon_ms)) == "14:03 CET"
    assert in_zone("Asia/Tokyo", lambda: describe_when(noon_ms, noon_ms + 5 * HOUR)) == "21 Nov, 21:03 JST"


def in_zone(name: str, describe: Callable[[], str]) -> str:
    def run() -> str:
        use_zone(ZoneInfo(name))
        return describe()

    return copy_context().run(run)


def test_describe_brief_has_tenths_under_ten_seconds() -> None:
    assert [describe_brief(ms) for ms in (0, 1_849, 9_900, 10_000, 65_000)] == [
        "0.0 s",
        "1.8 s",
        "9.9 s",
        "10 s",
        "1 min 5 s",
    ]


@pytest.mark.parametrize(
    ("past_ms", "words"),
    [(0, "12:00 UTC"), (HOUR, "11:00 UTC"), (DAY, "30 Nov, 12:00 UTC"), (400 * DAY, "27 Oct 2025, 12:00 UTC")],
)
def test_describe_when_is_as_brief_as_the_day_allows(past_ms: int, words: str) -> None:
    noon_ms = 1_796_126_400_000
    assert describe_when(noon_ms - past_ms, noon_ms) == words
