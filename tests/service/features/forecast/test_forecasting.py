"""A forecast holds as often as it says, counts the hours of those asked, and says when it knows nothing."""

from random import Random

import pytest

from sayso.core.clock import DAY_MS, HOUR_MS
from sayso.wire.people import Preferences
from service.features.forecast.forecasting import Forecast, estimate
from service.features.forecast.waits import Wait
from tests.service.features.forecast.test_staffing import MONDAY_MS, OFFICE

FREE = Preferences()
KNOWN = Forecast("i1", "pay", MONDAY_MS + 9 * DAY_MS)
NOW_MS = MONDAY_MS + 12 * HOUR_MS


def waits_of(*hours: float, before_ms: int = NOW_MS) -> list[Wait]:
    return [Wait(before_ms - round(one * HOUR_MS) - DAY_MS, before_ms - DAY_MS, "anna") for one in hours]


@pytest.mark.parametrize("waited_h", [0, 1, 3])
def test_forecast_holds_as_often_as_it_says(waited_h: int) -> None:
    """Waits of a long tail: of those that lasted as long as the item has, half end by then, and nine of ten."""
    random = Random(7)  # noqa: S311  no secret
    history = waits_of(*(random.lognormvariate(1, 1) for _ in range(200)))
    drawn = [random.lognormvariate(1, 1) for _ in range(4_000)]
    later_ms = [wait * HOUR_MS for wait in drawn if wait > waited_h]
    asked_ms = NOW_MS - waited_h * HOUR_MS
    forecast = estimate(KNOWN, history, [FREE], asked_ms, NOW_MS)
    assert forecast.half_by_ms is not None
    assert forecast.most_by_ms is not None
    for by_ms, share in ((forecast.half_by_ms, 0.5), (forecast.most_by_ms, 0.9)):
        assert sum(asked_ms + wait_ms <= by_ms for wait_ms in later_ms) / len(later_ms) == pytest.approx(share, abs=0.1)


def test_hours_count_only_at_work() -> None:
    """Asked on Monday at 16:00: two hours of work end on Tuesday at 10:00."""
    at_ms = MONDAY_MS + 16 * HOUR_MS
    history = waits_of(*([2] * 20), before_ms=MONDAY_MS - 2 * DAY_MS - 8 * HOUR_MS)  # before Friday, 16:00
    forecast = estimate(KNOWN, history, [OFFICE], at_ms, at_ms)
    assert (forecast.half_by_ms, forecast.overdue) == (MONDAY_MS + 34 * HOUR_MS, False)


def test_item_that_waited_longer_than_nearly_all_has_no_moment() -> None:
    forecast = estimate(KNOWN, waits_of(*range(20)), [FREE], NOW_MS - 17 * HOUR_MS, NOW_MS)
    assert (forecast.half_by_ms, forecast.overdue) == (None, True)


def test_nobody_at_work_leaves_the_time_unknown() -> None:
    forecast = estimate(KNOWN, waits_of(*range(20)), [], NOW_MS, NOW_MS)
    assert (forecast.half_by_ms, forecast.most_by_ms, forecast.overdue) == (None, None, False)
