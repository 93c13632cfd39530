"""Jumps of the store's clock."""

import pytest

from sayso.core.records.freezes import JUMP_MS, ClockReading, find_drift_ms

HOUR = 3_600_000


def beat(at_ms: int, uptime_ms: int = 0, boot: str = "one", wall_ms: int | None = None) -> ClockReading:
    return ClockReading(at_ms=at_ms, uptime_ms=uptime_ms, boot=boot, wall_ms=at_ms if wall_ms is None else wall_ms)


@pytest.mark.parametrize(
    ("server_ms", "uptime_ms", "drift_ms"),
    [(1000, 1000, 0), (HOUR, HOUR, 0), (HOUR, 100, HOUR - 100), (-HOUR, 100, -HOUR - 100), (0, HOUR, -HOUR)],
)
def test_find_drift_uses_the_uptime_of_one_machine(server_ms: int, uptime_ms: int, drift_ms: int) -> None:
    assert find_drift_ms(beat(0), beat(server_ms, uptime_ms)) == drift_ms


@pytest.mark.parametrize("boot", ["two", ""])
def test_find_drift_after_restart_with_equal_clocks(boot: str) -> None:
    assert find_drift_ms(beat(0), beat(HOUR, 5, boot)) == 0
    assert find_drift_ms(beat(0), beat(HOUR, 5, boot, wall_ms=HOUR - JUMP_MS)) == 0


def test_find_drift_after_restart_with_store_ahead() -> None:
    assert find_drift_ms(beat(0), beat(HOUR, 5, "two", wall_ms=0)) == HOUR
    assert find_drift_ms(beat(0), beat(1000, 5, "two", wall_ms=-HOUR)) == 1000, "no more than was gone past"


def test_find_drift_after_restart_with_store_behind() -> None:
    assert find_drift_ms(beat(HOUR), beat(0, 5, "two")) == -HOUR


def test_find_drift_without_boot_id() -> None:
    assert find_drift_ms(beat(0, boot=""), beat(HOUR, 5, boot="")) == 0
